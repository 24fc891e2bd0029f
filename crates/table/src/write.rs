//! Changing tables: create, drop, insert, delete. Everything happens in a transaction of the
//! store, so it is all there after a commit and not at all before.

use std::collections::BTreeMap;

use arrow::array::{BooleanArray, RecordBatch};
use arrow::compute::{concat_batches, filter_record_batch};
use roaring::RoaringBitmap;
use store::Transaction;

use crate::block::Block;
use crate::dictionary::DictionaryRecord;
use crate::error::{Error, Result};
use crate::key;
use crate::load::Loader;
use crate::obsolete;
use crate::schema::{Definition, DefinitionRecord, normalise};
use crate::tail::{self, RowId};

/// Creates an empty table.
///
/// # Errors
/// [`Error::Exists`]; those of [`Definition::validate`]; [`Error::NoTable`] and [`Error::Key`]
/// for a foreign key to a table or columns that do not exist.
pub fn create(tx: &mut Transaction, definition: &Definition) -> Result<()> {
    definition.validate()?;
    if space(tx, &definition.name).is_ok() {
        return Err(Error::Exists {
            name: definition.name.clone(),
        });
    }
    for foreign in &definition.foreign_keys {
        let itself = foreign.parent == definition.name;
        let parent = if itself {
            definition.clone()
        } else {
            self::definition(tx, &foreign.parent)?
        };
        for column in &foreign.parent_columns {
            parent.position(column)?;
        }
    }
    let record = DefinitionRecord::of(definition).ok_or_else(|| Error::Mismatch {
        table: definition.name.clone(),
        what: "a type has no place in the catalog".to_owned(),
    })?;
    let space = tx.new_space();
    tx.put(
        key::DIRECTORY,
        &key::table(&definition.name),
        &space.to_le_bytes(),
    );
    tx.put(space, key::DEFINITION, &encode(&record, &definition.name)?);
    changed(tx, &definition.name, space)
}

/// Drops a table and frees its pages.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Key`] if another table refers to it.
pub fn drop(tx: &mut Transaction, name: &str) -> Result<()> {
    let space = space(tx, name)?;
    let others: Vec<_> = tx.prefix(key::DIRECTORY, key::TABLE).collect();
    for (entry, value) in others {
        let (other, _) = key::directory_entry(&entry, &value)?;
        let refers = other != name
            && definition(tx, &other)?
                .foreign_keys
                .iter()
                .any(|k| k.parent == name);
        if refers {
            let what = format!("table '{other}' refers to it; drop that one first");
            return Err(Error::Key {
                table: name.to_owned(),
                what,
            });
        }
    }
    clear(tx, name, space)?;
    tx.delete_space(space);
    tx.delete(key::DIRECTORY, &key::table(name));
    Ok(())
}

/// Removes all rows of a table and gives their number.
///
/// # Errors
/// [`Error::NoTable`].
pub fn truncate(tx: &mut Transaction, name: &str) -> Result<()> {
    let space = space(tx, name)?;
    clear(tx, name, space)?;
    changed(tx, name, space)
}

/// Frees every page of a table and removes its rows.
fn clear(tx: &mut Transaction, name: &str, space: u32) -> Result<()> {
    for (entry, bytes) in tx.prefix(space, key::BLOCK).collect::<Vec<_>>() {
        free_block(tx, &decode::<Block>(&bytes, name)?)?;
        tx.delete(space, &entry);
    }
    for (entry, bytes) in tx.prefix(space, key::DICTIONARY).collect::<Vec<_>>() {
        free_dictionary(tx, &decode::<DictionaryRecord>(&bytes, name)?)?;
        tx.delete(space, &entry);
    }
    obsolete::remove(tx, name, space)?;
    for prefix in [key::TAIL, key::DELETED] {
        for (entry, _) in tx.prefix(space, prefix).collect::<Vec<_>>() {
            tx.delete(space, &entry);
        }
    }
    Ok(())
}

fn free_block(tx: &mut Transaction, block: &Block) -> Result<()> {
    for id in block.columns.iter().flat_map(|matrix| matrix.page_ids()) {
        tx.free_page(id);
    }
    Ok(())
}

pub(crate) fn free_dictionary(tx: &mut Transaction, record: &DictionaryRecord) -> Result<()> {
    for page in &record.pages {
        tx.free_page(page.id);
        for id in &page.more {
            tx.free_page(*id);
        }
    }
    Ok(())
}

