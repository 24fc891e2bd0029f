//! One table, decoded.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use arrow::datatypes::{DataType, SchemaRef};
use buffer::PageId;
use roaring::RoaringBitmap;
use store::Snapshot;

use crate::catalog::sample::{PieceRows, Sample, SampleSlot};
use crate::catalog::statistics::ColumnStatistics;
use crate::dictionary::Dictionary;
use crate::error::{Error, Result};
use crate::format::block::{Block, Encoding};
use crate::format::dictionary::DictionaryRecord;
use crate::format::row_id::RowId;
use crate::format::tail::Chunk;
use crate::schema::Definition;

/// One table as one snapshot has it: its definition, its blocks and what is known of them. Later
/// commits do not change it.
#[derive(Debug)]
pub struct Table {
    pub(crate) body: Arc<Body>,
    pub(crate) snapshot: Snapshot,
    /// The only rows that scans deliver; absent if all are.
    pub(crate) chosen: Option<Arc<Chosen>>,
}

/// Rows of a table that were found by a key.
#[derive(Debug)]
pub(crate) struct Chosen {
    key: String,
    /// By chunk of the tail (`true`) or block: positions, ascending.
    rows: BTreeMap<(bool, u32), Vec<u16>>,
}

impl Chosen {
    /// The rows of a chunk of the tail or a block.
    pub(crate) fn of(&self, tail: bool, number: u32) -> &[u16] {
        self.rows.get(&(tail, number)).map_or(&[], Vec::as_slice)
    }
}

/// What is decoded of a table, whatever the snapshot.
#[derive(Debug)]
pub(crate) struct Body {
    /// Its space in the catalog.
    pub space: u32,
    pub definition: Definition,
    pub schema: SchemaRef,
    /// Changes with every change of the table. It is compared by where it lies: what was undone may have had the same
    /// number.
    pub stamp: Option<Arc<[u8]>>,
    pub blocks: Vec<Stored<Block>>,
    /// Deleted rows by the key of their block.
    pub deleted: BTreeMap<u32, Stored<RoaringBitmap>>,
    pub tail: Vec<Stored<Chunk>>,
    pub dictionaries: Vec<DictionarySlot>,
    /// Pages of the row indexes that an earlier version left, by foreign key.
    pub row_indexes: BTreeMap<usize, Vec<PageId>>,
    pub statistics: OnceLock<Vec<ColumnStatistics>>,
    pub sample: SampleSlot,
}

/// A decoded record beside the bytes it came from: equal pointers spare decoding it again.
#[derive(Debug)]
pub(crate) struct Stored<T> {
    pub key: u32,
    /// The record.
    pub bytes: Arc<[u8]>,
    pub value: Arc<T>,
}

/// A column's dictionary, read on first use.
#[derive(Debug, Default)]
pub(crate) struct DictionarySlot {
    pub record: Option<DictionaryRecord>,
    /// Its record as it lies in the catalog.
    pub bytes: Option<Arc<[u8]>>,
    pub loaded: tokio::sync::OnceCell<Arc<Dictionary>>,
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

impl Body {
    /// Whether the table that has this stamp now has not changed since.
    pub(crate) fn is_of(&self, stamp: Option<&Arc<[u8]>>) -> bool {
        matches!((&self.stamp, stamp), (Some(mine), Some(now)) if Arc::ptr_eq(mine, now))
    }

    /// How many rows its pieces have.
    pub(crate) fn piece_rows(&self) -> PieceRows {
        let (blocks, tail) = (self.blocks.iter(), self.tail.iter());
        PieceRows {
            blocks: blocks.map(|block| block.value.rows as usize).collect(),
            tail: tail.map(|chunk| chunk.value.len()).collect(),
        }
    }

    /// The chunk of the tail of that number, if there is one.
    pub(crate) fn chunk(&self, number: u32) -> Option<&Stored<Chunk>> {
        let found = self.tail.binary_search_by_key(&number, |chunk| chunk.key);
        found.ok().map(|at| &self.tail[at])
    }

    /// Where the row of an id lies. None if its place was in the tail and it is not there any more; whether a block has the row is
    /// not looked at.
    pub(crate) fn place(&self, id: u64) -> Option<RowId> {
        let RowId::Tail { key, .. } = RowId::of(id) else {
            return Some(RowId::of(id));
        };
        let chunk = self.tail.partition_point(|chunk| chunk.key < key);
        let chunk = self.tail.get(chunk)?;
        let row = chunk.value.position(chunk.key, id)?;
        let key = chunk.key;
        Some(RowId::Tail { key, row })
    }

    /// The id of the row that lies at a place where there is one.
    pub(crate) fn row_id(&self, place: RowId) -> u64 {
        match place {
            RowId::Tail { key, row } => {
                let chunk = self.chunk(key);
                chunk.map_or(place.number(), |chunk| chunk.value.id(key, row))
            }
            RowId::Block { .. } => place.number(),
        }
    }

