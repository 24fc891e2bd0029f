//! Rows that come as a stream, as a table that is read once.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::catalog::streaming::StreamingTable;
use datafusion::error::{DataFusionError, Result as Streamed};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::PartitionStream;
use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use parking_lot::Mutex;

use crate::error::Result;

/// A table of `rows`, which have these columns.
///
/// # Errors
/// Those of DataFusion.
pub(crate) fn table(
    schema: SchemaRef,
    rows: BoxStream<'static, Streamed<RecordBatch>>,
) -> Result<StreamingTable> {
    let rows = Once {
        schema: Arc::clone(&schema),
        rows: Mutex::new(Some(rows)),
    };
    Ok(StreamingTable::try_new(schema, vec![Arc::new(rows)])?)
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
