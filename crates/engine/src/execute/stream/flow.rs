//! What the streaming and the staged executor have in common.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::cancel::Stop;
use crate::error::{Error, Result};
use crate::execute::query_state::QueryState;
use crate::execute::sink::SinkState;
use crate::execute::stream::block::{Block, Blocks};
use crate::execute::task::PipelineTask;
use crate::memory::reservation::Reservation;
use crate::operators::limit::Limit;
use crate::operators::steps::Steps;
use crate::options::{BLOCK_ROWS, Execution};
use crate::physical::program::Sink;

/// Default rows of a block: those of a stored block.
const ROWS: usize = table::BLOCK_ROWS;

/// What all tasks of a stage share.
pub(crate) struct Flow {
    pub blocks: Blocks,
    /// Most rows in a block.
    pub rows: usize,
    /// Most blocks in flight.
    pub flights: usize,
    pub limit: Limit,
    /// Whether workers may take rows on themselves.
    keeping: bool,
    /// Workers.
    width: usize,
    /// Workers that are at this stage's tasks just now.
    busy: AtomicUsize,
    /// Tasks that wait for nothing but a worker: sources that no worker has begun yet, and tasks that let others go first.
    ready: AtomicUsize,
    /// The memory reserved for blocks in flight.
    _taken: Reservation,
    pub stop: Stop,
}

impl Flow {
    /// For up to `flights` blocks in flight, but at least `fewest`, with rows of `width` bytes. Blocks take at most a quarter of
    /// the memory limit; if that is too little, they are smaller than requested, and fewer once they are as small as can be.
    ///
    /// # Errors
    /// [`Error::Memory`] if even the fewest and smallest blocks do not fit.
    pub fn new(
        run: &QueryState,
        sink: &Sink,
        (mut flights, fewest): (usize, usize),
        width: usize,
    ) -> Result<Flow> {
        let mut rows = run.execution.block_rows.unwrap_or(ROWS);
        let taken = loop {
            let wanted = (rows * flights * width) as u64;
            let budget = &run.runtime.budget;
            let (smallest, last) = (rows / 2 < *BLOCK_ROWS.start(), flights <= fewest);
            if (smallest && last || wanted <= budget.limit() / 4 / run.instances() as u64)
                && let Ok(taken) = Reservation::take(budget, wanted, "blocks in flight")
            {
                break taken;
            }
            match (smallest, last) {
                (false, _) => rows /= 2,
                (true, false) => flights = (flights / 2).max(fewest),
                (true, true) => {
                    let what = "blocks in flight";
                    return Err(Error::Memory { what, wanted });
                }
            }
        };
        Ok(Flow {
            blocks: Blocks::new(&run.execution, flights, rows),
            rows,
            flights,
            keeping: keeping(&run.execution),
            width: run.runtime.workers.threads(),
            busy: AtomicUsize::new(0),
            ready: AtomicUsize::new(0),
            _taken: taken,
            limit: Limit::new(sink),
            stop: run.stop.clone(),
        })
    }

    /// Takes `block` through the operators from number `from` on into `sink`, which is made if it is absent.
    pub fn finish(
        &self,
        task: &PipelineTask,
        from: usize,
        block: &mut Block,
        steps: &mut Steps,
        sink: &mut Option<SinkState>,
    ) -> Result<()> {
        if self.limit.reached() {
            return Ok(());
        }
        let sink = match sink {
            Some(sink) => sink,
            None => sink.insert(task.sink_factory.sink()?),
        };
        let executor = task.executor(from..task.pipeline.operators.len(), true);
        let mut rows = 0;
        for part in block.parts() {
            self.check()?;
            let Some(hold) = &part.hold else { continue };
            sink.start(part.place);
            executor.run(
                &mut part.batch,
                &mut part.selection,
                hold.reader(),
                steps,
                &mut |batch, _| {
                    rows += batch.rows;
                    self.check()?;
                    task.sink_factory.add(sink, batch)
                },
            )?;
        }
        self.limit.count(rows);
        Ok(())
    }

