//! Tables of a snapshot: decoding the catalog's records, keeping what did not change.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock, Weak};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use buffer::PageId;
use parking_lot::Mutex;
use roaring::RoaringBitmap;
use store::Snapshot;

use crate::block::Block;
use crate::dictionary::{Dictionary, DictionaryRecord};
use crate::error::{Error, Result};
use crate::key;
use crate::obsolete;
use crate::schema::{Definition, DefinitionRecord};
use crate::statistics::ColumnStatistics;
use crate::tail;

/// Decoded tables, kept from one snapshot to the next while they do not change.
#[derive(Debug, Default)]
pub struct Catalog {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bodies: HashMap<u32, Arc<Body>>,
    /// Weak, so that an idle catalog keeps no old snapshot (and its freed pages) alive.
    latest: Weak<Tables>,
}

/// The tables of one snapshot.
#[derive(Debug)]
pub struct Tables {
    version: u64,
    tables: BTreeMap<String, Arc<Table>>,
}

/// One table in one snapshot. Cheap to share; readers never block writers.
#[derive(Debug)]
pub struct Table {
    pub(crate) body: Arc<Body>,
    pub(crate) snapshot: Snapshot,
}

/// What is decoded of a table, whatever the snapshot.
#[derive(Debug)]
pub(crate) struct Body {
    /// The table's space in the catalog, which no other table ever had or will have.
    pub space: u32,
    pub definition: Definition,
    pub schema: SchemaRef,
    /// Changes with every change of the table.
    stamp: u64,
    pub blocks: Vec<Stored<Block>>,
    /// Deleted rows by the key of their block.
    pub deleted: BTreeMap<u32, Stored<RoaringBitmap>>,
    pub tail: Vec<Stored<RecordBatch>>,
    pub dictionaries: Vec<DictionarySlot>,
    /// Pages of the row indexes that an earlier version left, by foreign key.
    pub row_indexes: BTreeMap<usize, Vec<PageId>>,
    pub statistics: OnceLock<Vec<ColumnStatistics>>,
}

/// A decoded record beside the bytes it came from: equal pointers spare decoding it again.
#[derive(Debug)]
pub(crate) struct Stored<T> {
    pub key: u32,
    bytes: Arc<[u8]>,
    pub value: Arc<T>,
}

/// A column's dictionary, read on first use.
#[derive(Debug, Default)]
pub(crate) struct DictionarySlot {
    pub record: Option<DictionaryRecord>,
    pub loaded: tokio::sync::OnceCell<Arc<Dictionary>>,
}

impl<T> Stored<T> {
    /// Length of the record.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.len() as u64
    }
}

// By hand: a derive would ask `T: Clone`.
impl<T> Clone for Stored<T> {
    fn clone(&self) -> Stored<T> {
        Stored {
            key: self.key,
            bytes: self.bytes.clone(),
            value: self.value.clone(),
        }
    }
}

impl Catalog {
    /// Keeps nothing yet.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// The tables of `snapshot`.
    ///
    /// # Errors
    /// [`Error::Damaged`] if a record does not decode.
    pub fn tables(&self, snapshot: &Snapshot) -> Result<Arc<Tables>> {
        let mut kept = self.kept.lock();
        if let Some(tables) = kept
            .latest
            .upgrade()
            .filter(|t| t.version == snapshot.version())
        {
            return Ok(tables);
        }
        let mut tables = BTreeMap::new();
        let mut bodies = HashMap::new();
        for (entry, value) in snapshot.prefix(key::DIRECTORY, key::TABLE) {
            let (name, space) = key::directory_entry(&entry, &value)?;
            let body = body(snapshot, &name, space, kept.bodies.get(&space))?;
            bodies.insert(space, body.clone());
            tables.insert(
                name,
                Arc::new(Table {
                    body,
                    snapshot: snapshot.clone(),
                }),
            );
        }
        let tables = Arc::new(Tables {
            version: snapshot.version(),
            tables,
        });
        *kept = Kept {
            bodies,
            latest: Arc::downgrade(&tables),
        };
        Ok(tables)
    }
}

impl Tables {
    /// Names in order.
    pub fn names(&self) -> Vec<&str> {
        self.tables.keys().map(String::as_str).collect()
    }

    /// The table called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// The version of the snapshot they were read from.
    pub fn version(&self) -> u64 {
        self.version
    }
}

impl Table {
    /// Name, columns and keys.
    pub fn definition(&self) -> &Definition {
        &self.body.definition
    }

    /// The schema that scans deliver.
    pub fn schema(&self) -> SchemaRef {
        self.body.schema.clone()
    }

    /// Rows that are not deleted.
    pub fn rows(&self) -> u64 {
        let body = &self.body;
        let stored: u64 = body.blocks.iter().map(|b| u64::from(b.value.rows)).sum();
        let deleted: u64 = body.deleted.values().map(|d| d.value.len()).sum();
        stored - deleted
            + body
                .tail
                .iter()
                .map(|t| t.value.num_rows() as u64)
                .sum::<u64>()
    }

    /// Rows of blocks that are marked as deleted.
    pub fn deleted_rows(&self) -> u64 {
        self.body.deleted.values().map(|d| d.value.len()).sum()
    }

    /// Number of blocks, the tail apart.
    pub fn blocks(&self) -> usize {
        self.body.blocks.len()
    }

    /// Block number `index`.
    pub fn block(&self, index: usize) -> &Block {
        &self.body.blocks[index].value
    }

    /// Rows in the logged tail that are not yet in blocks.
    pub fn tail_rows(&self) -> usize {
        self.body.tail.iter().map(|t| t.value.num_rows()).sum()
    }

