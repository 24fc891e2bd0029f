//! Row ids: where a row is, in 64 bits.

/// The name of the hidden column of row ids, by which rows are deleted and updated. A row keeps its id until small inserts fill
/// a block and move to it; no other row gets that of one of them.
pub const ROW_COLUMN: &str = "__row";

/// Where a row lies. The hidden column `__row` tells it of a row in a block. A row of the tail keeps the number of where it lay
/// when it was inserted until it moves to a block, wherever it lies in the tail: see [`Chunk`](crate::format::tail::Chunk).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RowId {
    /// In the block of this number.
    Block { key: u32, row: u16 },
    /// In the chunk of the tail of this number, `row` counting those that the chunk has.
    Tail { key: u32, row: u16 },
}

/// Set in the row ids of the tail.
const TAIL_BIT: u64 = 1 << 63;

impl RowId {
    /// The value of the hidden column.
    pub(crate) fn number(self) -> u64 {
        match self {
            RowId::Block { key, row } => u64::from(key) << 16 | u64::from(row),
            RowId::Tail { key, row } => TAIL_BIT | u64::from(key) << 16 | u64::from(row),
        }
    }

    /// From a value of the hidden column.
    pub(crate) fn of(number: u64) -> RowId {
        let (key, row) = ((number >> 16) as u32, number as u16);
        if number & TAIL_BIT == 0 {
            RowId::Block { key, row }
        } else {
            RowId::Tail { key, row }
        }
    }
}
