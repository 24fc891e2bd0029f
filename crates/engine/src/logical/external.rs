//! Rows that somebody else decodes while they are processed: those of files.
//!
//! Whoever knows a format implements [`Batches`]. The engine asks for the next part when a worker has time for it,
//! and the stream of the part does its work on the worker that polls it: what it waits for, the device above all, is
//! waited for asleep, while the other parts' rows are worked on.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::error::Result;
use crate::vector::value::Var;

/// Rows in a form that others read.
pub trait Batches: fmt::Debug + Send + Sync {
    /// What is read, for people.
    fn name(&self) -> &str;

    /// How many parts there are that can be read at the same time, about.
    fn parts(&self) -> usize;

    /// Begins to read: all parts where `share` is (0, 1); where it is (i, n), those that the i-th of n readers, who
    /// read all of them together, is to read.
    ///
    /// # Errors
    /// [`Error::Source`].
    fn open(&self, share: (usize, usize)) -> Result<Arc<dyn Parts>>;
}

/// Parts that are being handed out. Workers share it.
pub trait Parts: Send + Sync {
    /// The next part; `None` after the last. Dropping the future, or the part, stops reading.
    fn next(&self) -> BoxFuture<'_, Result<Option<Part>>>;
}

/// Rows that one worker reads.
pub struct Part {
    /// Its place in the order of the rows.
    pub number: u64,
    /// Its rows.
    pub rows: BoxStream<'static, Result<RecordBatch>>,
}

/// The rows of [`Batches`], as a relation.
#[derive(Clone, Debug)]
pub struct Reading {
    /// Where they come from.
    pub batches: Arc<dyn Batches>,
    /// Each vector, and which column of the batches it is. Where its type is narrower than the column's (bounds, no
    /// NULLs), that was promised by whoever described the rows; what breaks the promise is an error, not believed.
    pub columns: Vec<(Var, usize)>,
    /// How many rows there are, about.
    pub rows: f64,
}
