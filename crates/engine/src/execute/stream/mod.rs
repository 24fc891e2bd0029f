//! The streaming executor: each operator of a pipeline is a set of tasks, and blocks of rows pass from one operator
//! to the next through bounded channels.
//!
//! A pipeline is split into the *scan*, which opens pieces of the source and tests the filters that work on stored
//! codes, groups of *operators*, which are cut before each probe but the first, and the *sink*, which all pipelines of a stage
//! share. A block carries the selection of rows of each open piece and the vectors read so far; each operator reads
//! only the columns it needs, for the rows that are left (late materialisation). Blocks have an identity but no
//! order: they may overtake one another.
//!
//! Every operator has as many tasks as there are workers, unless options say otherwise. A task sleeps while its
//! input is empty or its output full, so workers go to the operators for which blocks wait. If one block becomes
//! more blocks than fit in the next channel (a join with many matches), the task itself takes them to the end of
//! the pipeline: the number of blocks in flight stays bounded, and no task waits in the middle of a block.
//!
//! A block that another worker takes has to be read from another core's cache or from memory, and its task has to be
//! woken. So a worker takes rows to the end of the pipeline itself ([`to_end`]), vector by vector, while all workers
//! have work ([`Flow::keeps`]); it passes blocks on where one is without, as others wait for a device, or the source has
//! fewer readers than there are workers. Where options say how large blocks are or how many tasks operators have, all
//! rows go through the channels (decision 180).

pub(crate) mod block;
pub(crate) mod channel;
pub(crate) mod flow;
mod later;
pub(crate) mod port;
pub(crate) mod read;
pub(crate) mod source;
pub(crate) mod tally;
mod to_end;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::error::{Error, Result};
use crate::execute::query_state::QueryState;
use crate::execute::sink::SinkState;
use crate::execute::stream::block::{Block, Part};
use crate::execute::stream::channel::{Consumer, Producer, channel};
use crate::execute::stream::flow::{Flow, Tasks, keeping, stopping, tasks};
use crate::execute::stream::later::Later;
use crate::execute::stream::source::{SharedSource, ToChannel, scan};
use crate::execute::stream::tally::{Tallies, Tally, Waits, milliseconds};
use crate::execute::stream::to_end::ToEnd;
use crate::execute::task::{PipelineTask, source_name};
use crate::executor::Executor;
use crate::operators::steps::Steps;
use crate::physical::program::{Operator, Pipeline, Source, Stage};
use crate::profile::Record;
use crate::time_line::Timed;

/// An operator and the tallies of its tasks.
struct StreamOperator {
    name: String,
    tallies: Tallies,
}

/// Splits the operators of a pipeline: before each probe but the first.
fn cuts(operators: &[Operator]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut probes) = (0, 0);
    for (number, operator) in operators.iter().enumerate() {
        if matches!(operator, Operator::Probe(_)) {
            if probes > 0 {
                ranges.push(start..number);
                start = number;
            }
            probes += 1;
        }
    }
    ranges.push(start..operators.len());
    ranges
}

/// Runs all pipelines of a stage and appends the sinks to `sinks`.
pub(crate) async fn stage(
    run: &mut QueryState,
    number: usize,
    stage: &Stage,
    group_join: Option<usize>,
    sinks: &mut Vec<SinkState>,
) -> Result<()> {
    let begun = Instant::now();
    let width = run.runtime.workers.threads();
    let mut all = Vec::with_capacity(stage.pipelines.len());
    for pipeline in &stage.pipelines {
        all.push(Arc::new(run.task(pipeline, &stage.sink, group_join)?));
    }
    let all: Arc<[Arc<PipelineTask>]> = all.into();
    if let Some(alone) = alone(run, stage, &all) {
        return one_piece(run, number, stage, alone, sinks).await;
    }
    // Each operator has a channel behind it, and each of its tasks holds one input block and one output block.
    let operators = |task: &Arc<PipelineTask>| cuts(&task.pipeline.operators).len() + 1;
    let operators: usize = 1 + all.iter().map(operators).sum::<usize>();
    let execution = &run.execution;
    let flights = operators * (execution.queue + 2 * tasks(execution, operators, width));
    let row_bytes = all.iter().map(|task| task.row_bytes()).max().unwrap_or(1);
    let flow = Arc::new(Flow::new(run, &stage.sink, (flights, flights), row_bytes)?);
    let later = Arc::new(Later::new(&run.runtime.workers));
    let (operators, sources) = spawn(run, stage, &all, &flow, &later);
    later.join(sources, sinks).await?;
    report(run, number, &operators, &flow, begun);
    run.report
        .extend(all.iter().flat_map(|task| task.filtered()));
    Ok(())
}

