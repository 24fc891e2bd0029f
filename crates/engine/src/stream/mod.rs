//! Streaming execution (L5): each operator of a pipeline is tasks of its own, and blocks of rows go from one to
//! the next through bounded channels.
//!
//! A pipeline is cut into a *scan*, which opens pieces of the source and tests the filters that work on stored
//! codes, *steps*, cut before each look-up but the first, and the *sink*, which all pipelines of a stage share
//! (several inputs). A block carries which rows of which opened pieces it holds and the vectors that were read so
//! far; each operator reads only what it needs, for the rows that are left by then. What is matched between
//! operators is a block's identity, not its place in an order: blocks overtake one another.
//!
//! Every operator has as many tasks as there are workers, unless told otherwise. A task sleeps where its input is
//! empty or its output is full, so that workers go to the operators that blocks wait for. Where one block becomes
//! more than fit into the next channel (a join of many partners), the task takes them to the end by itself: what
//! is in flight stays bounded, and no task waits in the middle of a block.

mod block;
mod channel;
mod read;
mod source;
mod tally;

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use futures::StreamExt;
use futures::stream::FuturesUnordered;

use crate::error::{Error, Result};
use crate::execution::{BLOCK_ROWS, Execution, Executor};
use crate::held::Held;
use crate::ledger::Record;
use crate::plan::{Pipe, Sink, Source, Stage, Step};
use crate::run::{End, Enough, Job, Run};
use crate::step::Scratch;
use crate::stop::Stop;

pub(crate) use block::{Block, Blocks, Chunk, Hold, Part};
pub(crate) use channel::{Consumer, Producer, channel};
pub(crate) use source::{Hand, Sending, Shared, scan};
pub(crate) use tally::{Tallies, Tally, Waits, milliseconds};

/// Rows of a block, if nobody says otherwise: those of a stored one.
const ROWS: usize = table::BLOCK_ROWS;

/// What all tasks of a stage share.
pub(crate) struct Flow {
    pub blocks: Blocks,
    /// Most rows of a block.
    pub rows: usize,
    pub enough: Enough,
    /// What blocks on their way may take.
    _taken: Held,
    pub stop: Stop,
}

/// One operator.
struct Operator {
    name: String,
    tallies: Tallies,
}

impl Flow {
    /// For blocks of which `flights` may be on their way at once, with rows of `width` bytes. They take a quarter of
    /// the memory limit at most: where that is not enough they are smaller than was asked for.
    ///
    /// # Errors
    /// [`Error::Memory`] if the smallest do not fit.
    pub fn new(run: &Run, sink: &Sink, flights: usize, width: usize) -> Result<Flow> {
        let mut rows = run.execution.block_rows.unwrap_or(ROWS);
        let taken = loop {
            let wanted = (rows * flights * width) as u64;
            let (budget, smallest) = (&run.runtime.budget, rows / 2 < *BLOCK_ROWS.start());
            if (smallest || wanted <= budget.limit() / 4 / run.instances() as u64)
                && let Ok(taken) = Held::take(budget, wanted, "blocks on their way")
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
            enough: Enough::new(sink),
            stop: run.stop.clone(),
        })
    }

    /// Adds what is left of `block` after the steps from number `from` on to `end`.
    pub fn finish(
        &self,
        job: &Job,
        from: usize,
        block: &mut Block,
        scratch: &mut [Scratch],
        end: &mut Option<End>,
    ) -> Result<()> {
        if self.enough.reached() {
            return Ok(());
        }
        let end = match end {
            Some(end) => end,
            None => end.insert(job.shape.end()?),
        };
        let line = job.line(from..job.pipe.steps.len(), true);
        let mut rows = 0;
        for part in block.parts() {
            self.check()?;
            let Some(hold) = &part.hold else { continue };
            end.start(part.place);
            line.run(
                0,
                &mut part.batch,
                &mut part.origin,
                hold.feed(),
                scratch,
                &mut |batch, _| {
                    rows += batch.rows;
                    self.check()?;
                    job.shape.add(end, batch)
                },
            )?;
        }
        self.enough.count(rows);
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

/// Where `steps` are cut: before each look-up but the first.
fn cuts(steps: &[Step]) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let (mut start, mut probes) = (0, 0);
    for (number, step) in steps.iter().enumerate() {
        if matches!(step, Step::Probe(_)) {
            if probes > 0 {
                ranges.push(start..number);
                start = number;
            }
            probes += 1;
        }
    }
    ranges.push(start..steps.len());
    ranges
}

/// Tasks of operator `number`, with `width` workers.
pub(crate) fn tasks(execution: &Execution, number: usize, width: usize) -> usize {
    let given = execution.tasks.get(number).or(execution.tasks.last());
    given.copied().unwrap_or(width).max(1)
}

