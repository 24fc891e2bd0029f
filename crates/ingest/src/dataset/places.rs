//! Columns that no file has: its name, and the number of each row in it.

use std::sync::{Arc, LazyLock};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, FieldRef};

use crate::error::Result;
use crate::piece::Piece;

/// The column with the name of the file that a row is of, as it was found.
pub const FILE_NAME: &str = "__file_name";

/// The column with the number of each row in its file, from 0.
pub const FILE_ROW: &str = "__file_row";

/// Both, in this order, behind the columns of a dataset.
static FIELDS: LazyLock<[FieldRef; 2]> = LazyLock::new(|| {
    [
        Arc::new(Field::new(FILE_NAME, DataType::Utf8View, false)),
        Arc::new(Field::new(FILE_ROW, DataType::Int64, false)),
    ]
});

/// The first or the second of them.
pub(super) fn field(place: usize) -> FieldRef {
    Arc::clone(&FIELDS[place.min(1)])
}

/// Numbers the rows of the pieces of one file.
pub(super) struct Numbered {
    /// Rows of the pieces so far.
    rows: u64,
    /// The first row of each piece, if they are known beforehand, and the number of the first piece.
    known: Option<(Vec<u64>, u64)>,
}

impl Numbered {
    /// For the pieces of a file whose groups have so many rows, if that is known, of which those parts are left out for which `keep` is false; the first has this number.
    pub fn new(groups: Option<Vec<u64>>, keep: Option<&[bool]>, number: u64) -> Numbered {
        let known = groups.map(|groups| {
            let mut before = 0;
            let starts = groups.into_iter().enumerate().filter_map(|(group, rows)| {
                let start = before;
                before += rows;
                let kept = keep.is_none_or(|keep| keep.get(group).copied().unwrap_or(true));
                kept.then_some(start)
            });
            (starts.collect(), number)
        });
        Numbered { rows: 0, known }
    }

    /// The number of the first row of the next piece. One of unknown length is decoded to know where the one after it
    /// begins.
    ///
    /// # Errors
    /// Those of decoding it.
    pub fn first(&mut self, piece: &mut Piece) -> Result<u64> {
        if let Some((starts, number)) = &self.known {
            let place = piece.number.saturating_sub(*number) as usize;
            return Ok(starts.get(place).copied().unwrap_or_default());
        }
        let first = self.rows;
        let rows = match piece.rows {
            Some(rows) => rows,
            None => {
                let read = std::mem::replace(
                    &mut piece.read,
                    Box::new(|| Ok(Box::new(std::iter::empty()))),
                );
                let batches = read()?.collect::<Result<Vec<RecordBatch>>>()?;
                let rows = batches.iter().map(RecordBatch::num_rows).sum::<usize>() as u64;
                piece.rows = Some(rows);
                piece.read = Box::new(move || Ok(Box::new(batches.into_iter().map(Ok))));
                rows
            }
        };
        self.rows += rows;
        Ok(first)
    }
}