    /// Whether rows of the last piece of a scan are taken on in any case.
    pub fn keeps_last(&self) -> bool {
        self.keeping
    }

    /// Whether the worker that has a block takes it on itself: unless another worker has nothing to do, and would find neither
    /// one of the `queued` blocks nor a task that is ready. What it has just written is in its caches.
    pub fn keeps(&self, queued: usize) -> bool {
        let (busy, ready) = (&self.busy, &self.ready);
        self.keeping
            && busy.load(Ordering::Relaxed) + ready.load(Ordering::Relaxed) + queued >= self.width
    }

    /// A task is ready.
    pub fn expect(&self) {
        self.ready.fetch_add(1, Ordering::Relaxed);
    }

    /// A task runs that was ready.
    pub fn begin(&self) {
        self.ready.fetch_sub(1, Ordering::Relaxed);
    }

    /// Lets other tasks go first.
    pub async fn yield_now(&self) {
        self.expect();
        tokio::task::yield_now().await;
        self.begin();
    }

    /// `task`, counted among the busy ones whenever it runs.
    pub async fn counted<T>(&self, task: impl Future<Output = T>) -> T {
        struct Busy<'f>(&'f AtomicUsize);
        impl Drop for Busy<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Ordering::Relaxed);
            }
        }
        let mut task = std::pin::pin!(task);
        poll_fn(|context| {
            self.busy.fetch_add(1, Ordering::Relaxed);
            let _busy = Busy(&self.busy);
            task.as_mut().poll(context)
        })
        .await
    }

    /// Fails if the query was cancelled.
    pub fn check(&self) -> Result<()> {
        self.stop.check()
    }
}

/// Whether workers take rows on themselves while all of them have work. Whoever says how large blocks are, or how many tasks an
/// operator has, wants all rows to go through them.
pub(crate) fn keeping(execution: &Execution) -> bool {
    !execution.hand_over && execution.block_rows.is_none() && execution.tasks.is_empty()
}

/// The number of tasks of operator `number`, with `width` workers.
pub(crate) fn tasks(execution: &Execution, number: usize, width: usize) -> usize {
    let given = execution.tasks.get(number).or(execution.tasks.last());
    given.copied().unwrap_or(width).max(1)
}

/// The running tasks of a stage.
pub(crate) type Tasks = Vec<workers::JoinHandle<Result<Option<SinkState>>>>;

/// Awaits all tasks and collects their sinks. Once one fails, the others are aborted where they next suspend,
/// because what they wait for may never come. Returns the first error that is not a mere cancellation.
pub(crate) async fn join(running: Tasks, sinks: &mut Vec<SinkState>) -> Result<()> {
    // If this future is dropped, the tasks are aborted as well.
    let mut running: FuturesUnordered<_> = running
        .into_iter()
        .map(|task| task.abort_on_drop())
        .collect();
    let mut failed = None;
    while let Some(done) = running.next().await {
        let error = match done {
            Ok(Ok(sink)) => {
                sinks.extend(sink);
                continue;
            }
            Ok(Err(e)) => e,
            Err(workers::Error::Cancelled) => Error::Cancelled,
            Err(e) => Error::Call(Box::new(e)),
        };
        if failed.is_none() {
            running.iter().for_each(|task| task.abort());
        }
        failed = match failed {
            None | Some(Error::Cancelled) => Some(error),
            earlier => earlier,
        };
    }
    failed.map_or(Ok(()), Err)
}

/// Runs `task`; cancels the stage if it fails or panics.
pub(crate) async fn stopping(
    flow: Arc<Flow>,
    task: impl Future<Output = Result<Option<SinkState>>>,
) -> Result<Option<SinkState>> {
    struct Raise(Option<Arc<Flow>>);
    impl Drop for Raise {
        fn drop(&mut self) {
            if let Some(flow) = &self.0 {
                flow.stop.stop();
            }
        }
    }
    let mut raise = Raise(Some(flow.clone()));
    let done = flow.counted(task).await;
    if done.is_ok() {
        raise.0 = None;
    }
    done
}
