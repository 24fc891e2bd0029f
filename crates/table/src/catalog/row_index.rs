//! Row indexes, which versions up to 0.1 kept beside foreign keys. Nothing reads what they say.
//!
//! A store of such a version may still have them. Until the table's rows change next, their pages
//! count as the table's ([`crate::Table::parts`]); that change removes them and frees their pages.
//! They are derived from the rows, so nothing is lost.

use std::collections::BTreeMap;

use buffer::PageId;
use store::{Snapshot, Transaction};

use crate::error::Result;
use crate::format::block::Matrix;
use crate::format::key;
use crate::format::record::decode;

/// Pages of the row indexes that a table has, by the number of the foreign key. An index without
/// pages counts, too. `None` if a record does not decode, or is of a key that the table lacks.
pub(crate) fn row_indexes(
    snapshot: &Snapshot,
    space: u32,
    foreign_keys: usize,
) -> Option<BTreeMap<usize, Vec<PageId>>> {
    let mut found: BTreeMap<usize, Vec<PageId>> = BTreeMap::new();
    for (entry, _) in snapshot.prefix(space, key::TAG) {
        found.entry(key::number(&entry)? as usize).or_default();
    }
    for (entry, bytes) in snapshot.prefix(space, key::INDEX) {
        let foreign = key::number(entry.get(..key::INDEX.len() + 4)?)?;
        let matrix: Matrix = postcard::from_bytes(&bytes).ok()?;
        let pages = found.entry(foreign as usize).or_default();
        pages.extend(matrix.page_ids());
    }
    let known = found
        .last_key_value()
        .is_none_or(|(key, _)| *key < foreign_keys);
    known.then_some(found)
}

/// Removes the row indexes of table `name` and frees their pages.
///
/// # Errors
/// [`crate::Error::Damaged`] if a record does not decode.
pub(crate) fn remove(tx: &mut Transaction, name: &str, space: u32) -> Result<()> {
    for (entry, _) in tx.prefix(space, key::TAG).collect::<Vec<_>>() {
        tx.delete(space, &entry);
    }
    for (entry, bytes) in tx.prefix(space, key::INDEX).collect::<Vec<_>>() {
        let matrix: Matrix = decode(&bytes, name)?;
        for page in matrix.page_ids() {
            tx.free_page(page);
        }
        tx.delete(space, &entry);
    }
    Ok(())
}
