//! Columns in memory that become Arrow's as they are read.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions};
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;

use crate::error::Result;
use crate::piece::{BATCH_ROWS, Batches, Column, PIECE_ROWS, Piece, Pieces, cast_to, schema_of};
use crate::stream::{Source, failed};

/// Columns that something else than Arrow holds, such as those of a data frame: only what a statement asks for becomes
/// an array, a few rows at a time, by the thread that works on them. See
/// [`Dataset::of_columns`](crate::Dataset::of_columns).
pub trait Columns: fmt::Debug + Send + Sync {
    /// How many rows each column has.
    fn rows(&self) -> usize;

    /// Bytes of all columns, about.
    fn bytes(&self) -> u64;

    /// Whether reading a column may have to wait. It is then read ahead, by a thread that may wait, and not by one that
    /// computes.
    fn waits(&self, column: usize) -> bool;

    /// Whether a column may have NULLs: true unless it is known, without reading it, that there are none.
    fn may_be_null(&self, column: usize) -> bool;

    /// The values of a column in a range of rows, with the type that the schema says.
    ///
    /// # Errors
    /// If a value has no such type.
    fn read(&self, column: usize, rows: Range<usize>) -> std::result::Result<ArrayRef, ArrowError>;
}

/// How many pieces there are.
pub(crate) fn count(columns: &dyn Columns) -> usize {
    columns.rows().div_ceil(PIECE_ROWS)
}

/// The pieces that a reader has, by `share`, of columns whose first piece has the number `first`.
pub(crate) fn pieces(
    held: &Arc<dyn Columns>,
    source: &Arc<Source>,
    wanted: &Arc<[Column]>,
    (first, share): (u64, (usize, usize)),
) -> Pieces {
    let (held, source, wanted) = (Arc::clone(held), Arc::clone(source), Arc::clone(wanted));
    let own = (0..count(&*held)).filter(move |piece| {
        let number = first + *piece as u64;
        number as usize % share.1 == share.0
    });
    Box::new(own.map(move |piece| -> Result<Piece> {
        let start = piece * PIECE_ROWS;
        let rows = start..held.rows().min(start + PIECE_ROWS);
        let ahead = |column: &Column| {
            let waits = held.waits(column.source);
            waits
                .then(|| held.read(column.source, rows.clone()))
                .transpose()
        };
        let ahead = wanted
            .iter()
            .map(ahead)
            .collect::<std::result::Result<Vec<_>, _>>();
        let making = Making {
            ahead: ahead.map_err(|error| failed(&source, &error))?,
            rows: rows.clone(),
            held: Arc::clone(&held),
            source: Arc::clone(&source),
            schema: schema_of(&wanted),
            wanted: Arc::clone(&wanted),
        };
        let width = held.bytes() / held.rows().max(1) as u64;
        Ok(Piece {
            number: first + piece as u64,
            rows: Some(rows.len() as u64),
            bytes: width * rows.len() as u64,
            read: Box::new(move || Ok(making.batches())),
        })
    }))
}

/// A piece whose arrays are made.
struct Making {
    held: Arc<dyn Columns>,
    source: Arc<Source>,
    wanted: Arc<[Column]>,
    schema: SchemaRef,
    rows: Range<usize>,
    /// Of each column that is wanted the values, if they were read ahead.
    ahead: Vec<Option<ArrayRef>>,
}

impl Making {
    fn batches(self) -> Batches {
        let starts = self.rows.clone().step_by(BATCH_ROWS);
        Box::new(starts.map(move |start| {
            let rows = start..self.rows.end.min(start + BATCH_ROWS);
            self.batch(&rows)
                .map_err(|error| failed(&self.source, &error))
        }))
    }

    fn batch(&self, rows: &Range<usize>) -> std::result::Result<RecordBatch, ArrowError> {
        let column = |(column, ahead): (&Column, &Option<ArrayRef>)| {
            let array = match ahead {
                Some(array) => array.slice(rows.start - self.rows.start, rows.len()),
                None => self.held.read(column.source, rows.clone())?,
            };
            cast_to(&array, column.field.data_type())
        };
        let columns = self.wanted.iter().zip(&self.ahead).map(column);
        let columns = columns.collect::<std::result::Result<Vec<_>, _>>()?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        RecordBatch::try_new_with_options(Arc::clone(&self.schema), columns, &options)
    }
}

/// Whether none of these columns waits.
pub(crate) fn is_at_hand(held: &dyn Columns, mut wanted: impl Iterator<Item = usize>) -> bool {
    !wanted.any(|column| held.waits(column))
}
