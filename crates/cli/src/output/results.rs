//! What statements give, batch by batch.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::FormatOptions;
use atoll::{Answer, QueryStatistics as Statistics};

/// How values look as text: NULL as nothing, an error of a value in its place.
pub static TEXT: FormatOptions<'static> =
    FormatOptions::new().with_null("").with_display_error(true);

/// What one statement gives, batch by batch: what is written is not kept.
pub trait Results {
    /// The columns; empty for a statement without rows.
    fn schema(&self) -> &SchemaRef;

    /// The next rows; none after the last.
    ///
    /// # Errors
    /// Where the statement fails.
    fn next(&mut self) -> atoll::Result<Option<RecordBatch>>;

    /// Rows that it changed, if that is what it does.
    fn changed(&self) -> Option<u64>;

    /// What it cost; final after the last rows.
    fn statistics(&self) -> Statistics;
}

/// An answer that is there as a whole.
pub struct Whole {
    answer: Answer,
    batches: std::vec::IntoIter<RecordBatch>,
}

impl Whole {
    /// The rows of `answer`.
    pub fn new(mut answer: Answer) -> Whole {
        let batches = std::mem::take(&mut answer.batches).into_iter();
        Whole { answer, batches }
    }
}

impl Results for Whole {
    fn schema(&self) -> &SchemaRef {
        &self.answer.schema
    }

    fn next(&mut self) -> atoll::Result<Option<RecordBatch>> {
        Ok(self.batches.next())
    }

    fn changed(&self) -> Option<u64> {
        self.answer.changed
    }

    fn statistics(&self) -> Statistics {
        self.answer.statistics.clone()
    }
}
