//! Rows as they come, with their columns.

use std::pin::Pin;
use std::task::{Context, Poll};

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::RecordBatchStream;
use futures::Stream;
use futures::stream::{self, BoxStream, StreamExt};

use crate::functions::present::Memory;

/// A stream of rows that has a schema.
pub(crate) struct RowStream {
    schema: SchemaRef,
    rows: BoxStream<'static, Result<RecordBatch>>,
}

impl RowStream {
    /// `rows`, which have these columns.
    pub(crate) fn new(
        schema: SchemaRef,
        rows: impl Stream<Item = Result<RecordBatch>> + Send + 'static,
    ) -> RowStream {
        RowStream {
            schema,
            rows: rows.boxed(),
        }
    }
}

impl Stream for RowStream {
    type Item = Result<RecordBatch>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.rows.poll_next_unpin(cx)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.rows.size_hint()
    }
}

impl RecordBatchStream for RowStream {
    fn schema(&self) -> SchemaRef {
        SchemaRef::clone(&self.schema)
    }
}

/// `rows`, whose functions ask for `memory` while they compute.
pub(crate) fn within(
    memory: Memory,
    mut rows: BoxStream<'static, Result<RecordBatch>>,
) -> BoxStream<'static, Result<RecordBatch>> {
    stream::poll_fn(move |cx| memory.during(|| rows.poll_next_unpin(cx))).boxed()
}
