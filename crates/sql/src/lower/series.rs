//! `generate_series` of constants as an external source of Atoll's own engine: batch by batch, as workers take them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::{Int64Array, RecordBatch};
use arrow::datatypes::SchemaRef;
use datafusion_expr::TableSource;
use engine::{Error, ExternalPart, ExternalParts, ExternalSource, Opening, Result};
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{self, StreamExt};

use crate::scan::series::Series;

/// Rows in a batch.
const BATCH_ROWS: u64 = 8_192;

/// The numbers of a series, which workers read.
#[derive(Clone, Debug)]
pub(crate) struct SeriesScan {
    series: Series,
    /// The columns.
    pub schema: SchemaRef,
}

impl SeriesScan {
    /// The series that `table` gives, if it gives one.
    pub(crate) fn of(table: &Arc<dyn TableSource>) -> Option<SeriesScan> {
        let series = table.downcast_ref::<Series>()?.clone();
        let schema = series.schema();
        Some(SeriesScan { series, schema })
    }

    /// How many numbers there are.
    pub(crate) fn count(&self) -> u64 {
        self.series.count()
    }
}

impl ExternalSource for SeriesScan {
    fn name(&self) -> &str {
        "generate_series"
    }

    fn parts(&self) -> usize {
        1
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Arc<dyn ExternalParts>> {
        // There is one row after the other: the first of several readers has all.
        Ok(Arc::new(Numbers {
            scan: (opening.share.0 == 0).then(|| self.clone()),
            taken: AtomicU64::new(0),
        }))
    }
}

/// Hands batches to workers.
struct Numbers {
    /// `None` if there is nothing to read.
    scan: Option<SeriesScan>,
    /// How many batches were handed out.
    taken: AtomicU64,
}

impl Numbers {
    fn part(&self) -> Result<Option<ExternalPart>> {
        let Some(scan) = &self.scan else {
            return Ok(None);
        };
        let number = self.taken.fetch_add(1, Ordering::Relaxed);
        let from = number.saturating_mul(BATCH_ROWS);
        if from >= scan.count() {
            return Ok(None);
        }
        let numbers: Vec<i64> = scan.series.numbers(from, BATCH_ROWS).collect();
        let numbers = vec![Arc::new(Int64Array::from(numbers)) as _];
        let batch = RecordBatch::try_new(Arc::clone(&scan.schema), numbers);
        let batch = batch.map_err(|e| Error::Call(Box::new(e)));
        Ok(Some(ExternalPart {
            number,
            rows: stream::iter([batch]).boxed(),
        }))
    }
}

impl ExternalParts for Numbers {
    fn next(&self) -> BoxFuture<'_, Result<Option<ExternalPart>>> {
        ready(self.part()).boxed()
    }
}