/// The pipeline that has the one piece of a stage, if there is no more and it is in memory: then there is nothing that could be
/// done at the same time.
fn alone<'t>(
    run: &QueryState,
    stage: &Stage,
    all: &'t [Arc<PipelineTask>],
) -> Option<(&'t Arc<PipelineTask>, String)> {
    let mut full = all
        .iter()
        .zip(&stage.pipelines)
        .filter(|(task, _)| task.source.pieces() > 0);
    let (task, pipeline) = full.next()?;
    let is_read = matches!(pipeline.source, Source::Read(_));
    // The caller of a NUMA instance may be on another node.
    let here =
        keeping(&run.execution) && run.share.is_none() && task.source.pieces() == 1 && !is_read;
    (here && full.next().is_none()).then(|| (task, source_name(pipeline)))
}

/// Takes the one piece of a stage through its pipeline.
async fn one_piece(
    run: &mut QueryState,
    number: usize,
    stage: &Stage,
    (task, name): (&Arc<PipelineTask>, String),
    sinks: &mut Vec<SinkState>,
) -> Result<()> {
    let begun = Instant::now();
    let flow = Arc::new(Flow::new(run, &stage.sink, (0, 0), 1)?);
    let tallies = Tallies::new(1);
    let timed = run.timed(&name);
    for tally in tallies.each() {
        let shared = SharedSource::new(&flow, task);
        let scanning = scan(shared, tally.clone(), ToEnd::new(&flow, task));
        sinks.extend(timed.clone().over(scanning).await?);
    }
    let operator = StreamOperator { name, tallies };
    report(run, number, &[operator], &flow, begun);
    run.report.extend(task.filtered());
    Ok(())
}

/// Spawns the sources of all pipelines of a stage; the tasks of its operators and of its sink wait in `later`.
fn spawn(
    run: &QueryState,
    stage: &Stage,
    all: &Arc<[Arc<PipelineTask>]>,
    flow: &Arc<Flow>,
    later: &Arc<Later>,
) -> (Vec<StreamOperator>, Tasks) {
    let (queue, lock_free) = (run.execution.queue, run.execution.lock_free);
    let (into_sink, from_all) = channel::<(Block, usize)>(queue, lock_free);
    let mut spawner = Spawner {
        run,
        width: run.runtime.workers.threads(),
        flow,
        later,
        operators: Vec::new(),
        sources: Vec::new(),
    };
    for (which, (pipeline, task)) in stage.pipelines.iter().zip(all.iter()).enumerate() {
        if task.source.pieces() > 0 {
            spawner.pipeline(pipeline, task, which, &into_sink);
        }
    }
    drop(into_sink);
    spawner.sink(all, &from_all);
    let sources = spawner.sources.into_iter();
    let sources = sources.map(|source| run.runtime.workers.spawn(source));
    (spawner.operators, sources.collect())
}

/// Makes the tasks of a stage.
struct Spawner<'r> {
    run: &'r QueryState,
    /// How many workers there are.
    width: usize,
    flow: &'r Arc<Flow>,
    later: &'r Arc<Later>,
    /// The operators, in the order of the pipelines.
    operators: Vec<StreamOperator>,
    /// The tasks of the sources, which are spawned last: what they start must be there.
    sources: Vec<BoxFuture<'static, Result<Option<SinkState>>>>,
}

