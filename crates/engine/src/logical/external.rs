//! External sources: rows that code outside the engine decodes while they are processed, such as those of files.
//!
//! A reader of a format implements [`ExternalSource`]. The engine asks for the next part when a worker is free, and
//! polls the stream of that part on the worker: decoding runs there, and while the stream waits for the device the
//! worker processes other parts.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use futures::future::BoxFuture;
use futures::stream::BoxStream;

use crate::error::Result;
use crate::logical::opening::Opening;
use crate::vector::value::Var;

/// A source of rows that code outside the engine decodes.
pub trait ExternalSource: fmt::Debug + Send + Sync {
    /// Its name in messages: a file's path.
    fn name(&self) -> &str;

    /// About how many parts can be read at the same time.
    fn parts(&self) -> usize;

    /// Starts reading. With a share of (i, n), only the part of the rows that the i-th of n readers is to read; (0,
    /// 1) is all of them.
    ///
    /// # Errors
    /// [`Error::Source`](crate::Error::Source).
    fn open(&self, opening: &Opening<'_>) -> Result<Arc<dyn ExternalParts>>;

    /// How many parts and rows it has, if that is known before it is opened.
    fn size(&self, _opening: &Opening<'_>) -> Option<(usize, usize)> {
        None
    }

    /// Whether it computes its rows as they are asked for, so that those behind a limit may cost anything, or fail.
    fn is_lazy(&self) -> bool {
        false
    }

    /// Whether its rows are there only once: a query that has failed cannot run again.
    fn is_once(&self) -> bool {
        false
    }

    /// How it makes its rows, a line each, for those who look at a plan.
    fn explain(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether its rows depend on those of the working table of this number.
    fn reads_working_table(&self, _number: u64) -> bool {
        false
    }
}

/// The parts of a source, handed out to workers.
pub trait ExternalParts: Send + Sync {
    /// The next part, or `None` after the last. Dropping this future or the part stops the reading.
    fn next(&self) -> BoxFuture<'_, Result<Option<ExternalPart>>>;
}

/// A part of a source, read by one worker.
pub struct ExternalPart {
    /// Its position in the order of the source.
    pub number: u64,
    /// Its rows.
    pub rows: BoxStream<'static, Result<RecordBatch>>,
}

/// An external source as a relation.
#[derive(Clone, Debug)]
pub struct ExternalScan {
    /// The source.
    pub source: Arc<dyn ExternalSource>,
    /// Each vector with its column in the batches. A vector's type may be narrower than the column (tighter bounds,
    /// no NULLs) if the description of the file promises it; a row that breaks the promise is an error.
    pub columns: Vec<(Var, usize)>,
    /// Estimated number of rows.
    pub rows: f64,
}