/// The tasks of a stage.
pub(crate) type Tasks = Vec<fiber::JoinHandle<Result<Option<End>>>>;

/// Runs all pipelines of a stage; adds the sinks to `ends`.
pub(crate) async fn stage(
    run: &mut Run,
    number: usize,
    stage: &Stage,
    by_row: Option<usize>,
    ends: &mut Vec<End>,
) -> Result<()> {
    let begun = Instant::now();
    let execution = run.execution.clone();
    let width = run.runtime.workers.threads();
    let mut jobs = Vec::with_capacity(stage.pipes.len());
    for pipe in &stage.pipes {
        jobs.push(Arc::new(run.job(pipe, &stage.sink, by_row)?));
    }
    let jobs: Arc<[Arc<Job>]> = jobs.into();
    // Each operator has a channel behind it, and each of its tasks one block that comes and one that goes.
    let operators = |job: &Arc<Job>| cuts(&job.pipe.steps).len() + 1;
    let operators: usize = 1 + jobs.iter().map(operators).sum::<usize>();
    let flights = operators * (execution.queue + 2 * tasks(&execution, operators, width));
    let row_bytes = jobs.iter().map(|job| job.row_bytes()).max().unwrap_or(1);
    let flow = Arc::new(Flow::new(run, &stage.sink, flights, row_bytes)?);
    let mut operators: Vec<Operator> = Vec::new();
    let mut running: Tasks = Vec::new();
    let (into_sink, from_all) = channel::<(Block, usize)>(execution.queue, execution.lock_free);
    for (which, (pipe, job)) in stage.pipes.iter().zip(jobs.iter()).enumerate() {
        if job.source.pieces() == 0 {
            continue;
        }
        let spawn = |name: String, wanted: usize, most: usize| {
            let tasks = tasks(&execution, operators.len(), wanted).min(most);
            let tallies = Tallies::new(tasks);
            operators.push(Operator {
                name,
                tallies: tallies.clone(),
            });
            tallies
        };
        let mut spawn = spawn;
        let (sender, mut input) = channel::<Block>(execution.queue, execution.lock_free);
        let tallies = spawn(
            source_name(pipe),
            job.source.readers(width),
            job.source.pieces(),
        );
        let shared = Shared::new(&flow, job);
        for tally in tallies.each() {
            let hand = Sending {
                flow: flow.clone(),
                output: sender.clone(),
            };
            let task = scan(shared.clone(), tally.clone(), hand);
            running.push(run.runtime.workers.spawn(stopping(flow.clone(), task)));
        }
        drop(sender);
        let cuts = cuts(&pipe.steps);
        let last = cuts.len() - 1;
        for (at, range) in cuts.into_iter().enumerate() {
            let tallies = spawn(steps_name(pipe, &range), width, usize::MAX);
            let (sender, next) = channel::<Block>(execution.queue, execution.lock_free);
            for tally in tallies.each() {
                let output = match at == last {
                    true => Output::Sink(into_sink.clone(), which),
                    false => Output::Steps(sender.clone()),
                };
                let task = Steps {
                    flow: flow.clone(),
                    job: job.clone(),
                    range: range.clone(),
                    tally: tally.clone(),
                    input: input.clone(),
                    output,
                };
                running.push(
                    run.runtime
                        .workers
                        .spawn(stopping(flow.clone(), task.run())),
                );
            }
            input = next;
        }
    }
    drop(into_sink);
    let sink = Operator {
        name: "sink".into(),
        tallies: Tallies::new(tasks(&execution, operators.len(), width)),
    };
    if !running.is_empty() {
        for tally in sink.tallies.each() {
            let task = gather(flow.clone(), jobs.clone(), tally.clone(), from_all.clone());
            running.push(run.runtime.workers.spawn(stopping(flow.clone(), task)));
        }
    }
    drop(from_all);
    operators.push(sink);
    join(running, ends).await?;
    report(run, number, &operators, &flow, begun);
    Ok(())
}