    /// The snapshot it belongs to.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// What is known of a column, without reading any page.
    pub fn statistics(&self, column: usize) -> &ColumnStatistics {
        let all = self.body.statistics.get_or_init(|| {
            (0..self.body.definition.columns.len())
                .map(|column| ColumnStatistics::of(&self.body, column))
                .collect()
        });
        &all[column]
    }

    /// The column's dictionary, if it has one; read from its pages on first use.
    ///
    /// # Errors
    /// Those of reading pages; [`Error::Damaged`].
    pub async fn dictionary(&self, column: usize) -> Result<Option<Arc<Dictionary>>> {
        let slot = &self.body.dictionaries[column];
        let Some(record) = &slot.record else {
            return Ok(None);
        };
        let load = || async {
            let table = &self.body.definition;
            let labels = record.labels(&table.name, self.snapshot.pool()).await?;
            let text = table.columns[column].data_type == arrow::datatypes::DataType::Utf8View;
            let dictionary = Dictionary::new(&labels, record.sorted, text)?;
            Ok::<_, Error>(Arc::new(dictionary))
        };
        Ok(Some(slot.loaded.get_or_try_init(load).await?.clone()))
    }
}

fn body(
    snapshot: &Snapshot,
    name: &str,
    space: u32,
    before: Option<&Arc<Body>>,
) -> Result<Arc<Body>> {
    let damaged = |what: &str| Error::Damaged {
        table: name.to_owned(),
        what: what.to_owned(),
    };
    let stamp = key::counter(snapshot.get(space, key::STAMP).as_deref());
    if let Some(body) = before.filter(|b| b.stamp == stamp) {
        return Ok(body.clone());
    }
    let definition = snapshot
        .get(space, key::DEFINITION)
        .and_then(|bytes| postcard::from_bytes::<DefinitionRecord>(&bytes).ok())
        .and_then(DefinitionRecord::definition)
        .ok_or_else(|| damaged("its definition"))?;
    let page_size = snapshot.pool().page_size();
    let columns = definition.columns.len();
    let decode_block = |bytes: &[u8]| {
        let block: Block = postcard::from_bytes(bytes).ok()?;
        let sound = block.rows > 0
            && block.columns.len() == columns
            && block
                .columns
                .iter()
                .all(|m| m.is_sound(block.rows, page_size));
        sound.then_some(block)
    };
    let old_blocks = before.map_or(&[][..], |b| &b.blocks);
    let blocks = records(snapshot, space, key::BLOCK, old_blocks, decode_block)
        .ok_or_else(|| damaged("the record of a block"))?;
    let old: Vec<_> = before.map_or(vec![], |b| b.deleted.values().cloned().collect());
    let deleted = records(snapshot, space, key::DELETED, &old, |bytes| {
        RoaringBitmap::deserialize_from(bytes).ok()
    })
    .ok_or_else(|| damaged("the record of deleted rows"))?;
    let old_tail = before.map_or(&[][..], |b| &b.tail);
    let tail = records(snapshot, space, key::TAIL, old_tail, |b| {
        tail::decode(b, &definition)
    })
    .ok_or_else(|| damaged("a chunk of its tail"))?;
    let dictionaries = (0..columns)
        .map(|column| dictionary_slot(snapshot, space, column, before))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| damaged("the record of a dictionary"))?;
    let row_indexes = obsolete::row_indexes(snapshot, space, definition.foreign_keys.len())
        .ok_or_else(|| damaged("the record of a row index"))?;
    Ok(Arc::new(Body {
        space,
        schema: definition.schema(),
        definition,
        stamp,
        blocks,
        deleted: deleted.into_iter().map(|d| (d.key, d)).collect(),
        tail,
        dictionaries,
        row_indexes,
        statistics: OnceLock::new(),
    }))
}

/// All records under `prefix`, decoded; those that stand in `before` are taken from there.
fn records<T>(
    snapshot: &Snapshot,
    space: u32,
    prefix: &[u8],
    before: &[Stored<T>],
    decode: impl Fn(&[u8]) -> Option<T>,
) -> Option<Vec<Stored<T>>> {
    let mut found = Vec::with_capacity(before.len());
    for (entry, bytes) in snapshot.prefix(space, prefix) {
        let key = key::number(&entry)?;
        let old = before
            .binary_search_by_key(&key, |r| r.key)
            .ok()
            .map(|i| &before[i]);
        let record = match old.filter(|old| Arc::ptr_eq(&old.bytes, &bytes)) {
            Some(old) => old.clone(),
            None => Stored {
                key,
                value: Arc::new(decode(&bytes)?),
                bytes,
            },
        };
        found.push(record);
    }
    Some(found)
}

fn dictionary_slot(
    snapshot: &Snapshot,
    space: u32,
    column: usize,
    before: Option<&Arc<Body>>,
) -> Option<DictionarySlot> {
    let Some(bytes) = snapshot.get(space, &key::dictionary(column)) else {
        return Some(DictionarySlot::default());
    };
    let record: DictionaryRecord = postcard::from_bytes(&bytes).ok()?;
    let slot = DictionarySlot {
        record: Some(record),
        loaded: Default::default(),
    };
    let old = before.and_then(|b| b.dictionaries.get(column));
    if let Some(old) = old.filter(|old| old.record == slot.record)
        && let Some(dictionary) = old.loaded.get()
    {
        // The cell is new, so setting it cannot fail.
        let _ = slot.loaded.set(dictionary.clone());
    }
    Some(slot)
}
