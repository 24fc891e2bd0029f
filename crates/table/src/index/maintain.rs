//! What changes of tables do to the indexes of their keys.

use std::collections::HashMap;

use arrow::array::RecordBatch;
use store::{Snapshot, Transaction};

use crate::error::Result;
use crate::format::keys::hash;
use crate::format::record::damaged;
use crate::format::run::Run;
use crate::format::{key, tail};
use crate::index::duplicate::duplicate;
use crate::index::find::{Index, behind, is_current};
use crate::index::keys::Keys;
use crate::index::settle::{Place, build};
use crate::index::stock::Stock;
use crate::index::{chunks, ranges};
use crate::schema::{Definition, Key};

/// That the index of each key is that of the rows.
///
/// # Errors
/// [`crate::Error::Key`] names the key of one that is not.
pub(crate) fn current(view: &Snapshot, space: u32, definition: &Definition) -> Result<()> {
    let mut keys = definition.keys.iter();
    match keys.find(|key| !is_current(view, space, key.number)) {
        None => Ok(()),
        Some(key) => Err(behind(&definition.name, &key.name)),
    }
}

/// Makes the index of a key of a table without rows.
pub(crate) fn create(tx: &mut Transaction, space: u32, key: &Key) {
    let rows = key::counter(tx.get(space, key::ROWS).as_deref());
    tx.put(
        space,
        &key::index(key.number, key::KEY_TAG),
        &rows.to_le_bytes(),
    );
}

/// Makes the index of a key of a table with rows, of which no two may have the same.
///
/// # Errors
/// [`crate::Error::Duplicate`]; those of reading and writing pages.
pub(crate) async fn add(tx: &mut Transaction, place: Place<'_>, own: &Key) -> Result<()> {
    create(tx, place.space, own);
    let mut seen: HashMap<Vec<u8>, ()> = HashMap::new();
    for (entry, bytes) in tx.prefix(place.space, key::TAIL).collect::<Vec<_>>() {
        let damaged = || damaged(&place.definition.name, "a chunk of its tail");
        let chunk = tail::decode(&bytes, place.definition).ok_or_else(damaged)?;
        let keys = of(&chunk.rows, own)?;
        for (_, key) in keys.iter() {
            if seen.insert(key.to_vec(), ()).is_some() {
                return Err(duplicate(place.definition, own, key));
            }
        }
        let chunk = key::number(&entry).ok_or_else(damaged)?;
        chunks::put(tx, place.space, own.number, chunk, &keys);
    }
    build(tx, place, own).await
}

/// Removes the index of a key, and frees its pages.
///
/// # Errors
/// [`crate::Error::Damaged`].
pub(crate) fn remove(tx: &mut Transaction, place: Place<'_>, own: &Key) -> Result<()> {
    clear(tx, place, own)?;
    tx.delete(place.space, &key::index(own.number, key::KEY_TAG));
    Ok(())
}

/// Removes all rows from the index of a key, and frees its pages.
///
/// # Errors
/// [`crate::Error::Damaged`].
pub(crate) fn clear(tx: &mut Transaction, place: Place<'_>, own: &Key) -> Result<()> {
    for letter in [key::KEY_RANGE, key::KEY_RUN, key::KEY_CHUNK] {
        let prefix = key::index(own.number, letter);
        for (entry, bytes) in tx.prefix(place.space, &prefix).collect::<Vec<_>>() {
            if letter == key::KEY_RUN {
                let run = Run::of(bytes);
                let run =
                    run.ok_or_else(|| damaged(&place.definition.name, "a run of its index"))?;
                run.page_ids().for_each(|page| tx.free_page(page));
            }
            tx.delete(place.space, &entry);
        }
    }
    Ok(())
}

/// That the keys of these rows are new, also among themselves.
///
/// # Errors
/// [`crate::Error::Duplicate`]; [`crate::Error::Key`]; those of reading pages.
pub(crate) async fn are_new(tx: &Transaction, place: Place<'_>, rows: &RecordBatch) -> Result<()> {
    if place.definition.keys.is_empty() {
        return Ok(());
    }
    let view = tx.view();
    current(&view, place.space, place.definition)?;
    for key in &place.definition.keys {
        let keys = of(rows, key)?;
        let mut index = Index::new(Stock::new(&view, place.space, place.definition, None), key)?;
        let mut seen: HashMap<u64, Vec<&[u8]>> = HashMap::with_capacity(keys.len());
        for (_, own) in keys.iter() {
            let like = seen.entry(hash(own)).or_default();
            if like.contains(&own) || index.find(own).await?.is_some() {
                return Err(duplicate(place.definition, key, own));
            }
            like.push(own);
        }
    }
    Ok(())
}

fn of(rows: &RecordBatch, key: &Key) -> Result<Keys> {
    let columns = key.columns.iter().map(|c| rows.column(*c).clone());
    Keys::of(&columns.collect::<Vec<_>>())
}

/// Records the keys of a chunk of the tail, in place of those that it had.
///
/// # Errors
/// Of no rows of the table.
pub(crate) fn put_chunk(
    tx: &mut Transaction,
    place: Place<'_>,
    chunk: u32,
    rows: &RecordBatch,
) -> Result<()> {
    for key in &place.definition.keys {
        chunks::put(tx, place.space, key.number, chunk, &of(rows, key)?);
    }
    Ok(())
}

/// Forgets the keys of a chunk of the tail.
pub(crate) fn remove_chunk(tx: &mut Transaction, place: Place<'_>, chunk: u32) {
    for key in &place.definition.keys {
        chunks::remove(tx, place.space, key.number, chunk);
    }
}

/// Forgets blocks that are gone; their numbers ascend.
pub(crate) fn remove_blocks(tx: &mut Transaction, place: Place<'_>, gone: &[u32]) {
    if gone.is_empty() {
        return;
    }
    for key in &place.definition.keys {
        ranges::remove(tx, place.space, key.number, gone);
    }
}