    /// Its sample, chosen on the first call.
    pub(crate) fn sample(&self) -> &Arc<Sample> {
        let deleted = |index: usize| {
            let key = self.blocks.get(index)?.key;
            self.deleted.get(&key).map(|deleted| &*deleted.value)
        };
        let columns = self.definition.columns.len();
        self.sample
            .get_or_init(|| Sample::choose(&self.piece_rows(), columns, deleted))
    }
}

impl Table {
    /// The same table, of which scans deliver these rows alone: their row ids, which were found by the index of `key`.
    /// Whoever chooses rows does not choose less than the filters of the scan leave; what is known of the table's
    /// columns stays as it is.
    #[must_use]
    pub fn choose(&self, key: &str, rows: &[u64]) -> Table {
        let mut chosen: BTreeMap<(bool, u32), Vec<u16>> = BTreeMap::new();
        for place in rows.iter().filter_map(|row| self.body.place(*row)) {
            let (place, row) = match place {
                RowId::Tail { key, row } => ((true, key), row),
                RowId::Block { key, row } => ((false, key), row),
            };
            chosen.entry(place).or_default().push(row);
        }
        for rows in chosen.values_mut() {
            rows.sort_unstable();
            rows.dedup();
        }
        Table {
            body: self.body.clone(),
            snapshot: self.snapshot.clone(),
            chosen: Some(Arc::new(Chosen {
                key: key.to_owned(),
                rows: chosen,
            })),
        }
    }

    /// The key whose index has chosen the rows that scans deliver, and how many rows these are; none if all are.
    pub fn chosen(&self) -> Option<(&str, usize)> {
        let chosen = self.chosen.as_ref()?;
        Some((&chosen.key, chosen.rows.values().map(Vec::len).sum()))
    }

    /// Its name, columns and keys.
    pub fn definition(&self) -> &Definition {
        &self.body.definition
    }

    /// The schema that scans deliver.
    pub fn schema(&self) -> SchemaRef {
        self.body.schema.clone()
    }

    /// The number of rows that are not deleted, the tail included.
    pub fn rows(&self) -> u64 {
        let body = &self.body;
        let stored: u64 = body.blocks.iter().map(|b| u64::from(b.value.rows)).sum();
        stored - self.deleted_rows() + self.tail_rows() as u64
    }

    /// The number of rows in blocks that are marked as deleted.
    pub fn deleted_rows(&self) -> u64 {
        self.body.deleted.values().map(|d| d.value.len()).sum()
    }

    /// The number of blocks. Rows of the tail are in none.
    pub fn blocks(&self) -> usize {
        self.body.blocks.len()
    }

    /// Block number `index`.
    pub fn block(&self, index: usize) -> &Block {
        &self.body.blocks[index].value
    }

    /// The number of rows in the tail: of small inserts, which are not in blocks yet.
    pub fn tail_rows(&self) -> usize {
        self.body.tail.iter().map(|t| t.value.len()).sum()
    }

    /// A range that all ids of its rows are in, the values of [`crate::ROW_COLUMN`]: without a tail they are small.
    pub fn row_id_bounds(&self) -> (u64, u64) {
        let (least, greatest) = (u32::MIN, u32::MAX);
        let of_block = |key, row| RowId::Block { key, row }.number();
        if self.body.tail.is_empty() {
            (of_block(least, 0), of_block(greatest, u16::MAX))
        } else {
            (0, u64::MAX)
        }
    }

    /// Whether `other`, of another snapshot of the same store, is this table without any change.
    pub fn is_unchanged_in(&self, other: &Table) -> bool {
        Arc::ptr_eq(&self.body, &other.body) || self.body.is_of(other.body.stamp.as_ref())
    }

    /// The snapshot it belongs to.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Facts about a column that are known without reading a page.
    pub fn statistics(&self, column: usize) -> &ColumnStatistics {
        let body = &self.body;
        let of = |column: usize| {
            let blocks = body.blocks.iter().map(|block| &*block.value);
            let labels = body.dictionaries[column].record.as_ref().map(|r| r.labels);
            ColumnStatistics::of(blocks, column, labels, body.tail.is_empty())
        };
        let all = || (0..body.definition.columns.len()).map(of).collect();
        &body.statistics.get_or_init(all)[column]
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
            let text = table.columns[column].data_type == DataType::Utf8View;
            let dictionary = Dictionary::new(&labels, record.sorted, text)?;
            Ok::<_, Error>(Arc::new(dictionary))
        };
        Ok(Some(slot.loaded.get_or_try_init(load).await?.clone()))
    }

    /// Whether the codes of the column can be worked on instead of its values: it has a dictionary, all blocks store
    /// codes into it, and the tail is empty.
    pub fn is_coded(&self, column: usize) -> bool {
        let coded = |block: &Block| {
            let matrix = &block.columns[column];
            matrix.nulls == block.rows || matches!(matrix.encoding, Encoding::Code { .. })
        };
        self.body.dictionaries[column].record.is_some()
            && self.body.tail.is_empty()
            && self.body.blocks.iter().all(|block| coded(&block.value))
    }
}