/// Appends rows, whose columns stand in the table's order, and gives their number. Few rows go
/// to the logged tail, many to blocks.
///
/// # Errors
/// [`Error::NoTable`]; those of [`normalise`]; those of the store. After an error the
/// transaction must be dropped.
pub async fn insert(
    tx: Transaction,
    name: &str,
    batches: &[RecordBatch],
) -> Result<(Transaction, u64)> {
    let mut tx = tx;
    let definition = definition(&tx, name)?;
    let batches = batches
        .iter()
        .map(|b| normalise(b, &definition))
        .collect::<Result<Vec<_>>>()?;
    let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
    if rows >= tail::DIRECT_ROWS {
        return append_blocks(tx, name, &batches).await;
    }
    if rows > 0 {
        let batch = concat_batches(&definition.schema(), &batches)?;
        tx = append_tail(tx, name, &definition, &batch).await?;
    }
    Ok((tx, rows as u64))
}

/// Puts whole batches into blocks of up to 65,536 rows.
async fn append_blocks(
    tx: Transaction,
    name: &str,
    batches: &[RecordBatch],
) -> Result<(Transaction, u64)> {
    let loader = Loader::new(tx, name).await?;
    let mut chunker = crate::load::Chunker::default();
    let mut ordinal = 0;
    for batch in batches {
        for block in chunker.push(batch.clone()) {
            loader.block(ordinal, &block)?;
            ordinal += 1;
        }
    }
    if let Some(block) = chunker.rest() {
        loader.block(ordinal, &block)?;
    }
    loader.finish()
}

async fn append_tail(
    mut tx: Transaction,
    name: &str,
    definition: &Definition,
    batch: &RecordBatch,
) -> Result<Transaction> {
    let space = space(&tx, name)?;
    let chunks = tail_chunks(&tx, space, name, definition)?;
    let rows: usize = chunks.iter().map(|(_, c)| c.num_rows()).sum();
    if rows + batch.num_rows() >= tail::SEAL_ROWS {
        let mut all: Vec<_> = chunks.iter().map(|(_, chunk)| chunk.clone()).collect();
        all.push(batch.clone());
        for (number, _) in &chunks {
            tx.delete(space, &key::numbered(key::TAIL, *number));
        }
        return Ok(append_blocks(tx, name, &all).await?.0);
    }
    let small: Vec<_> = chunks
        .iter()
        .filter(|(_, c)| c.num_rows() < tail::SMALL_ROWS)
        .collect();
    let next = chunks.last().map_or(0, |(number, _)| number + 1);
    let mut merged = batch.clone();
    if small.len() >= tail::SMALL_CHUNKS {
        let parts = small.iter().map(|(_, chunk)| chunk).chain([batch]);
        merged = concat_batches(&definition.schema(), parts)?;
        for (number, _) in &small {
            tx.delete(space, &key::numbered(key::TAIL, *number));
        }
    }
    tx.put(
        space,
        &key::numbered(key::TAIL, next),
        &tail::encode(&merged)?,
    );
    changed(&mut tx, name, space)?;
    Ok(tx)
}

fn tail_chunks(
    tx: &Transaction,
    space: u32,
    name: &str,
    definition: &Definition,
) -> Result<Vec<(u32, RecordBatch)>> {
    let decode = |(entry, bytes): (_, std::sync::Arc<[u8]>)| {
        let entry: std::sync::Arc<[u8]> = entry;
        Some((key::number(&entry)?, tail::decode(&bytes, definition)?))
    };
    tx.prefix(space, key::TAIL)
        .map(|record| decode(record).ok_or_else(|| damaged(name, "a chunk of its tail")))
        .collect()
}

/// Deletes rows by the numbers that the hidden column `__row` gave and returns how many; a row
/// that is deleted already is not counted, one that never was is an error.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Mismatch`] for an unknown row.
pub fn delete(tx: &mut Transaction, name: &str, rows: &[u64]) -> Result<u64> {
    let space = space(tx, name)?;
    let definition = definition(tx, name)?;
    let mut blocks: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
    let mut chunks: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
    for number in rows {
        match RowId::of(*number) {
            RowId::Block { key, row } => blocks.entry(key).or_default().insert(row.into()),
            RowId::Tail { key, row } => chunks.entry(key).or_default().insert(row.into()),
        };
    }
    let mut deleted = 0;
    for (number, gone) in blocks {
        deleted += delete_in_block(tx, space, &definition, number, gone)?;
    }
    for (number, gone) in chunks {
        deleted += delete_in_tail(tx, space, &definition, number, &gone)?;
    }
    if deleted > 0 {
        changed(tx, name, space)?;
    }
    Ok(deleted)
}

