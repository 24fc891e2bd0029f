//! `generate_series` of constants as an external source of Atoll's own engine: batch by batch, as workers take them.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion::catalog::TableProvider;
use datafusion::functions_table::generate_series::GenerateSeriesTable;
use datafusion::physical_plan::memory::LazyBatchGenerator;
use engine::{Error, ExternalPart, ExternalParts, ExternalSource, Opening, Result};
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{self, StreamExt};
use parking_lot::{Mutex, RwLock};

/// Rows in a batch.
const BATCH_ROWS: usize = 8_192;

/// The numbers of a series.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    table: GenerateSeriesTable,
}

impl Series {
    /// The series that `table` gives, if it gives one.
    pub(crate) fn of(table: &Arc<dyn TableProvider>) -> Option<Series> {
        let table = table.downcast_ref::<GenerateSeriesTable>()?;
        Some(Series {
            table: table.clone(),
        })
    }

    /// The columns.
    pub(crate) fn schema(&self) -> SchemaRef {
        self.table.schema()
    }
}

impl ExternalSource for Series {
    fn name(&self) -> &str {
        "generate_series"
    }

    fn parts(&self) -> usize {
        1
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Arc<dyn ExternalParts>> {
        // There is one row after the other: the first of several readers has all.
        let numbers = if opening.share.0 == 0 {
            let numbers = self.table.as_generator(BATCH_ROWS);
            Some(numbers.map_err(|e| Error::Call(Box::new(e)))?)
        } else {
            None
        };
        Ok(Arc::new(Numbers {
            numbers,
            taken: Mutex::new(0),
        }))
    }
}

/// Hands batches to workers.
struct Numbers {
    /// `None` if there is nothing to read.
    numbers: Option<Arc<RwLock<dyn LazyBatchGenerator>>>,
    /// How many batches were handed out.
    taken: Mutex<u64>,
}

impl Numbers {
    fn part(&self) -> Result<Option<ExternalPart>> {
        let Some(numbers) = &self.numbers else {
            return Ok(None);
        };
        // Held meanwhile, so that numbers of parts are in the order of the batches.
        let mut taken = self.taken.lock();
        let batch = numbers.write().generate_next_batch();
        let Some(batch) = batch.map_err(|e| Error::Call(Box::new(e)))? else {
            return Ok(None);
        };
        let number = *taken;
        *taken += 1;
        Ok(Some(ExternalPart {
            number,
            rows: stream::iter([Ok(batch)]).boxed(),
        }))
    }
}

impl ExternalParts for Numbers {
    fn next(&self) -> BoxFuture<'_, Result<Option<ExternalPart>>> {
        ready(self.part()).boxed()
    }
}
