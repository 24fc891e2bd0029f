//! Deleting rows.

use std::collections::BTreeMap;

use arrow::array::BooleanArray;
use arrow::compute::filter_record_batch;
use roaring::RoaringBitmap;
use store::Transaction;

use crate::catalog::space::{changed, definition, space};
use crate::error::{Error, Result};
use crate::format::block::Block;
use crate::format::record::{damaged, decode};
use crate::format::row_id::RowId;
use crate::format::{key, tail};
use crate::index::maintain;
use crate::index::settle::Place;
use crate::schema::Definition;

/// Deletes rows by their row ids, the values of [`crate::ROW_COLUMN`], and returns their number. Rows
/// that are deleted already do not count.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Mismatch`] for an id that no row ever had.
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
    let (mut deleted, mut whole) = (0, Vec::new());
    for (number, gone) in blocks {
        let (count, is_whole) = delete_in_block(tx, space, &definition, number, gone)?;
        deleted += count;
        whole.extend(is_whole.then_some(number));
    }
    let place = Place {
        space,
        definition: &definition,
    };
    maintain::remove_blocks(tx, place, &whole);
    for (number, gone) in chunks {
        deleted += delete_in_tail(tx, space, &definition, number, &gone)?;
    }
    if deleted > 0 {
        changed(tx, name, space)?;
    }
    Ok(deleted)
}

/// Marks rows as deleted; says how many were not yet, and whether the block is gone.
fn delete_in_block(
    tx: &mut Transaction,
    space: u32,
    definition: &Definition,
    number: u32,
    gone: RoaringBitmap,
) -> Result<(u64, bool)> {
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
    let whole = all.len() == u64::from(block.rows);
    if whole {
        block.page_ids().for_each(|page| tx.free_page(page));
        tx.delete(space, &entry);
        tx.delete(space, &marks);
    } else {
        let mut bytes = Vec::with_capacity(all.serialized_size());
        all.serialize_into(&mut bytes)
            .map_err(|e| Error::Test(Box::new(e)))?;
        tx.put(space, &marks, &bytes);
    }
    Ok((all.len() - count, whole))
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
    let place = Place { space, definition };
    if kept.num_rows() == 0 {
        tx.delete(space, &entry);
        maintain::remove_chunk(tx, place, number);
    } else {
        tx.put(space, &entry, &tail::encode(&kept)?);
        maintain::put_chunk(tx, place, number, &kept)?;
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
