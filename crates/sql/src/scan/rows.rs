//! Tables whose rows are made by code outside the engine: what is in memory, what comes as a stream, what a function in
//! `from` gives.

use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::{DataFusionError, Result as Streamed};
use datafusion_expr::{TableSource, TableType};
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use crate::resources::budget::Held;

/// Some rows of a table, as they come.
pub(crate) type Batches = BoxStream<'static, Streamed<RecordBatch>>;

/// What makes the rows of a table.
pub(crate) trait RowSource: fmt::Debug + Send + Sync {
    /// All rows, for one reading of the table: parts that may be taken side by side. Nothing is computed before a part is
    /// asked for its first batch.
    fn begin(&self) -> Vec<Batches>;

    /// How many parts there are, at most.
    fn parts(&self) -> usize {
        1
    }

    /// The number of rows, where it is known.
    fn rows(&self) -> Option<usize> {
        None
    }

    /// What of the table is read, a line each, for those who look at a plan.
    fn explain(&self) -> Vec<String> {
        Vec::new()
    }

    /// Whether the rows are gone once they were read: who begins to read them must go on to the end.
    fn is_once(&self) -> bool {
        false
    }
}

/// A table of rows that are made.
#[derive(Clone, Debug)]
pub(crate) struct RowTable {
    schema: SchemaRef,
    pub source: Arc<dyn RowSource>,
}

impl RowTable {
    /// The table of what `source` makes, which has these columns.
    pub(crate) fn new(schema: SchemaRef, source: Arc<dyn RowSource>) -> RowTable {
        RowTable { schema, source }
    }

    /// A table of these rows.
    pub(crate) fn in_memory(schema: SchemaRef, batches: Vec<RecordBatch>) -> RowTable {
        let rows = InMemory {
            batches,
            _held: None,
        };
        RowTable::new(schema, Arc::new(rows))
    }

    /// The same of rows in memory that is accounted for, and given back with them.
    pub(crate) fn held(schema: SchemaRef, batches: Vec<RecordBatch>, held: Held) -> RowTable {
        let rows = InMemory {
            batches,
            _held: Some(held),
        };
        RowTable::new(schema, Arc::new(rows))
    }

    /// A table of a stream of rows, which is read once.
    pub(crate) fn once(schema: SchemaRef, rows: Batches) -> RowTable {
        RowTable::new(schema, Arc::new(Once(Mutex::new(Some(rows)))))
    }
}

impl TableSource for RowTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }
}

#[derive(Debug)]
struct InMemory {
    batches: Vec<RecordBatch>,
    _held: Option<Held>,
}

impl RowSource for InMemory {
    fn begin(&self) -> Vec<Batches> {
        let batches = self.batches.clone();
        vec![stream::iter(batches.into_iter().map(Ok)).boxed()]
    }

    fn rows(&self) -> Option<usize> {
        Some(self.batches.iter().map(RecordBatch::num_rows).sum())
    }
}

/// Rows of a stream, until somebody takes them.
struct Once(Mutex<Option<Batches>>);

impl fmt::Debug for Once {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("rows that are read once")
    }
}

impl RowSource for Once {
    fn begin(&self) -> Vec<Batches> {
        let rows = self.0.lock().take().unwrap_or_else(|| {
            let twice = DataFusionError::Internal("rows of a stream are read once".into());
            stream::once(async { Err(twice) }).boxed()
        });
        vec![rows]
    }

    fn is_once(&self) -> bool {
        true
    }
}
