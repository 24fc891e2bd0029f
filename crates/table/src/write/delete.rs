//! Deleting rows.

use std::collections::BTreeMap;

use roaring::RoaringBitmap;
use store::Transaction;

use crate::catalog::space::{changed, definition, space};
use crate::error::{Error, Result};
use crate::format::block::Block;
use crate::format::record::damaged;
use crate::format::row_id::RowId;
use crate::format::{key, tail};
use crate::index::maintain;
use crate::index::settle::Place;
use crate::schema::Definition;
use crate::write::insert::next_chunk;

/// Deletes rows by their row ids, the values of [`crate::ROW_COLUMN`], and returns their number. Rows
/// that are deleted already do not count.
///
/// # Errors
/// [`Error::NoTable`]; [`Error::Mismatch`] for an id that no row ever had.
pub fn delete(tx: &mut Transaction, name: &str, rows: &[u64]) -> Result<u64> {
    let space = space(tx, name)?;
    let definition = definition(tx, name)?;
    let mut blocks: BTreeMap<u32, RoaringBitmap> = BTreeMap::new();
    let mut in_tail = Vec::new();
    for number in rows {
        match RowId::of(*number) {
            RowId::Block { key, row } => {
                blocks.entry(key).or_default().insert(row.into());
            }
            RowId::Tail { .. } => in_tail.push(*number),
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
    in_tail.sort_unstable();
    for (number, gone) in by_chunk(tx, place, &in_tail)? {
        deleted += delete_in_chunk(tx, place, number, gone)?;
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
    let block = Block::decode(&bytes, name)?;
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

/// The chunks of the tail that may have the rows of these ids, which ascend.
///
/// # Errors
/// For an id that no row ever had.
fn by_chunk<'r>(
    tx: &Transaction,
    Place { space, definition }: Place<'_>,
    mut rows: &'r [u64],
) -> Result<Vec<(u32, &'r [u64])>> {
    let name = &definition.name;
    let chunk_of = |id: u64| match RowId::of(id) {
        RowId::Tail { key, .. } | RowId::Block { key, .. } => key,
    };
    let mut chunks = Vec::new();
    while let Some(first) = rows.first() {
        let from = key::numbered(key::TAIL, chunk_of(*first));
        let Some((entry, _)) = tx.prefix_from(space, key::TAIL, &from).next() else {
            let next = next_chunk(tx, space);
            let is_given = rows.last().is_none_or(|last| chunk_of(*last) < next);
            return is_given.then_some(chunks).ok_or_else(|| unknown_row(name));
        };
        let number = key::number(&entry).ok_or_else(|| damaged(name, "a chunk of its tail"))?;
        let (own, rest) = rows.split_at(rows.partition_point(|id| chunk_of(*id) <= number));
        chunks.push((number, own));
        rows = rest;
    }
    Ok(chunks)
}

/// Removes the rows of these ids, as far as the chunk has them; says how many it had.
fn delete_in_chunk(
    tx: &mut Transaction,
    place: Place<'_>,
    number: u32,
    gone: &[u64],
) -> Result<u64> {
    let Place { space, definition } = place;
    let damaged = || damaged(&definition.name, "a chunk of its tail");
    let entry = key::numbered(key::TAIL, number);
    let bytes = tx.get(space, &entry).ok_or_else(damaged)?;
    let chunk = tail::decode(&bytes, definition).ok_or_else(damaged)?;
    let mut keep = vec![true; chunk.len()];
    for id in gone {
        if let Some(row) = chunk.position(number, *id) {
            keep[usize::from(row)] = false;
        }
    }
    let kept = chunk.kept(number, &keep.into())?;
    if kept.len() == 0 {
        tx.delete(space, &entry);
        maintain::remove_chunk(tx, place, number);
    } else if kept.len() < chunk.len() {
        tx.put(space, &entry, &tail::encode(&kept)?);
        maintain::put_chunk(tx, place, number, &kept.rows)?;
    }
    Ok((chunk.len() - kept.len()) as u64)
}

fn unknown_row(name: &str) -> Error {
    let what = "a row number that is not one of the table's".to_owned();
    Error::Mismatch {
        table: name.to_owned(),
        what,
    }
}