impl Spawner<'_> {
    /// Makes the scan and the operators of a pipeline, with a channel from one to the next. The last sends to the sink,
    /// with `which`, the number of the pipeline.
    fn pipeline(
        &mut self,
        pipeline: &Pipeline,
        task: &Arc<PipelineTask>,
        which: usize,
        into_sink: &Producer<(Block, usize)>,
    ) {
        let (queue, lock_free) = (self.run.execution.queue, self.run.execution.lock_free);
        let (sender, mut input) = channel::<Block>(queue, lock_free);
        let (tallies, timed) = self.operator(
            source_name(pipeline),
            task.source.readers(self.width),
            task.source.pieces(),
        );
        let shared = SharedSource::new(self.flow, task);
        for tally in tallies.each() {
            let output = ToChannel::new(self.flow, task, self.later, &sender);
            let (flow, tally, shared) = (self.flow.clone(), tally.clone(), shared.clone());
            flow.expect();
            let source = self.watched(&timed, async move {
                flow.begin();
                scan(shared, tally, output).await
            });
            self.sources.push(source.boxed());
        }
        drop(sender);
        let cuts = cuts(&pipeline.operators);
        let last = cuts.len() - 1;
        for (at, range) in cuts.into_iter().enumerate() {
            let name = operators_name(pipeline, &range);
            let (tallies, timed) = self.operator(name, self.width, usize::MAX);
            let (sender, next) = channel::<Block>(queue, lock_free);
            for tally in tallies.each() {
                let output = if at == last {
                    Output::Sink(into_sink.clone(), which)
                } else {
                    Output::Operators(sender.clone())
                };
                let task = OperatorTask {
                    flow: self.flow.clone(),
                    task: task.clone(),
                    range: range.clone(),
                    tally: tally.clone(),
                    input: input.clone(),
                    output,
                };
                self.later.add(self.watched(&timed, task.run()).boxed());
            }
            input = next;
        }
    }

    /// Makes the tasks of the sink, if any pipeline has rows for it.
    fn sink(&mut self, all: &Arc<[Arc<PipelineTask>]>, input: &Consumer<(Block, usize)>) {
        let none = self.sources.is_empty();
        let (tallies, timed) = self.operator("sink".into(), self.width, usize::MAX);
        if none {
            return;
        }
        for tally in tallies.each() {
            let task = gather(self.flow.clone(), all.clone(), tally.clone(), input.clone());
            self.later.add(self.watched(&timed, task).boxed());
        }
    }

    /// Adds an operator that would have `wanted` tasks and gets at most `most`. Returns the tallies of its tasks, and its place
    /// on the time line.
    fn operator(&mut self, name: String, wanted: usize, most: usize) -> (Tallies, Timed) {
        let tasks = tasks(&self.run.execution, self.operators.len(), wanted).min(most);
        let tallies = Tallies::new(tasks);
        let timed = self.run.timed(&name);
        self.operators.push(StreamOperator {
            name,
            tallies: tallies.clone(),
        });
        (tallies, timed)
    }

    /// `task`, which ends when the query is stopped and stops it when it fails.
    fn watched(
        &self,
        timed: &Timed,
        task: impl Future<Output = Result<Option<SinkState>>> + Send + 'static,
    ) -> impl Future<Output = Result<Option<SinkState>>> + Send + 'static {
        let task = stopping(self.flow.clone(), timed.clone().over(task));
        self.run.stop.clone().over(task)
    }
}

fn operators_name(pipeline: &Pipeline, range: &Range<usize>) -> String {
    let operator = |operator: &Operator| match operator {
        Operator::Filter(_) => Some("filter".to_string()),
        Operator::Map(..) | Operator::Together(_) => Some("lift".to_string()),
        Operator::Probe(probe) => Some(format!("dot stage {}", probe.stage)),
        Operator::Expand(expand) => Some(expand.function.name()),
        Operator::Nulls(_) | Operator::Alias(_) => None,
    };
    let mut names: Vec<String> = pipeline.operators[range.clone()]
        .iter()
        .filter_map(operator)
        .collect();
    names.dedup();
    if names.is_empty() {
        "operators: none".into()
    } else {
        format!("operators: {}", names.join(", "))
    }
}

fn report(
    run: &mut QueryState,
    number: usize,
    operators: &[StreamOperator],
    flow: &Flow,
    begun: Instant,
) {
    let (time, blocks) = (begun.elapsed(), &flow.blocks);
    let made = blocks.made.load(Ordering::Relaxed);
    let reused = blocks.reused.load(Ordering::Relaxed);
    run.report.push(format!(
        "stage {number}: stream, {} operators, {}; blocks of {} rows: {made} made, {reused} used again",
        operators.len(),
        milliseconds(time.as_nanos() as u64),
        flow.rows,
    ));
    let lines = operators.iter().map(|o| o.tallies.line(&o.name));
    run.report.extend(lines);
    if let Some(profile) = &run.execution.profile {
        let operators = operators.iter().map(|o| o.tallies.operator(&o.name));
        profile.note(Record {
            stage: number,
            executor: Executor::Stream,
            seconds: time.as_secs_f64(),
            block_rows: flow.rows,
            blocks_made: made,
            blocks_reused: reused,
            operators: operators.collect(),
            kernels: vec![],
        });
    }
}

/// Where the blocks of some operators go.
enum Output {
    Operators(Producer<Block>),
    /// The sink; the number says which pipeline of the stage the block comes from.
    Sink(Producer<(Block, usize)>, usize),
}

impl Output {
    async fn send(&self, block: Block, waits: &Waits) -> std::result::Result<(), Block> {
        match self {
            Output::Operators(next) => next.send(block, waits).await,
            Output::Sink(sink, which) => {
                let sent = sink.send((block, *which), waits).await;
                sent.map_err(|(block, _)| block)
            }
        }
    }