fn delete_in_block(
    tx: &mut Transaction,
    space: u32,
    definition: &Definition,
    number: u32,
    gone: RoaringBitmap,
) -> Result<u64> {
    let name = &definition.name;
    let entry = key::numbered(key::BLOCK, number);
    let bytes = tx.get(space, &entry).ok_or_else(|| unknown_row(name))?;
    let block: Block = decode(&bytes, name)?;
    if gone.max().is_some_and(|row| row >= block.rows) {
        return Err(unknown_row(name));
    }
    let marks = key::numbered(key::DELETED, number);
    let before = match tx.get(space, &marks) {
        Some(bytes) => RoaringBitmap::deserialize_from(&bytes[..])
            .map_err(|_| damaged(name, "the record of deleted rows"))?,
        None => RoaringBitmap::new(),
    };
    let count = before.len();
    let all = before | gone;
    if all.len() == u64::from(block.rows) {
        free_block(tx, &block)?;
        tx.delete(space, &entry);
        tx.delete(space, &marks);
    } else {
        let mut bytes = Vec::with_capacity(all.serialized_size());
        all.serialize_into(&mut bytes)
            .map_err(|e| Error::Test(Box::new(e)))?;
        tx.put(space, &marks, &bytes);
    }
    Ok(all.len() - count)
}

fn delete_in_tail(
    tx: &mut Transaction,
    space: u32,
    definition: &Definition,
    number: u32,
    gone: &RoaringBitmap,
) -> Result<u64> {
    let entry = key::numbered(key::TAIL, number);
    let bytes = tx
        .get(space, &entry)
        .ok_or_else(|| unknown_row(&definition.name))?;
    let batch = tail::decode(&bytes, definition)
        .ok_or_else(|| damaged(&definition.name, "a chunk of its tail"))?;
    let keep: BooleanArray = (0..batch.num_rows() as u32)
        .map(|row| Some(!gone.contains(row)))
        .collect();
    let kept = filter_record_batch(&batch, &keep)?;
    match kept.num_rows() {
        0 => tx.delete(space, &entry),
        _ => tx.put(space, &entry, &tail::encode(&kept)?),
    }
    Ok((batch.num_rows() - kept.num_rows()) as u64)
}

fn unknown_row(name: &str) -> Error {
    let what = "a row number that is not one of the table's".to_owned();
    Error::Mismatch {
        table: name.to_owned(),
        what,
    }
}

/// The space of a table.
pub(crate) fn space(tx: &Transaction, name: &str) -> Result<u32> {
    let entry = key::table(name);
    match tx.get(key::DIRECTORY, &entry) {
        Some(value) => Ok(key::directory_entry(&entry, &value)?.1),
        None => Err(Error::NoTable {
            name: name.to_owned(),
        }),
    }
}

/// The definition of a table as the transaction sees it.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Damaged`].
pub fn definition(tx: &Transaction, name: &str) -> Result<Definition> {
    let space = space(tx, name)?;
    tx.get(space, key::DEFINITION)
        .and_then(|bytes| postcard::from_bytes::<DefinitionRecord>(&bytes).ok())
        .and_then(DefinitionRecord::definition)
        .ok_or_else(|| damaged(name, "its definition"))
}

/// Notes a change of the table's rows.
///
/// # Errors
/// [`Error::Damaged`] if what an earlier version left does not decode.
pub(crate) fn changed(tx: &mut Transaction, name: &str, space: u32) -> Result<()> {
    obsolete::remove(tx, name, space)?;
    for counter in [key::ROWS, key::STAMP] {
        let value = key::counter(tx.get(space, counter).as_deref()) + 1;
        tx.put(space, counter, &value.to_le_bytes());
    }
    Ok(())
}

pub(crate) fn damaged(name: &str, what: &str) -> Error {
    Error::Damaged {
        table: name.to_owned(),
        what: what.to_owned(),
    }
}

pub(crate) fn decode<T: serde::de::DeserializeOwned>(bytes: &[u8], name: &str) -> Result<T> {
    postcard::from_bytes(bytes).map_err(|_| damaged(name, "a record of its catalog"))
}

pub(crate) fn encode<T: serde::Serialize>(record: &T, name: &str) -> Result<Vec<u8>> {
    postcard::to_stdvec(record).map_err(|e| Error::Mismatch {
        table: name.to_owned(),
        what: format!("its record cannot be written: {e}"),
    })
}
