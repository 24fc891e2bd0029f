//! The rows of a statement as they come.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use engine::Stop;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use crate::error::{Error, Result};
use crate::resources::budget::Held;
use crate::resources::stop;
use crate::run::clock::{Clock, Statistics};
use crate::run::instance::Instance;
use crate::run::origins::Origins;

/// The rows of one statement as they come. Dropping it cancels the statement.
///
/// Implements [`futures::Stream`]. At most two batches wait for the reader: a slow one holds the statement back instead
/// of filling memory.
#[derive(Debug)]
pub struct AnswerStream {
    pub(crate) schema: SchemaRef,
    pub(crate) changed: Option<u64>,
    pub(crate) notices: Vec<String>,
    pub(crate) origins: Origins,
    /// What the statement is called.
    pub(crate) verb: &'static str,
    pub(crate) rows: mpsc::Receiver<Result<RecordBatch>>,
    pub(crate) clock: Clock,
    pub(crate) finished: Option<Statistics>,
    /// The memory of rows that are all there, if it is accounted for.
    pub(crate) held: Option<Arc<Held>>,
    /// What produces the rows; none if they are all there.
    task: Option<AbortOnDrop>,
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
            notices: Vec::new(),
            origins: Origins::default(),
            verb: "SELECT",
            rows,
            clock,
            finished: None,
            held: None,
            task,
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

    /// Whether the statement has ended, and only its rows are left to be taken.
    pub fn is_over(&self) -> bool {
        self.task.is_none()
    }

    /// What whoever typed the statement should know of what it has done.
    pub fn notices(&self) -> &[String] {
        &self.notices
    }

    /// Which columns are columns of a table, as far as that is known.
    pub fn origins(&self) -> &Origins {
        &self.origins
    }

    /// What the statement is called: `SELECT`, `INSERT`, `CREATE TABLE`, ...
    pub fn verb(&self) -> &'static str {
        self.verb
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

    /// Cancels the statement and waits until it has ended, for some seconds at most. False if it is over already, and only
    /// its rows are left to be taken: what it wrote is there.
    pub async fn cancel(&mut self) -> bool {
        let Some(task) = self.task.take() else {
            return false;
        };
        drop(task);
        let last = async { while self.rows.recv().await.is_some() {} };
        let _ = tokio::time::timeout(stop::GRACE, last).await;
        true
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

/// When dropped, stops a statement and aborts its task, unless the task has ended.
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

impl Instance {
    /// Runs `work` on the workers; a panic in it is an error, and dropping this future aborts it.
    ///
    /// # Errors
    /// Those of the work; [`Error::Cancelled`] if whatever runs has been cancelled before.
    pub(crate) async fn on_workers<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let above = stop::present();
        // A statement before this one has committed.
        above.unseal();
        above.check()?;
        let stop = above.below();
        let task = self
            .workers()
            .handle()
            .spawn(stop::over(stop.clone(), work));
        let _abort = AbortOnDrop {
            task: task.abort_handle(),
            stop,
        };
        task.await.map_err(Error::of_task)?
    }
}
