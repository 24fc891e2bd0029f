//! Decoding the catalog records of a table. Records that an earlier snapshot has decoded already are
//! shared with it.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::DataType;
use roaring::RoaringBitmap;
use store::Snapshot;

use crate::catalog::row_index;
use crate::catalog::sample::{COMPLETE_ROWS, SampleSlot};
use crate::catalog::table::{Body, DictionarySlot, Stored};
use crate::error::Result;
use crate::format::block::Block;
use crate::format::definition::DefinitionRecord;
use crate::format::dictionary::DictionaryRecord;
use crate::format::record::damaged;
use crate::format::{key, tail};
use crate::schema::Definition;

/// The table called `name` in its space, `before` being what an earlier snapshot had there.
///
/// # Errors
/// [`crate::Error::Damaged`] if a record does not decode.
pub(crate) fn body(
    snapshot: &Snapshot,
    name: &str,
    space: u32,
    before: Option<&Arc<Body>>,
) -> Result<Arc<Body>> {
    let damaged = |what: &str| damaged(name, what);
    let stamp = snapshot.get(space, key::STAMP);
    if let Some(body) = before.filter(|b| b.is_of(stamp.as_ref())) {
        return Ok(body.clone());
    }
    let record = snapshot.get(space, key::DEFINITION);
    let definition = DefinitionRecord::read(record.as_deref(), name)?;
    let page_size = snapshot.pool().page_size();
    let columns = definition.columns.len();
    let decode_block = |bytes: &[u8]| {
        let block = Block::read(bytes)?;
        block.is_sound(columns, page_size).then_some(block)
    };
    let old_blocks = before.map_or(&[][..], |b| &b.blocks);
    let blocks = records(snapshot, space, key::BLOCK, old_blocks, decode_block)
        .ok_or_else(|| damaged("the record of a block"))?;
    let old: Vec<_> = before.map_or(vec![], |b| b.deleted.values().cloned().collect());
    let deleted = records(snapshot, space, key::DELETED, &old, |bytes| {
        RoaringBitmap::deserialize_from(bytes).ok()
    })
    .ok_or_else(|| damaged("the record of deleted rows"))?;
    // Rows that were decoded with the labels of before are not those of an enum that has others.
    let types = |own: &Definition| -> Vec<DataType> {
        let columns = own.columns.iter();
        columns.map(|column| column.data_type.clone()).collect()
    };
    let alike = before.filter(|b| types(&b.definition) == types(&definition));
    let old_tail = alike.map_or(&[][..], |b| &b.tail);
    let tail = records(snapshot, space, key::TAIL, old_tail, |b| {
        tail::decode(b, &definition)
    })
    .ok_or_else(|| damaged("a chunk of its tail"))?;
    let dictionaries = (0..columns)
        .map(|column| dictionary_slot(snapshot, space, column, before))
        .collect::<Option<Vec<_>>>()
        .ok_or_else(|| damaged("the record of a dictionary"))?;
    let row_indexes = row_index::row_indexes(snapshot, space, definition.foreign_keys.len())
        .ok_or_else(|| damaged("the record of a row index"))?;
    let mut body = Body {
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
        sample: SampleSlot::default(),
    };
    if let Some(before) = before.filter(|before| is_nearly(before, &body)) {
        body.sample = before.sample.taken_over();
    }
    Ok(Arc::new(body))
}

/// Whether a sample of the rows of `before` is one of the rows of `body`: the same blocks, of which few rows were deleted, and few rows
/// that are in none.
fn is_nearly(before: &Body, body: &Body) -> bool {
    let mut both = before.blocks.iter().zip(&body.blocks);
    let types = |body: &Body| {
        let columns = body.definition.columns.iter();
        columns.map(|c| c.data_type.clone()).collect::<Vec<_>>()
    };
    let has_few_others = |body: &Body| {
        let rows = body.piece_rows();
        let deleted: u64 = body.deleted.values().map(|d| d.value.len()).sum();
        rows.stored() > COMPLETE_ROWS && rows.are_few(deleted + rows.in_tail() as u64)
    };
    has_few_others(before)
        && has_few_others(body)
        && before.blocks.len() == body.blocks.len()
        && both.all(|(old, new)| Arc::ptr_eq(&old.value, &new.value))
        && types(before) == types(body)
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

/// The dictionary of a column; one that is in memory stays there if its record is the same, and not only an equal one:
/// pages that were undone may have been written anew.
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
    let old = before.and_then(|b| b.dictionaries.get(column));
    let same = |old: &&DictionarySlot| old.bytes.as_ref().is_some_and(|b| Arc::ptr_eq(b, &bytes));
    let kept = old.filter(same).and_then(|old| old.loaded.get());
    let slot = DictionarySlot {
        record: Some(record),
        bytes: Some(bytes.clone()),
        loaded: Default::default(),
    };
    if let Some(dictionary) = kept {
        // The cell is new, so setting it cannot fail.
        let _ = slot.loaded.set(dictionary.clone());
    }
    Some(slot)
}