    fn queued(&self) -> usize {
        match self {
            Output::Operators(next) => next.queued(),
            Output::Sink(sink, _) => sink.queued(),
        }
    }

    fn try_send(&self, block: Block) -> std::result::Result<(), Block> {
        match self {
            Output::Operators(next) => next.try_send(block),
            Output::Sink(sink, which) => sink.try_send((block, *which)).map_err(|(block, _)| block),
        }
    }
}

/// A task that runs some consecutive operators.
struct OperatorTask {
    flow: Arc<Flow>,
    task: Arc<PipelineTask>,
    range: Range<usize>,
    tally: Arc<Tally>,
    input: Consumer<Block>,
    output: Output,
}

impl OperatorTask {
    async fn run(self) -> Result<Option<SinkState>> {
        let flow = &*self.flow;
        let mut own = Steps::new(self.range.len());
        let mut rest = Steps::new(self.task.pipeline.operators.len() - self.range.end);
        let mut sink = None;
        while let Some(mut block) = self.input.receive(&self.tally.input).await {
            flow.check()?;
            let mut out = flow.blocks.get();
            out.id = block.id;
            if !flow.limit.reached() {
                self.block(&mut block, &mut out, &mut own, &mut rest, &mut sink)?;
            }
            flow.blocks.put(block);
            if let Some(sink) = &mut sink {
                sink.flush().await?;
            }
            if out.rows == 0 {
                flow.blocks.put(out);
                continue;
            }
            self.tally.count(1, out.rows);
            if flow.keeps(self.output.queued()) {
                self.take_on(out, &mut rest, &mut sink)?;
            } else if self.output.send(out, &self.tally.output).await.is_err() {
                return Err(Error::Cancelled);
            }
            flow.yield_now().await;
        }
        Ok(sink)
    }

    /// Takes a block that these operators made to the end of the pipeline.
    fn take_on(
        &self,
        mut block: Block,
        rest: &mut Steps,
        sink: &mut Option<SinkState>,
    ) -> Result<()> {
        let flow = &*self.flow;
        let _working = self.tally.work();
        self.tally.kept.fetch_add(1, Ordering::Relaxed);
        flow.finish(&self.task, self.range.end, &mut block, rest, sink)?;
        flow.blocks.put(block);
        Ok(())
    }

    /// Takes one block through the operators into `out`. Full output blocks are sent at once, or taken to the end
    /// of the pipeline here if the channel is full.
    fn block(
        &self,
        block: &mut Block,
        out: &mut Block,
        own: &mut Steps,
        rest: &mut Steps,
        sink: &mut Option<SinkState>,
    ) -> Result<()> {
        let _working = self.tally.work();
        let flow = &*self.flow;
        let executor = self.task.executor(self.range.clone(), false);
        let id = block.id;
        for part in block.parts() {
            flow.check()?;
            let Part {
                batch,
                selection,
                hold,
                place,
            } = part;
            let Some(hold) = hold.clone() else { continue };
            executor.run(
                batch,
                selection,
                hold.reader(),
                own,
                &mut |batch, selection| {
                    if out.rows > 0 && out.rows + batch.rows > flow.rows {
                        let mut full = std::mem::replace(out, flow.blocks.get());
                        out.id = id;
                        self.tally.count(1, full.rows);
                        if let Err(back) = self.output.try_send(full) {
                            full = back;
                            self.tally.inline.fetch_add(1, Ordering::Relaxed);
                            flow.finish(&self.task, self.range.end, &mut full, rest, sink)?;
                            flow.blocks.put(full);
                        }
                        flow.check()?;
                    }
                    out.take(batch, selection, &hold, *place);
                    Ok(())
                },
            )?;
        }
        Ok(())
    }
}

/// A task of the sink.
async fn gather(
    flow: Arc<Flow>,
    all: Arc<[Arc<PipelineTask>]>,
    tally: Arc<Tally>,
    input: Consumer<(Block, usize)>,
) -> Result<Option<SinkState>> {
    let mut sink = None;
    while let Some((mut block, which)) = input.receive(&tally.input).await {
        flow.check()?;
        let task = &all[which];
        {
            let _working = tally.work();
            tally.count(1, block.rows);
            flow.finish(
                task,
                task.pipeline.operators.len(),
                &mut block,
                &mut Steps::default(),
                &mut sink,
            )?;
        }
        flow.blocks.put(block);
        if let Some(sink) = &mut sink {
            sink.flush().await?;
        }
        flow.yield_now().await;
    }
    Ok(sink)
}
