//! The results of statements, batch by batch.

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use atoll::{Answer, QueryStatistics as Statistics};

/// The format of values as text: NULL is empty, and a value that cannot be formatted is replaced by its error.
pub static TEXT: FormatOptions<'static> =
    FormatOptions::new().with_null("").with_display_error(true);

/// Rows with arrays and uuids as PostgreSQL writes them.
///
/// # Errors
/// If a value cannot be written.
pub fn shown(rows: &RecordBatch) -> anyhow::Result<RecordBatch> {
    Ok(atoll::as_texts(rows)?)
}

/// Rows as texts, as people read them.
///
/// # Errors
/// If a value cannot be written.
pub fn texts(rows: &RecordBatch) -> anyhow::Result<Vec<Vec<String>>> {
    let rows = shown(rows)?;
    let columns = rows.columns().iter();
    let columns = columns.map(|column| ArrayFormatter::try_new(column, &TEXT));
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let mut all = Vec::with_capacity(rows.num_rows());
    for row in 0..rows.num_rows() {
        let texts = columns.iter();
        let texts = texts.map(|column| column.value(row).try_to_string());
        all.push(texts.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(all)
}

/// The result of one statement, batch by batch, so that it need not fit in memory.
pub trait Results {
    /// The columns; empty for a statement without rows.
    fn schema(&self) -> &SchemaRef;

    /// The next rows; none after the last.
    ///
    /// # Errors
    /// If the statement fails.
    fn next(&mut self) -> atoll::Result<Option<RecordBatch>>;

    /// The number of rows changed, for a statement that changes rows.
    fn changed(&self) -> Option<u64>;

    /// The statistics of the statement; final after the last rows.
    fn statistics(&self) -> Statistics;
}

/// An answer that is complete in memory.
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
