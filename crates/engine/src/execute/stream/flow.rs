//! What the streaming and the staged executor have in common.

use std::sync::Arc;

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
use crate::physical::program::{Pipeline, Sink, Source};

/// Default rows of a block: those of a stored block.
const ROWS: usize = table::BLOCK_ROWS;

/// What all tasks of a stage share.
pub(crate) struct Flow {
    pub blocks: Blocks,
    /// Most rows in a block.
    pub rows: usize,
    pub limit: Limit,
    /// The memory reserved for blocks in flight.
    _taken: Reservation,
    pub stop: Stop,
}

impl Flow {
    /// For up to `flights` blocks in flight, with rows of `width` bytes. Blocks take at most a quarter of the
    /// memory limit; if that is too little, they are smaller than requested.
    ///
    /// # Errors
    /// [`Error::Memory`] if even the smallest blocks do not fit.
    pub fn new(run: &QueryState, sink: &Sink, flights: usize, width: usize) -> Result<Flow> {
        let mut rows = run.execution.block_rows.unwrap_or(ROWS);
        let taken = loop {
            let wanted = (rows * flights * width) as u64;
            let (budget, smallest) = (&run.runtime.budget, rows / 2 < *BLOCK_ROWS.start());
            if (smallest || wanted <= budget.limit() / 4 / run.instances() as u64)
                && let Ok(taken) = Reservation::take(budget, wanted, "blocks in flight")
            {
                break taken;
            }
            if smallest {
                let what = "blocks in flight";
                return Err(Error::Memory { what, wanted });
            }
            rows /= 2;
        };
        Ok(Flow {
            blocks: Blocks::new(run.execution.reuse),
            rows,
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

    /// Fails if the query was cancelled.
    pub fn check(&self) -> Result<()> {
        self.stop.check()
    }
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
    let mut raise = Raise(Some(flow));
    let done = task.await;
    if done.is_ok() {
        raise.0 = None;
    }
    done
}

pub(crate) fn source_name(pipeline: &Pipeline) -> String {
    match &pipeline.source {
        Source::Scan(scan) => format!("scan {}", table::titled(&scan.table.definition().name)),
        Source::Read(reading) => format!("read {}", reading.source.name()),
        Source::Values { .. } => "values".into(),
        Source::Rows(stage) => format!("rows of stage {stage}"),
        Source::Marked { stage, .. } => format!("marked rows of stage {stage}"),
    }
}
