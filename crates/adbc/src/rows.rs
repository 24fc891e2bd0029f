//! Rows of statements as readers of Arrow, which take a batch of the database when they are asked for one.

use std::sync::Arc;

use adbc_core::error::{Error, Result};
use arrow::array::{RecordBatch, RecordBatchReader};
use arrow::datatypes::{Schema, SchemaRef};
use arrow::error::ArrowError;
use parking_lot::Mutex;

use crate::cancel::Execution;
use crate::guard::caught;
use crate::store::Store;

/// Where batches come from: the next one, or none after the last.
pub(crate) type Source = Box<dyn FnMut() -> Result<Option<RecordBatch>> + Send>;

/// Why a stream has ended before its rows did, for whoever looks at the stream from C.
pub(crate) type Failure = Arc<Mutex<Option<Error>>>;

/// Rows of a statement.
pub(crate) struct Reader {
    schema: SchemaRef,
    /// The first batch. It is awaited before the statement counts as executed: most errors come before it, and have
    /// status and SQLSTATE everywhere then, which errors of streams do not have for all clients.
    first: Option<RecordBatch>,
    source: Option<Source>,
    execution: Arc<Execution>,
    failure: Failure,
    /// The store stays open; this is dropped last.
    _store: Arc<Store>,
}

impl Reader {
    /// The rows of `source`, whose columns are `schema`, the first batch of which is waited for.
    ///
    /// # Errors
    /// Those that come before the first batch.
    pub(crate) fn new(
        schema: &SchemaRef,
        source: Source,
        execution: Arc<Execution>,
        store: Arc<Store>,
    ) -> Result<Reader> {
        let mut reader = Reader {
            schema: atoll::owned_schema(schema),
            first: None,
            source: Some(source),
            execution,
            failure: Failure::default(),
            _store: store,
        };
        reader.first = reader.pull()?;
        Ok(reader)
    }

    /// What will be known of a failure.
    pub(crate) fn failure(&self) -> Failure {
        Arc::clone(&self.failure)
    }

    /// The next batch. After the last one, and after a failure, there are none.
    fn pull(&mut self) -> Result<Option<RecordBatch>> {
        let Some(source) = self.source.as_mut() else {
            return Ok(None);
        };
        let schema = &self.schema;
        let taken = caught(|| {
            let batch = source()?;
            let owned = batch.map(|batch| atoll::owned_batch(&batch, schema));
            Ok(owned.transpose()?)
        });
        if !matches!(taken, Ok(Some(_))) {
            self.end();
        }
        taken
    }

    fn end(&mut self) {
        self.execution.end();
        // The statement that is dropped here is stopped; a panic of that is not worth the stream.
        let source = self.source.take();
        let _ = caught(move || {
            drop(source);
            Ok(())
        });
    }
}

impl Iterator for Reader {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(batch) = self.first.take() {
            return Some(Ok(batch));
        }
        match self.pull() {
            Ok(batch) => batch.map(Ok),
            Err(error) => {
                *self.failure.lock() = Some(error.clone());
                Some(Err(ArrowError::ExternalError(Box::new(error))))
            }
        }
    }
}

impl RecordBatchReader for Reader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.end();
    }
}

/// Batches that are there.
pub(crate) struct Held {
    schema: SchemaRef,
    batches: std::vec::IntoIter<RecordBatch>,
}

impl Held {
    /// One batch.
    pub(crate) fn one(batch: RecordBatch) -> Held {
        Held {
            schema: batch.schema(),
            batches: vec![batch].into_iter(),
        }
    }

    /// Nothing, without a column: what a statement returns that returns no rows.
    pub(crate) fn nothing() -> Held {
        Held {
            schema: Arc::new(Schema::empty()),
            batches: Vec::new().into_iter(),
        }
    }
}

impl Iterator for Held {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.batches.next().map(Ok)
    }
}

impl RecordBatchReader for Held {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
