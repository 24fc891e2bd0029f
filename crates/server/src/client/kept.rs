//! The rows of a cursor that it has read, for as long as it may come back to them.

use std::collections::VecDeque;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::datatypes::DataType;

use crate::wire::backend::Report;

/// How many bytes of passed rows a cursor keeps of which nobody said whether it is to go back.
const WINDOW: u64 = 1 << 20;

/// What of the rows that were passed is kept.
pub(crate) enum Keeps {
    Nothing,
    /// The last of them.
    Some,
    /// All, in memory that is accounted for.
    All(atoll::Account),
}

/// Rows in the order in which they came.
pub(crate) struct Kept {
    keeps: Keeps,
    /// Rows, and how many came before them.
    batches: VecDeque<(u64, RecordBatch)>,
    /// How many rows have come.
    rows: u64,
    /// What those that are kept take.
    bytes: u64,
    /// No more will come.
    pub ended: bool,
}

impl Kept {
    pub(crate) fn new(keeps: Keeps) -> Kept {
        Kept {
            keeps,
            batches: VecDeque::new(),
            rows: 0,
            bytes: 0,
            ended: false,
        }
    }

    /// Whether it may go back.
    pub(crate) fn scrolls(&self) -> bool {
        !matches!(self.keeps, Keeps::Nothing)
    }

    /// How many rows have come.
    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// How many of them are there no more.
    pub(crate) fn dropped(&self) -> u64 {
        self.batches
            .front()
            .map_or(self.rows, |(before, _)| *before)
    }

    /// Takes rows up that come behind the others.
    ///
    /// # Errors
    /// If all are to be kept and there is no memory for them.
    pub(crate) fn push(&mut self, batch: RecordBatch) -> Result<(), Report> {
        let mut batch = batch;
        if let Keeps::All(account) = &self.keeps {
            batch = apart(&batch);
            account.take(size(&batch)).map_err(|e| Report {
                hint: Some(
                    "A cursor that scrolls keeps the rows that it has read: declare it with NO SCROLL, fetch less, or put the rows in a temporary table."
                        .into(),
                ),
                ..Report::error("53200", e.to_string())
            })?;
        }
        self.bytes += size(&batch);
        let before = self.rows;
        self.rows += batch.num_rows() as u64;
        if batch.num_rows() > 0 {
            self.batches.push_back((before, batch));
        }
        Ok(())
    }

    /// Up to `most` of the rows behind the row of this number.
    pub(crate) fn behind(&self, row: u64, most: u64) -> Option<RecordBatch> {
        let (before, batch) = self.holding(row + 1)?;
        let from = row - before;
        let count = (batch.num_rows() as u64 - from).min(most);
        Some(batch.slice(from as usize, count as usize))
    }

    /// Up to `most` of the rows before the row of this number, in their own order.
    pub(crate) fn before(&self, row: u64, most: u64) -> Option<RecordBatch> {
        let (before, batch) = self.holding(row.checked_sub(1)?)?;
        let there = row - 1 - before;
        let count = there.min(most);
        Some(batch.slice((there - count) as usize, count as usize))
    }

    /// The rows among which is the one of this number, counted from 1, and how many came before them.
    fn holding(&self, number: u64) -> Option<(u64, &RecordBatch)> {
        let behind = self.batches.partition_point(|(before, _)| *before < number);
        let (before, batch) = self.batches.get(behind.checked_sub(1)?)?;
        (number <= before + batch.num_rows() as u64).then_some((*before, batch))
    }

    /// Drops what is not kept of the rows up to the one of this number.
    pub(crate) fn passed(&mut self, row: u64) {
        let room = match self.keeps {
            Keeps::Nothing => 0,
            Keeps::Some => WINDOW,
            Keeps::All(_) => return,
        };
        while self.bytes > room
            && let Some((before, batch)) = self.batches.front()
            && before + batch.num_rows() as u64 <= row
        {
            self.bytes -= size(batch);
            self.batches.pop_front();
        }
    }
}

/// The bytes that rows hold.
fn size(batch: &RecordBatch) -> u64 {
    batch.get_array_memory_size() as u64
}

/// The rows with texts of their own: those of a table lie in pages of the buffer pool, which would stay in memory with them.
fn apart(batch: &RecordBatch) -> RecordBatch {
    let columns = batch.columns().iter().map(|column| -> ArrayRef {
        match column.data_type() {
            DataType::Utf8View => Arc::new(column.as_string_view().gc()),
            DataType::BinaryView => Arc::new(column.as_binary_view().gc()),
            _ => Arc::clone(column),
        }
    });
    let columns = columns.collect();
    RecordBatch::try_new(batch.schema(), columns).unwrap_or_else(|_| batch.clone())
}

#[cfg(test)]
mod tests {
    use arrow::array::Int64Array;
    use arrow::datatypes::Int64Type;

    use super::*;

    fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
        let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
        RecordBatch::try_from_iter([("n", numbers)]).unwrap()
    }

    fn firsts(batch: Option<RecordBatch>) -> Vec<i64> {
        batch.map_or_else(Vec::new, |batch| {
            batch
                .column(0)
                .as_primitive::<Int64Type>()
                .values()
                .to_vec()
        })
    }

    #[test]
    fn rows_are_found_by_their_numbers() {
        let mut kept = Kept::new(Keeps::Some);
        kept.push(numbers(1..4)).unwrap();
        kept.push(numbers(0..0)).unwrap();
        kept.push(numbers(4..6)).unwrap();
        assert_eq!((kept.rows(), kept.dropped()), (5, 0));
        assert_eq!(firsts(kept.behind(0, 2)), [1, 2]);
        assert_eq!(firsts(kept.behind(2, 9)), [3]);
        assert_eq!(firsts(kept.behind(3, 9)), [4, 5]);
        assert!(kept.behind(5, 1).is_none());
        assert_eq!(firsts(kept.before(6, 1)), [5]);
        assert_eq!(firsts(kept.before(5, 9)), [4]);
        assert_eq!(firsts(kept.before(4, 2)), [2, 3]);
        assert!(kept.before(1, 1).is_none());
        assert!(kept.before(0, 1).is_none());
    }

    #[test]
    fn what_is_not_kept_goes() {
        let mut kept = Kept::new(Keeps::Nothing);
        kept.push(numbers(1..4)).unwrap();
        kept.push(numbers(4..6)).unwrap();
        kept.passed(2);
        assert_eq!(kept.dropped(), 0);
        kept.passed(4);
        assert_eq!((kept.rows(), kept.dropped()), (5, 3));
        assert_eq!(firsts(kept.behind(4, 9)), [5]);
        kept.passed(5);
        assert_eq!(kept.dropped(), 5);
        let mut kept = Kept::new(Keeps::Some);
        kept.push(numbers(1..4)).unwrap();
        kept.passed(3);
        assert_eq!(kept.dropped(), 0);
        kept.push(numbers(0..1_000_000)).unwrap();
        kept.passed(3);
        assert_eq!(kept.dropped(), 3);
    }
}
