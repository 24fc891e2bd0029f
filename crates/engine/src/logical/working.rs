//! Working tables: the rows that the round before of a recursive query has found, for the next [round](crate::Rounds) to go on from.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::{self, StreamExt};

use crate::error::{Error, Result};
use crate::logical::external::{ExternalPart, ExternalParts, ExternalSource};
use crate::logical::opening::Opening;

/// The number of the next working table.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// The working table of a recursive query as a source of its rounds.
#[derive(Clone, Debug)]
pub struct WorkingTable {
    name: Arc<str>,
    /// No other has it.
    number: u64,
}

impl WorkingTable {
    /// That of a recursive query of this name.
    pub fn new(name: &str) -> WorkingTable {
        WorkingTable {
            name: format!("working table of {name}").into(),
            number: NEXT.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// The number by which its rows are known.
    pub fn number(&self) -> u64 {
        self.number
    }
}

impl ExternalSource for WorkingTable {
    fn name(&self) -> &str {
        &self.name
    }

    fn parts(&self) -> usize {
        1
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Arc<dyn ExternalParts>> {
        let rows = opening.working.of(self.number);
        let rows =
            rows.ok_or_else(|| Error::internal("a working table is read outside of rounds"))?;
        let (first, step) = opening.share;
        Ok(Arc::new(Working {
            batches: Arc::clone(rows),
            next: AtomicUsize::new(first),
            step,
        }))
    }

    fn size(&self, opening: &Opening<'_>) -> Option<(usize, usize)> {
        let batches = opening.working.of(self.number)?;
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        Some((batches.len(), rows))
    }

    fn reads_working_table(&self, number: u64) -> bool {
        self.number == number
    }
}

/// Hands out batches as parts: to one of several readers each so many-th of them.
struct Working {
    batches: Arc<[RecordBatch]>,
    next: AtomicUsize,
    step: usize,
}

impl ExternalParts for Working {
    fn next(&self) -> BoxFuture<'_, Result<Option<ExternalPart>>> {
        let number = self.next.fetch_add(self.step, Ordering::Relaxed);
        let part = self.batches.get(number).map(|batch| ExternalPart {
            number: number as u64,
            rows: stream::iter([Ok(batch.clone())]).boxed(),
        });
        ready(Ok(part)).boxed()
    }
}
