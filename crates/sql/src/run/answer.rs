//! What a statement returns.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use arrow::datatypes::{Schema, SchemaRef};
use arrow::record_batch::RecordBatch;
use engine::Stop;
use memory::Traffic;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::error::{Error, Result, panicked};

/// What one statement cost.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Statistics {
    /// Seconds from the text to the physical plan.
    pub planning_seconds: f64,
    /// Seconds from the text to the last row, planning included.
    pub seconds: f64,
    /// Bytes that the statement's kernels read, by node of the reader (row) and node of the page (column).
    pub bytes: Vec<Vec<u64>>,
    /// What ran it: `"datafusion"`, `"algebra"` for our own engine, or `"both"`.
    pub ran_on: &'static str,
}

impl Statistics {
    /// All bytes read.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.iter().flatten().sum()
    }

    /// Bytes read by a worker of the node on which they lie.
    pub fn local_bytes(&self) -> u64 {
        self.bytes
            .iter()
            .enumerate()
            .map(|(i, row)| row.get(i).copied().unwrap_or(0))
            .sum()
    }
}

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
}

impl Answer {
    /// Number of rows returned.
    pub fn rows(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    pub(crate) fn rows_of(schema: SchemaRef, batches: Vec<RecordBatch>, clock: &Clock) -> Answer {
        Answer {
            schema,
            batches,
            changed: None,
            statistics: clock.statistics(),
        }
    }

    pub(crate) fn changed(changed: Option<u64>, clock: &Clock) -> Answer {
        Answer {
            schema: Arc::new(Schema::empty()),
            batches: Vec::new(),
            changed,
            statistics: clock.statistics(),
        }
    }
}

/// Times one statement and holds its traffic counters.
#[derive(Debug, Clone)]
pub(crate) struct Clock {
    started: Instant,
    planned: Option<Instant>,
    traffic: Arc<Traffic>,
    pub ran_on: &'static str,
}

impl Clock {
    pub(crate) fn new(started: Instant, traffic: Arc<Traffic>) -> Clock {
        Clock {
            started,
            planned: None,
            traffic,
            ran_on: "datafusion",
        }
    }

    pub(crate) fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }

    /// When the statement began.
    pub(crate) fn started(&self) -> Instant {
        self.started
    }

    /// The plan is ready: what follows is execution. The last call counts.
    pub(crate) fn planned(&mut self) {
        self.planned = Some(Instant::now());
    }

    pub(crate) fn statistics(&self) -> Statistics {
        let seconds = self.started.elapsed().as_secs_f64();
        Statistics {
            planning_seconds: self
                .planned
                .map_or(seconds, |at| (at - self.started).as_secs_f64()),
            seconds,
            bytes: self.traffic.matrix(),
            ran_on: self.ran_on,
        }
    }
}

/// The rows of one statement as they come. Dropping it cancels the statement.
///
/// Implements [`futures::Stream`]; batches wait in a queue of two, so that a slow reader holds the
/// statement back instead of filling memory.
#[derive(Debug)]
pub struct AnswerStream {
    pub(crate) schema: SchemaRef,
    pub(crate) changed: Option<u64>,
    pub(crate) rows: mpsc::Receiver<Result<RecordBatch>>,
    pub(crate) clock: Clock,
    pub(crate) finished: Option<Statistics>,
    /// What produces the rows.
    _task: Option<AbortOnDrop>,
}

/// Aborts a task and gives its statement up when dropped; a finished task stays finished.
#[derive(Debug)]
pub(crate) struct AbortOnDrop {
    pub task: AbortHandle,
    pub stop: Stop,
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.stop.stop();
        self.task.abort();
    }
}

impl AnswerStream {
    pub(crate) fn new(
        schema: SchemaRef,
        rows: mpsc::Receiver<Result<RecordBatch>>,
        clock: Clock,
        task: Option<AbortOnDrop>,
    ) -> AnswerStream {
        AnswerStream {
            schema,
            changed: None,
            rows,
            clock,
            finished: None,
            _task: task,
        }
    }

    /// Columns of the result.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Rows inserted, deleted, updated or written, for statements that do so.
    pub fn changed(&self) -> Option<u64> {
        self.changed
    }

    /// What the statement cost so far; final once the stream has ended.
    pub fn statistics(&self) -> Statistics {
        self.finished
            .clone()
            .unwrap_or_else(|| self.clock.statistics())
    }

    /// The next batch; `None` after the last one.
    pub async fn next_batch(&mut self) -> Option<Result<RecordBatch>> {
        std::future::poll_fn(|cx| self.poll_batch(cx)).await
    }

    fn poll_batch(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<RecordBatch>>> {
        let polled = self.rows.poll_recv(cx);
        if let Poll::Ready(None) = polled
            && self.finished.is_none()
        {
            self.finished = Some(self.clock.statistics());
        }
        polled
    }
}

impl futures::Stream for AnswerStream {
    type Item = Result<RecordBatch>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().poll_batch(cx)
    }
}

/// The error of a task that ended without a result.
pub(crate) fn task_error(e: tokio::task::JoinError) -> Error {
    match e.try_into_panic() {
        Ok(panic) => panicked(panic.as_ref()),
        Err(_) => Error::Cancelled,
    }
}
