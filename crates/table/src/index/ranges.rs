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

/// The range of a stretch: its least and its greatest key.
#[derive(Debug)]
pub(crate) struct Range {
    pub stretch: Stretch,
    least: Box<[u8]>,
    greatest: Box<[u8]>,
}

impl Range {
    /// Whether a key lies in it.
    pub(crate) fn has(&self, key: &[u8]) -> bool {
        *self.least <= *key && *key <= *self.greatest
    }
}

/// The range in which a key lies.
///
/// # Errors
/// [`crate::Error::Damaged`].
pub(crate) fn find(
    snapshot: &Snapshot,
    table: (&str, u32),
    number: u32,
    wanted: &[u8],
) -> Result<Option<Range>> {
    let range = meeting(snapshot, table, number, wanted)?;
    Ok(range.filter(|range| range.has(wanted)))
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
    Ok(next.is_some_and(|other| *other.least <= *greatest))
}

/// The first range that does not end before `wanted`.
fn meeting(
    snapshot: &Snapshot,
    (table, space): (&str, u32),
    number: u32,
    wanted: &[u8],
) -> Result<Option<Range>> {
    let prefix = key::index(number, key::KEY_RANGE);
    let from = [&prefix, wanted].concat();
    let Some((entry, value)) = snapshot.prefix_from(space, &prefix, &from).next() else {
        return Ok(None);
    };
    let range = || {
        let (block, rest) = value.split_first_chunk::<4>()?;
        let (first, rest) = rest.split_first_chunk::<2>()?;
        let (last, least) = rest.split_first_chunk::<2>()?;
        Some(Range {
            stretch: Stretch {
                block: u32::from_le_bytes(*block),
                rows: u16::from_le_bytes(*first)..=u16::from_le_bytes(*last),
            },
            least: least.into(),
            greatest: entry[prefix.len()..].into(),
        })
    };
    let found = range().ok_or_else(|| damaged(table, "a range of its index"))?;
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
