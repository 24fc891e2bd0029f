//! What the tasks of a stage share, for the streaming and the staged executor.

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
use crate::operators::pipeline::Scratch;
use crate::options::{BLOCK_ROWS, Execution};
use crate::physical::program::{Pipeline, Sink, Source};

/// Rows of a block, if nobody says otherwise: those of a stored one.
const ROWS: usize = table::BLOCK_ROWS;

/// What all tasks of a stage share.
pub(crate) struct Flow {
    pub blocks: Blocks,
    /// Most rows of a block.
    pub rows: usize,
    pub limit: Limit,
    /// What blocks on their way may take.
    _taken: Reservation,
    pub stop: Stop,
}

impl Flow {
    /// For blocks of which `flights` may be on their way at once, with rows of `width` bytes. They take a quarter of
    /// the memory limit at most: where that is not enough they are smaller than was asked for.
    ///
    /// # Errors
    /// [`Error::Memory`] if the smallest do not fit.
    pub fn new(run: &QueryState, sink: &Sink, flights: usize, width: usize) -> Result<Flow> {
        let mut rows = run.execution.block_rows.unwrap_or(ROWS);
        let taken = loop {
            let wanted = (rows * flights * width) as u64;
            let (budget, smallest) = (&run.runtime.budget, rows / 2 < *BLOCK_ROWS.start());
            if (smallest || wanted <= budget.limit() / 4 / run.instances() as u64)
                && let Ok(taken) = Reservation::take(budget, wanted, "blocks on their way")
            {
                break taken;
            }
            if smallest {
                let what = "blocks on their way";
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

    /// Adds what is left of `block` after the steps from number `from` on to `end`.
    pub fn finish(
        &self,
        task: &PipelineTask,
        from: usize,
        block: &mut Block,
        scratch: &mut [Scratch],
        end: &mut Option<SinkState>,
    ) -> Result<()> {
        if self.limit.reached() {
            return Ok(());
        }
        let end = match end {
            Some(end) => end,
            None => end.insert(task.sinks.end()?),
        };
        let line = task.line(from..task.pipe.steps.len(), true);
        let mut rows = 0;
        for part in block.parts() {
            self.check()?;
            let Some(hold) = &part.hold else { continue };
            end.start(part.place);
            line.run(
                0,
                &mut part.batch,
                &mut part.origin,
                hold.reader(),
                scratch,
                &mut |batch, _| {
                    rows += batch.rows;
                    self.check()?;
                    task.sinks.add(end, batch)
                },
            )?;
        }
        self.limit.count(rows);
        Ok(())
    }

    /// Fails once the query was given up.
    pub fn check(&self) -> Result<()> {
        self.stop.check()
    }
}

/// As many as a task may need of the steps in `range`.
pub(crate) fn scratch(steps: usize) -> Vec<Scratch> {
    std::iter::repeat_with(Scratch::default)
        .take(steps)
        .collect()
}

/// Tasks of operator `number`, with `width` workers.
pub(crate) fn tasks(execution: &Execution, number: usize, width: usize) -> usize {
    let given = execution.tasks.get(number).or(execution.tasks.last());
    given.copied().unwrap_or(width).max(1)
}

/// The tasks of a stage.
pub(crate) type Tasks = Vec<fiber::JoinHandle<Result<Option<SinkState>>>>;

/// Awaits all tasks. Once one fails, the others end where they next suspend: what they wait for may never come.
/// The failure of the stage is the first that is not but the consequence of another.
pub(crate) async fn join(running: Tasks, ends: &mut Vec<SinkState>) -> Result<()> {
    // Should this be dropped, they end in the same way.
    let mut running: FuturesUnordered<_> = running
        .into_iter()
        .map(|task| task.abort_on_drop())
        .collect();
    let mut failed = None;
    while let Some(done) = running.next().await {
        let error = match done {
            Ok(Ok(end)) => {
                ends.extend(end);
                continue;
            }
            Ok(Err(e)) => e,
            Err(fiber::Error::Cancelled) => Error::Cancelled,
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

/// `task`, whose failure (a panic included) stops all others.
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

pub(crate) fn source_name(pipe: &Pipeline) -> String {
    match &pipe.source {
        Source::Scan(scan) => format!("scan {}", scan.table.definition().name),
        Source::Read(reading) => format!("read {}", reading.batches.name()),
        Source::Values { .. } => "values".into(),
        Source::Rows(stage) => format!("rows of stage {stage}"),
        Source::Marked { stage, .. } => format!("marked rows of stage {stage}"),
    }
}
