//! The rows of a statement.

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use sql::{AnswerStream, Statistics};

use crate::error::{Error, Result};
use crate::waiting::Waiting;

/// The rows of one statement, batch by batch. Dropping it cancels the statement.
#[derive(Debug)]
pub struct Rows {
    stream: AnswerStream,
    waiting: Waiting,
}

impl Rows {
    pub(crate) fn new(stream: AnswerStream, waiting: Waiting) -> Rows {
        Rows { stream, waiting }
    }

    /// The columns.
    pub fn schema(&self) -> &SchemaRef {
        self.stream.schema()
    }

    /// Rows changed, for statements that write.
    pub fn changed(&self) -> Option<u64> {
        self.stream.changed()
    }

    /// Whether the statement has ended, and only its rows are left to be taken.
    pub fn is_over(&self) -> bool {
        self.stream.is_over()
    }

    /// What whoever typed the statement should know of what it has done.
    pub fn notices(&self) -> &[String] {
        self.stream.notices()
    }

    /// Which columns are columns of a table, as far as that is known.
    pub fn origins(&self) -> &sql::Origins {
        self.stream.origins()
    }

    /// What the statement is called: `SELECT`, `INSERT`, `CREATE TABLE`, ...
    pub fn verb(&self) -> &'static str {
        self.stream.verb()
    }

    /// The statistics of the statement so far; final after the last batch.
    pub fn statistics(&self) -> Statistics {
        self.stream.statistics()
    }
}

impl Iterator for Rows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Result<RecordBatch>> {
        let next = self.stream.next_batch();
        let next = self.waiting.wait(async { Ok::<_, Error>(next.await) });
        let next = match next {
            Err(Error::Interrupted) => {
                if self.waiting.handle.block_on(self.stream.cancel()) {
                    return Some(Err(Error::Interrupted));
                }
                // What it did is done, and these are rows that tell of it.
                let next = self.stream.next_batch();
                self.waiting.handle.block_on(next)
            }
            Err(e) => return Some(Err(e)),
            Ok(next) => next,
        };
        next.map(|batch| batch.map_err(Error::from))
    }
}
