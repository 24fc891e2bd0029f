//! Where rows have been put that were just appended.

use std::ops::Range;

use store::Transaction;

use crate::catalog::space::{definition, space};
use crate::error::Result;
use crate::format::block::Block;
use crate::format::record::damaged;
use crate::format::row_id::RowId;
use crate::format::{key, tail};
use crate::schema::Definition;
use crate::write::insert::DIRECT_ROWS;

/// The row ids, values of [`crate::ROW_COLUMN`], of the `count` rows that `tx` has appended last to a table, in the order in
/// which they came. They came through one [`insert`](crate::insert) or one [`Loader`](crate::Loader), which loads no fewer
/// rows than an insert that passes the tail by, and nothing has changed the table since. Fewer ids if the table has fewer rows.
///
/// # Errors
/// [`Error::NoTable`](crate::Error::NoTable); for records that are damaged.
pub fn last_rows(tx: &Transaction, name: &str, count: u64) -> Result<Vec<u64>> {
    let space = space(tx, name)?;
    let definition = definition(tx, name)?;
    let last = tx.prefix(space, key::TAIL).last();
    // What does not pass the tail by is in its last chunk, unless it has filled the tail, which is empty then.
    if count < DIRECT_ROWS as u64
        && let Some((entry, bytes)) = last
    {
        let chunk = in_chunk(&entry, &bytes, &definition, count);
        let chunk = chunk.ok_or_else(|| damaged(&definition.name, "a chunk of its tail"))?;
        return Ok(chunk.collect());
    }
    let blocks: Vec<_> = tx.prefix(space, key::BLOCK).collect();
    let (mut left, mut found) = (count, Vec::new());
    for (entry, bytes) in blocks.iter().rev() {
        if left == 0 {
            break;
        }
        let block = Block::decode(bytes, name)?;
        let number = key::number(entry).ok_or_else(|| damaged(name, "the number of a block"))?;
        let first = RowId::Block {
            key: number,
            row: 0,
        };
        let rows = last_of(first, u64::from(block.rows), left);
        left -= rows.end - rows.start;
        found.push(rows);
    }
    Ok(found.into_iter().rev().flatten().collect())
}

/// The ids of the last rows of a chunk that was just inserted; none if it is damaged.
fn in_chunk(entry: &[u8], bytes: &[u8], definition: &Definition, count: u64) -> Option<Range<u64>> {
    let decoded = || Some(tail::decode(bytes, definition)?.len());
    let rows = tail::rows(bytes).or_else(decoded)?;
    let first = RowId::Tail {
        key: key::number(entry)?,
        row: 0,
    };
    Some(last_of(first, rows as u64, count))
}

/// The ids of the last `count` of `rows` rows, the first of which is `first`.
fn last_of(first: RowId, rows: u64, count: u64) -> Range<u64> {
    let end = first.number() + rows;
    end - rows.min(count)..end
}
