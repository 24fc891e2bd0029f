//! Stretches of blocks in which the keys ascend: a range for each, by its greatest key. No two ranges overlap.

use std::ops::RangeInclusive;

use store::{Snapshot, Transaction};

use crate::error::Result;
use crate::format::key;
use crate::format::record::damaged;

/// The greatest length of a key that bounds a range: the catalog is in memory.
pub(crate) const LONGEST: usize = 128;

/// Rows of a block whose keys ascend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub block: u32,
    /// The first and the last of them.
    pub rows: RangeInclusive<u16>,
}

impl Stretch {
    /// Whether it comes right behind another in their block.
    pub(crate) fn follows(&self, other: &Stretch) -> bool {
        let next = u32::from(*other.rows.end()) + 1;
        self.block == other.block && u32::from(*self.rows.start()) == next
    }
}

/// The rows in whose range a key lies.
///
/// # Errors
/// [`crate::Error::Damaged`].
pub(crate) fn find(
    snapshot: &Snapshot,
    (table, space): (&str, u32),
    number: u32,
    wanted: &[u8],
) -> Result<Option<Stretch>> {
    match meeting(snapshot, (table, space), number, wanted)? {
        Some((stretch, least)) if *least <= *wanted => Ok(Some(stretch)),
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

/// The first range that does not end before `wanted`: its rows and its least key.
fn meeting(
    snapshot: &Snapshot,
    (table, space): (&str, u32),
    number: u32,
    wanted: &[u8],
) -> Result<Option<(Stretch, Vec<u8>)>> {
    let prefix = key::index(number, key::KEY_RANGE);
    let from = [&prefix, wanted].concat();
    let Some((_, value)) = snapshot.prefix_from(space, &prefix, &from).next() else {
        return Ok(None);
    };
    let stretch = || {
        let (block, rest) = value.split_first_chunk::<4>()?;
        let (first, rest) = rest.split_first_chunk::<2>()?;
        let (last, least) = rest.split_first_chunk::<2>()?;
        let stretch = Stretch {
            block: u32::from_le_bytes(*block),
            rows: u16::from_le_bytes(*first)..=u16::from_le_bytes(*last),
        };
        Some((stretch, least.to_vec()))
    };
    let found = stretch().ok_or_else(|| damaged(table, "a range of its index"))?;
    Ok(Some(found))
}

/// Records the range of a stretch, which overlaps no other.
pub(crate) fn put(
    tx: &mut Transaction,
    space: u32,
    number: u32,
    stretch: &Stretch,
    (least, greatest): (&[u8], &[u8]),
) {
    let entry = [&key::index(number, key::KEY_RANGE), greatest].concat();
    let rows = [*stretch.rows.start(), *stretch.rows.end()].map(u16::to_le_bytes);
    let value = [&stretch.block.to_le_bytes(), rows.as_flattened(), least].concat();
    tx.put(space, &entry, &value);
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
