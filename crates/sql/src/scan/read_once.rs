//! Rows that come as a stream, as a table that is read once.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::{DataFusionError, Result as Streamed};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use crate::error::Result;

/// A table whose rows are gone once they were read: who begins to read them must go on to the end.
#[derive(Debug)]
pub(crate) struct ReadOnce(StreamingTable);

/// A table of `rows`, which have these columns.
///
/// # Errors
/// Those of DataFusion.
pub(crate) fn table(
    schema: SchemaRef,
    rows: BoxStream<'static, Streamed<RecordBatch>>,
) -> Result<ReadOnce> {
    let rows = Once {
        schema: Arc::clone(&schema),
        rows: Mutex::new(Some(rows)),
    };
    let rows = StreamingTable::try_new(schema, vec![Arc::new(rows)])?;
    Ok(ReadOnce(rows))
}

#[async_trait]
impl TableProvider for ReadOnce {
    fn schema(&self) -> SchemaRef {
        self.0.schema()
    }

    fn table_type(&self) -> TableType {
        self.0.table_type()
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Streamed<Arc<dyn ExecutionPlan>> {
        self.0.scan(state, projection, filters, limit).await
    }
}

struct Once {
    schema: SchemaRef,
    rows: Mutex<Option<BoxStream<'static, Streamed<RecordBatch>>>>,
}

impl std::fmt::Debug for Once {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("rows that are read once")
    }
}

impl PartitionStream for Once {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, _: Arc<TaskContext>) -> SendableRecordBatchStream {
        let rows = self.rows.lock().take().unwrap_or_else(|| {
            let twice = DataFusionError::Internal("rows of a stream are read once".into());
            stream::once(async { Err(twice) }).boxed()
        });
        Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            rows,
        ))
    }
}
