//! What a statement returns.

use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use arrow::record_batch::RecordBatch;

use crate::error::Result;
use crate::resources::budget::Held;
use crate::run::clock::{Clock, Statistics};
use crate::run::origins::Origins;

/// What one statement returned.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// Columns of the result; none for statements that return no rows.
    pub schema: SchemaRef,
    /// The rows; every batch has `schema`.
    pub batches: Vec<RecordBatch>,
    /// Rows inserted, deleted, updated or written, for statements that do so.
    pub changed: Option<u64>,
    /// What it cost.
    pub statistics: Statistics,
    /// What whoever typed the statement should know of what it has done.
    pub notices: Vec<String>,
    /// Which columns are columns of a table.
    pub origins: Origins,
    /// The memory of the rows, if it is accounted for.
    pub(crate) held: Option<Arc<Held>>,
}

impl Answer {
    /// Number of rows returned.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The answer of a query that `clock` timed.
    pub(crate) fn rows_of(schema: SchemaRef, batches: Vec<RecordBatch>, clock: &Clock) -> Answer {
        Answer {
            schema,
            batches,
            changed: None,
            statistics: clock.statistics(),
            notices: Vec::new(),
            origins: Origins::default(),
            held: None,
        }
    }

    /// The answer of a statement that returns no rows but has changed so many, if it tells.
    pub(crate) fn changed(changed: Option<u64>, clock: &Clock) -> Answer {
        Answer {
            schema: Arc::new(Schema::empty()),
            batches: Vec::new(),
            changed,
            statistics: clock.statistics(),
            notices: Vec::new(),
            origins: Origins::default(),
            held: None,
        }
    }

    /// The same, whose rows take this memory.
    pub(crate) fn holding(mut self, held: Option<Held>) -> Answer {
        self.held = held.map(Arc::new);
        self
    }

    /// The same, whose columns come from these.
    pub(crate) fn with_origins(mut self, origins: Origins) -> Answer {
        self.origins = origins;
        self
    }

    /// The same answer with something to tell.
    pub(crate) fn with_notice(mut self, notice: impl Into<String>) -> Answer {
        self.notices.push(notice.into());
        self
    }

    /// An answer of columns that are never null, each with its name.
    pub(crate) fn of_columns(columns: Vec<(&str, ArrayRef)>, clock: &Clock) -> Result<Answer> {
        let (schema, batches) = rows_of_columns(columns)?;
        Ok(Answer::rows_of(schema, batches, clock))
    }

    /// What is told of a statement that has run, in the place of its rows, as columns that are never null.
    pub(crate) fn told(self, columns: Vec<(&str, ArrayRef)>) -> Result<Answer> {
        let (schema, batches) = rows_of_columns(columns)?;
        Ok(Answer {
            schema,
            batches,
            changed: None,
            origins: Origins::default(),
            held: None,
            ..self
        })
    }
}

/// The rows of columns that are never null, each with its name.
fn rows_of_columns(columns: Vec<(&str, ArrayRef)>) -> Result<(SchemaRef, Vec<RecordBatch>)> {
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, DataType::clone(array.data_type()), false))
        .collect();
    let schema = Arc::new(Schema::new(fields));
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
    let batches = if batch.num_rows() == 0 {
        Vec::new()
    } else {
        vec![batch]
    };
    Ok((schema, batches))
}
