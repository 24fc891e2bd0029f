//! Deleting the rows that a statement names by their ids.

use std::iter::Peekable;

use store::Transaction;

use crate::error::Result;

/// How many rows are deleted at once, about: their numbers take 8 MiB.
const AT_ONCE: usize = 1 << 20;

/// Deletes the rows with these ids, which ascend, and says how many of them were not deleted already.
pub(crate) fn remove_rows(
    ids: impl Iterator<Item = u64>,
    tx: &mut Transaction,
    name: &str,
) -> Result<u64> {
    let (mut ids, mut deleted) = (ids.peekable(), 0);
    loop {
        let some = together(&mut ids, AT_ONCE);
        if some.is_empty() {
            return Ok(deleted);
        }
        deleted += table::delete(tx, name, &some)?;
    }
}

/// The next `most` of `ids`, which ascend, and the rest of the last one's block or chunk of the tail: the rows of a
/// chunk get other numbers once some of them are deleted.
fn together(ids: &mut Peekable<impl Iterator<Item = u64>>, most: usize) -> Vec<u64> {
    let mut some: Vec<u64> = Vec::new();
    loop {
        let whole = |id: &u64| some.last().is_none_or(|last| last >> 16 == id >> 16);
        match ids.next_if(|id| some.len() < most || whole(id)) {
            Some(id) => some.push(id),
            None => return some,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_of_a_block_are_deleted_together() {
        let block = |number: u64, rows: u64| (0..rows).map(move |row| number << 16 | row);
        let all: Vec<u64> = block(1, 5).chain(block(2, 9)).chain(block(7, 1)).collect();
        let mut ids = all.iter().copied().peekable();
        assert_eq!(together(&mut ids, 3), all[..5]);
        assert_eq!(together(&mut ids, 9), all[5..14]);
        assert_eq!(together(&mut ids, 9), all[14..]);
        assert!(together(&mut ids, 9).is_empty());
    }
}
