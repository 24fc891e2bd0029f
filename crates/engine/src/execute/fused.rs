//! The fused executor: each worker takes one morsel after another through the whole pipeline into its own sink.

use std::sync::Arc;

use table::Morsel;

use crate::error::{Error, Result};
use crate::execute::open::OpenSource;
use crate::execute::per_node::worker_assignment;
use crate::execute::pieces::{Chunk, OpenRows, TakePieces, each_piece};
use crate::execute::query_state::QueryState;
use crate::execute::sink::SinkState;
use crate::execute::task::{PipelineTask, source_name};
use crate::operators::limit::Limit;
use crate::operators::meter::{At, PipelineMeter, WorkerClock};
use crate::operators::source::Selection;
use crate::operators::steps::Steps;
use crate::options::NumaPolicy;
use crate::physical::program::{Pipeline, Sink};
use crate::profile::Kernel;
use crate::vector::batch::Batch;

impl QueryState {
    /// Runs a pipeline over all morsels of its source and appends the sinks of its workers to `sinks`, of which they go on with
    /// groups that are there. Returns the profile of its operators if one is collected.
    pub async fn pipeline(
        &mut self,
        pipeline: &Pipeline,
        sink: &Sink,
        group_join: Option<usize>,
        limit: &Arc<Limit>,
        sinks: &mut Vec<SinkState>,
    ) -> Result<Vec<Kernel>> {
        let mut task = self.task(pipeline, sink, group_join)?;
        let line = self.execution.time_line.as_ref();
        if self.execution.profile.is_some() || line.is_some() {
            let meter = PipelineMeter::new(pipeline, sink, group_join.is_some(), &self.types);
            let meter = meter.on(line, self.stage, &source_name(pipeline));
            task.meter = Some(Arc::new(meter));
        }
        if self.execution.preload
            && let OpenSource::Read(opened) = &mut task.source
        {
            let line = opened.load(&self.runtime.workers).await?;
            self.report.push(line);
        }
        let pieces = task.source.pieces();
        if pieces == 0 {
            return Ok(vec![]);
        }
        // All threads, although fewer may run now: the width may rise during the query.
        let most = if pipeline.is_serial() {
            1
        } else {
            self.runtime.workers.threads()
        };
        let workers = most.min(pieces);
        let task = Arc::new(task);
        let mut begun = begun_groups(sinks, workers).into_iter();
        // The caller of a NUMA instance may be on another node, so an instance always spawns.
        if workers == 1 && self.share.is_none() {
            let mut sink = begun.next().map_or_else(|| task.sink_factory.sink(), Ok)?;
            work(&task, &mut sink, limit).await?;
            sinks.push(sink);
            self.report.extend(task.filtered());
            return Ok(task.kernels());
        }
        let plan = match task.source {
            OpenSource::Scan { .. } => self.execution.numa_policy,
            _ => NumaPolicy::Obliv,
        };
        let mut tasks = Vec::with_capacity(workers);
        for worker_set in worker_assignment(&self.runtime.workers, plan, workers)? {
            let (task, limit, sink) = (task.clone(), limit.clone(), begun.next());
            tasks.push(worker_set.spawn(self.stop.clone().over(async move {
                // The worker makes its own sink, so that memory is allocated on the node that first writes to it.
                let sink = sink.map_or_else(|| task.sink_factory.sink(), Ok);
                let done = match sink {
                    Ok(mut sink) => work(&task, &mut sink, &limit).await.map(|()| sink),
                    Err(e) => Err(e),
                };
                if done.is_err() {
                    task.stop.stop();
                }
                done
            })));
        }
        sinks.extend(begun);
        // If this future is dropped, tasks that wait for a device end at once.
        let tasks: Vec<_> = tasks.into_iter().map(|task| task.abort_on_drop()).collect();
        let mut failed = None;
        for task in tasks {
            match task.await.map_err(|e| Error::Call(Box::new(e)))? {
                Ok(sink) => sinks.push(sink),
                Err(Error::Cancelled) => failed = failed.or(Some(Error::Cancelled)),
                Err(e) => failed = Some(e),
            }
        }
        self.report.extend(task.filtered());
        failed.map_or(Ok(task.kernels()), Err)
    }
}

/// The groups that at most so many workers made of other pipelines of the stage, or in passes before: a join in many passes would leave
/// those of each pass behind. Workers come in the same order each time, so each goes on with what is on its node.
fn begun_groups(sinks: &mut Vec<SinkState>, workers: usize) -> Vec<SinkState> {
    let groups = sinks.iter().rev().take(workers);
    let groups = groups.take_while(|sink| matches!(sink, SinkState::Aggregate(_)));
    let count = groups.count();
    sinks.split_off(sinks.len() - count)
}

/// One worker's part of `task`.
async fn work(task: &Arc<PipelineTask>, sink: &mut SinkState, limit: &Limit) -> Result<()> {
    let clock = task
        .meter
        .as_ref()
        .map(|meter| meter.clock(task.traffic.nodes()));
    let mut worker = Worker {
        task,
        limit,
        sink,
        clock: clock.as_ref(),
        batch: Batch::new(task.types.len()),
        selection: Selection::default(),
        steps: Steps::new(task.pipeline.operators.len()),
    };
    each_piece(task, limit, &mut worker).await?;
    if let Some(clock) = clock {
        clock.end(&task.traffic);
    }
    Ok(())
}

/// One worker: takes vector after vector through all operators into its own sink.
struct Worker<'w> {
    task: &'w Arc<PipelineTask>,
    limit: &'w Limit,
    sink: &'w mut SinkState,
    clock: Option<&'w WorkerClock>,
    batch: Batch,
    selection: Selection,
    steps: Steps,
}

/// After so many steps with one vector, which a join makes many of, other tasks have their turn.
const TURN: usize = 64;

impl Worker<'_> {
    /// The next step of the vector that is under way.
    fn step(&mut self, rows: &OpenRows) -> Result<Option<usize>> {
        self.task.push(
            &mut self.batch,
            &mut self.selection,
            rows.hold.reader(),
            &mut self.steps,
            self.sink,
            self.clock,
        )
    }
}

impl TakePieces for Worker<'_> {
    fn begin(&mut self, place: u64) {
        self.sink.start(place);
    }

    async fn open(&mut self, morsel: Morsel) -> Result<Option<Chunk>> {
        let OpenSource::Scan { scan, filters, .. } = &self.task.source else {
            return Ok(None);
        };
        let Some(clock) = self.clock else {
            return Chunk::open(self.task, morsel, filters, &self.task.traffic, None).await;
        };
        clock.turn(At::Scan);
        let chunk = Chunk::open(self.task, morsel, filters, &clock.traffic, None).await?;
        clock.opened(morsel.rows(scan.table()));
        clock.turn(At::Elsewhere);
        Ok(chunk)
    }

    async fn take(&mut self, mut rows: OpenRows) -> Result<bool> {
        while rows.next(&mut self.selection) {
            self.batch.restart(self.selection.rows().len());
            self.steps.restart();
            let mut taken = 0;
            while let Some(came) = self.step(&rows)? {
                if self.limit.count(came) {
                    return Ok(true);
                }
                self.sink.flush().await?;
                taken += 1;
                if taken % TURN == 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
        Ok(false)
    }

    async fn end(&mut self) -> Result<()> {
        tokio::task::yield_now().await;
        Ok(())
    }
}