/// Awaits all tasks. Once one fails, the others end where they next suspend: what they wait for may never come.
/// The failure of the stage is the first that is not but the consequence of another.
pub(crate) async fn join(running: Tasks, ends: &mut Vec<End>) -> Result<()> {
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
    task: impl Future<Output = Result<Option<End>>>,
) -> Result<Option<End>> {
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

pub(crate) fn source_name(pipe: &Pipe) -> String {
    match &pipe.source {
        Source::Scan(scan) => format!("scan {}", scan.table.definition().name),
        Source::Read(reading) => format!("read {}", reading.batches.name()),
        Source::Values { .. } => "values".into(),
        Source::Rows(stage) => format!("rows of stage {stage}"),
        Source::Marked { stage, .. } => format!("marked rows of stage {stage}"),
    }
}

fn steps_name(pipe: &Pipe, range: &Range<usize>) -> String {
    let step = |step: &Step| match step {
        Step::Filter(_) => Some("filter".to_string()),
        Step::Map(..) => Some("lift".to_string()),
        Step::Probe(probe) => Some(format!("dot stage {}", probe.stage)),
        Step::Nulls(_) | Step::Alias(_) => None,
    };
    let mut names: Vec<String> = pipe.steps[range.clone()].iter().filter_map(step).collect();
    names.dedup();
    match names.is_empty() {
        true => "steps: none".into(),
        false => format!("steps: {}", names.join(", ")),
    }
}

fn report(run: &mut Run, number: usize, operators: &[Operator], flow: &Flow, begun: Instant) {
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
    if let Some(ledger) = &run.execution.ledger {
        let operators = operators.iter().map(|o| o.tallies.operator(&o.name));
        ledger.note(Record {
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

/// Where the blocks of steps go.
enum Output {
    Steps(Producer<Block>),
    /// The sink, as those of this pipeline.
    Sink(Producer<(Block, usize)>, usize),
}

impl Output {
    async fn send(&self, block: Block, waits: &Waits) -> std::result::Result<(), Block> {
        match self {
            Output::Steps(next) => next.send(block, waits).await,
            Output::Sink(sink, which) => {
                let sent = sink.send((block, *which), waits).await;
                sent.map_err(|(block, _)| block)
            }
        }
    }

    fn try_send(&self, block: Block) -> std::result::Result<(), Block> {
        match self {
            Output::Steps(next) => next.try_send(block),
            Output::Sink(sink, which) => sink.try_send((block, *which)).map_err(|(block, _)| block),
        }
    }
}

/// A task of some steps.
struct Steps {
    flow: Arc<Flow>,
    job: Arc<Job>,
    range: Range<usize>,
    tally: Arc<Tally>,
    input: Consumer<Block>,
    output: Output,
}

impl Steps {
    async fn run(self) -> Result<Option<End>> {
        let flow = &*self.flow;
        let mut own = scratch(self.range.len());
        let mut rest = scratch(self.job.pipe.steps.len() - self.range.end);
        let mut end = None;
        while let Some(mut block) = self.input.receive(&self.tally.input).await {
            flow.check()?;
            let mut out = flow.blocks.get();
            out.id = block.id;
            if !flow.enough.reached() {
                self.block(&mut block, &mut out, &mut own, &mut rest, &mut end)?;
            }
            flow.blocks.put(block);
            if let Some(end) = &mut end {
                end.flush().await?;
            }
            if out.rows == 0 {
                flow.blocks.put(out);
                continue;
            }
            self.tally.count(1, out.rows);
            if self.output.send(out, &self.tally.output).await.is_err() {
                return Err(Error::Cancelled);
            }
            tokio::task::yield_now().await;
        }
        Ok(end)
    }

    /// Takes one block through the steps; what is more than `out` holds goes on, or to the end, at once.
    fn block(
        &self,
        block: &mut Block,
        out: &mut Block,
        own: &mut [Scratch],
        rest: &mut [Scratch],
        end: &mut Option<End>,
    ) -> Result<()> {
        let _working = self.tally.work();
        let flow = &*self.flow;
        let line = self.job.line(self.range.clone(), false);
        let id = block.id;
        for part in block.parts() {
            flow.check()?;
            let Part {
                batch,
                origin,
                hold,
                place,
            } = part;
            let Some(hold) = hold.clone() else { continue };
            line.run(0, batch, origin, hold.feed(), own, &mut |batch, origin| {
                if out.rows > 0 && out.rows + batch.rows > flow.rows {
                    let mut full = std::mem::replace(out, flow.blocks.get());
                    out.id = id;
                    self.tally.count(1, full.rows);
                    if let Err(back) = self.output.try_send(full) {
                        full = back;
                        self.tally.inline.fetch_add(1, Ordering::Relaxed);
                        flow.finish(&self.job, self.range.end, &mut full, rest, end)?;
                        flow.blocks.put(full);
                    }
                    flow.check()?;
                }
                out.take(batch, origin, &hold, *place);
                Ok(())
            })?;
        }
        Ok(())
    }
}

/// A task of the sink.
async fn gather(
    flow: Arc<Flow>,
    jobs: Arc<[Arc<Job>]>,
    tally: Arc<Tally>,
    input: Consumer<(Block, usize)>,
) -> Result<Option<End>> {
    let mut end = None;
    while let Some((mut block, which)) = input.receive(&tally.input).await {
        flow.check()?;
        let job = &jobs[which];
        {
            let _working = tally.work();
            tally.count(1, block.rows);
            flow.finish(job, job.pipe.steps.len(), &mut block, &mut [], &mut end)?;
        }
        flow.blocks.put(block);
        if let Some(end) = &mut end {
            end.flush().await?;
        }
        tokio::task::yield_now().await;
    }
    Ok(end)
}
