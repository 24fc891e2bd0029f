//! What the partitions of a scan share while a plan runs.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use arrow::array::RecordBatch;
use datafusion::error::Result;
use datafusion::physical_plan::metrics::BaselineMetrics;
use parking_lot::Mutex;

/// A state for each run of a plan: the n-th call of `execute` for a partition belongs to the n-th run.
pub(crate) struct Runs<T> {
    state: Mutex<State<T>>,
}

struct State<T> {
    /// How often each partition was executed.
    executed: Vec<usize>,
    runs: Vec<Arc<T>>,
}

impl<T> Runs<T> {
    /// The state of the run that this execution of `partition`, one of `partitions`, belongs to. `begin` makes it when
    /// the first partition of the run asks.
    pub(crate) fn join(
        &self,
        partition: usize,
        partitions: usize,
        begin: impl FnOnce() -> T,
    ) -> Arc<T> {
        let State { executed, runs } = &mut *self.state.lock();
        executed.resize(partitions, 0);
        let run = executed[partition];
        executed[partition] += 1;
        if runs.len() == run {
            runs.push(Arc::new(begin()));
        }
        Arc::clone(&runs[run])
    }
}

impl<T> Default for Runs<T> {
    fn default() -> Runs<T> {
        Runs {
            state: Mutex::new(State {
                executed: Vec::new(),
                runs: Vec::new(),
            }),
        }
    }
}

impl<T> fmt::Debug for Runs<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runs").finish_non_exhaustive()
    }
}

/// Counts the rows that all partitions of a run deliver, up to a limit.
///
/// The optimiser removes its own limit above a scan that takes one, so a scan must not deliver one row too many.
#[derive(Debug)]
pub(crate) struct Delivered {
    limit: Option<usize>,
    /// Kept up to date only under a limit.
    rows: AtomicUsize,
}

impl Delivered {
    pub(crate) fn new(limit: Option<usize>) -> Delivered {
        Delivered {
            limit,
            rows: AtomicUsize::new(0),
        }
    }

    /// Whether the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.limit
            .is_some_and(|limit| self.rows.load(Ordering::Relaxed) >= limit)
    }

    /// How many of `rows` more rows may be delivered.
    pub(crate) fn take(&self, rows: usize) -> usize {
        match self.limit {
            Some(limit) => {
                let before = self.rows.fetch_add(rows, Ordering::Relaxed);
                rows.min(limit.saturating_sub(before))
            }
            None => rows,
        }
    }
}

/// The batch that `next` makes; its time and rows are added to `metrics`.
pub(crate) fn measured(
    metrics: &BaselineMetrics,
    next: impl FnOnce() -> Result<Option<RecordBatch>>,
) -> Result<Option<RecordBatch>> {
    let timer = metrics.elapsed_compute().timer();
    let batch = next()?;
    timer.done();
    if let Some(batch) = &batch {
        metrics.record_output(batch.num_rows());
    }
    Ok(batch)
}
