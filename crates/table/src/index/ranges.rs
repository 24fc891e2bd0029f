//! Blocks in which the keys ascend: a range for each, by its greatest key. No two ranges overlap.

use store::{Snapshot, Transaction};

use crate::error::Result;
use crate::format::key;
use crate::format::record::damaged;

/// The greatest length of a key that bounds a range: the catalog is in memory.
pub(crate) const LONGEST: usize = 128;

/// The block in whose range a key lies.
///
/// # Errors
/// [`crate::Error::Damaged`].
pub(crate) fn find(
    snapshot: &Snapshot,
    (table, space): (&str, u32),
    number: u32,
    wanted: &[u8],
) -> Result<Option<u32>> {
    match meeting(snapshot, (table, space), number, wanted)? {
        Some((block, least)) if *least <= *wanted => Ok(Some(block)),
        _ => Ok(None),
    }
}

/// Whether a range has a key from `least` to `greatest`.
///
/// # Errors
/// [`crate::Error::Damaged`].
pub(crate) fn overlaps(
    snapshot: &Snapshot,
    table: (&str, u32),
    number: u32,
    (least, greatest): (&[u8], &[u8]),
) -> Result<bool> {
    let next = meeting(snapshot, table, number, least)?;
    Ok(next.is_some_and(|(_, other)| *other <= *greatest))
}

/// The first range that does not end before `wanted`: its block and its least key.
fn meeting(
    snapshot: &Snapshot,
    (table, space): (&str, u32),
    number: u32,
    wanted: &[u8],
) -> Result<Option<(u32, Vec<u8>)>> {
    let prefix = key::index(number, key::KEY_RANGE);
    let from = [&prefix, wanted].concat();
    let Some((_, value)) = snapshot.prefix_from(space, &prefix, &from).next() else {
        return Ok(None);
    };
    let Some((block, least)) = value.split_first_chunk::<4>() else {
        return Err(damaged(table, "a range of its index"));
    };
    Ok(Some((u32::from_le_bytes(*block), least.to_vec())))
}

/// Records the range of a block, which overlaps no other.
pub(crate) fn put(
    tx: &mut Transaction,
    space: u32,
    number: u32,
    block: u32,
    (least, greatest): (&[u8], &[u8]),
) {
    let entry = [&key::index(number, key::KEY_RANGE), greatest].concat();
    tx.put(space, &entry, &[&block.to_le_bytes(), least].concat());
}

/// Removes the ranges of blocks that are gone; `gone` is ascending.
pub(crate) fn remove(tx: &mut Transaction, space: u32, number: u32, gone: &[u32]) {
    let of = |value: &[u8]| Some(u32::from_le_bytes(*value.first_chunk::<4>()?));
    let entries = tx.prefix(space, &key::index(number, key::KEY_RANGE));
    let entries = entries
        .filter(|(_, value)| of(value).is_some_and(|block| gone.binary_search(&block).is_ok()));
    for (entry, _) in entries.collect::<Vec<_>>() {
        tx.delete(space, &entry);
    }
}
