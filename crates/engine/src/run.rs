//! Running programs, and fused execution (L4): each worker takes a piece of a source through the whole pipeline
//! into its own sink, and the sinks are merged.

mod answer;
mod away;
mod best;
mod distr;
mod enough;
mod fold;
mod job;
mod merge;
mod needs;
mod open;
mod passes;
mod rows;
mod send;
mod sink;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use arrow::array::RecordBatch;
use fiber::{Nearness, Workers};
use memory::{Budget, Traffic};
use tokio::sync::mpsc::Sender;

use crate::error::{Error, Result};
use crate::execution::{Execution, Executor, Plan};
use crate::expr::Var;
use crate::held::Held;
use crate::ledger::{Kernel, Meter, Record};
use crate::lookup::Lookup;
use crate::plan::{Pipe, Program, Sink, Stage};
use crate::rel::Output;
use crate::source::{Filed, Stored};
use crate::spill::Spill;
use crate::stop::Stop;
use crate::value::{Type, Vector};
use crate::{staged, stream};

pub(crate) use best::Bar;
pub(crate) use enough::Enough;
pub(crate) use job::{Job, node};
pub(crate) use open::Opened;
use passes::Parted;
use send::Out;
pub(crate) use sink::{End, Shape};

/// What a query runs with.
#[derive(Clone, Debug)]
pub struct Runtime {
    /// They compute.
    pub workers: Arc<Workers>,
    /// Memory that results between stages are taken from.
    pub budget: Arc<Budget>,
    /// Bytes read, by node.
    pub traffic: Arc<Traffic>,
    /// Which node is how near to which.
    pub nearness: Nearness,
    /// Raised to give the query up.
    pub stop: Stop,
}

/// A running query.
pub(crate) struct Run {
    pub runtime: Runtime,
    pub execution: Execution,
    pub stop: Stop,
    /// Where the answer goes.
    out: Arc<Out>,
    /// Whether rows of the stage that runs go there as they come.
    sends: bool,
    /// What the executor tells of each stage.
    pub report: Vec<String>,
    types: Arc<[Type]>,
    parameters: Vec<Option<Vector>>,
    lookups: Vec<Option<Arc<Lookup>>>,
    rows: Vec<Option<Arc<Stored>>>,
    /// Rows of stages that did not fit in memory.
    filed: Vec<Option<Arc<Filed>>>,
    /// Tables of stages that did not.
    parted: Vec<Option<Arc<Parted>>>,
    /// Where those lie.
    spill: Arc<Spill>,
    /// For each stage, whether its table may be worked on part by part.
    may_part: Arc<[bool]>,
    /// For each stage, about how many rows are looked up in its table.
    sought: Arc<[u64]>,
    /// Whether what the stage that runs gathers may be put away.
    may_spill: bool,
    /// What the rows and the table of each stage take.
    held: Vec<Vec<Held>>,
    /// Workers of the whole query when it began.
    width: usize,
    /// If it is one of several instances, which.
    share: Option<distr::Share>,
    /// If it has several instances, those.
    instances: Option<distr::Instances>,
}

/// Raised when the query is dropped, so that workers stop at their next piece.
struct StopOnDrop(Stop);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Runs `program`; sends its answer to `sender`, and gives what the executor tells of it.
pub(crate) async fn run(
    program: &Program,
    types: Arc<[Type]>,
    output: &Output,
    runtime: &Runtime,
    execution: &Execution,
    sender: Sender<RecordBatch>,
) -> Result<Vec<String>> {
    let stop = StopOnDrop(runtime.stop.below());
    let mut run = Run {
        runtime: runtime.clone(),
        execution: execution.clone(),
        report: vec![format!(
            "run by the {} executor, plan {}",
            execution.executor.name(),
            execution.plan.name()
        )],
        sends: false,
        out: Arc::new(Out::new(sender, output, &types)),
        types: types.clone(),
        parameters: vec![None; program.parameters.len()],
        lookups: vec![None; program.stages.len()],
        rows: std::iter::repeat_with(|| None)
            .take(program.stages.len())
            .collect(),
        filed: vec![None; program.stages.len()],
        parted: vec![None; program.stages.len()],
        spill: Spill::new(execution.spill.clone()),
        may_spill: false,
        may_part: passes::may_be_parted(program).into(),
        sought: passes::sought(program).into(),
        held: std::iter::repeat_with(Vec::new)
            .take(program.stages.len())
            .collect(),
        stop: stop.0.clone(),
        width: runtime.workers.threads(),
        share: None,
        instances: match execution.plan {
            Plan::Distr => distr::Instances::new(runtime, program, &types)?,
            _ => None,
        },
    };
    let last = passes::last_uses(program);
    for (number, stage) in program.stages.iter().enumerate() {
        run.stage(number, stage, number == program.answer).await?;
        for (parameter, (of, var)) in program.parameters.iter().enumerate() {
            if *of == number {
                run.parameters[parameter] = Some(run.single(number, *var)?);
            }
        }
        let over = last.iter().enumerate().filter(|(_, last)| **last == number);
        over.for_each(|(stage, _)| run.forget(stage));
    }
    // None if it left while it was computed.
    if let Some(answer) = run.rows[program.answer].take() {
        run.out.send(&answer).await?;
    }
    if let Some(filed) = run.filed[program.answer].take() {
        for extent in &filed.extents {
            run.out.send(&filed.get(extent)?).await?;
        }
    }
    Ok(run.report)
}

impl Run {
    /// The value of a subquery: NULL if it has no row.
    fn single(&self, stage: usize, var: Var) -> Result<Vector> {
        let stored = self.few(stage)?;
        let stored = stored.ok_or_else(|| Error::internal("a subquery without rows"))?;
        match stored.rows {
            0 => Ok(Vector::nulls(self.types[var].kind, 1)),
            1 => stored
                .columns
                .get(&var)
                .cloned()
                .ok_or_else(|| Error::internal("a subquery without value")),
            rows => Err(Error::ManyRows { rows }),
        }
    }

    fn take(&mut self, number: usize, bytes: usize, what: &'static str) -> Result<()> {
        let held = Held::take(&self.runtime.budget, bytes as u64, what)?;
        self.held[number].push(held);
        Ok(())
    }

    /// Whether so little memory is left that what is to stay should rather be put away: what passes through needs some.
    fn is_full(&self) -> bool {
        let budget = &self.runtime.budget;
        budget.used() > budget.limit() / 4 * 3
    }

    /// Gives back what the rows or the table of a stage take.
    fn forget(&mut self, number: usize) {
        self.lookups[number] = None;
        if let Some(all) = &mut self.instances {
            all.forget(number);
        }
        (self.rows[number], self.filed[number]) = (None, None);
        self.held[number].clear();
    }

    fn note_spilled(&mut self, number: usize, what: &str) {
        let bytes = self.spill.bytes() >> 10;
        self.report.push(format!(
            "stage {number}: {what} did not fit in memory; {bytes} KiB put in a file by now"
        ));
    }

    async fn stage(&mut self, number: usize, stage: &Stage, answer: bool) -> Result<()> {
        let by_row = self.by_row(&stage.sink);
        self.sends = answer && stage.sink.is_plain();
        self.may_spill = self.spill.is_allowed()
            && (self.may_part[number] || !matches!(stage.sink, Sink::Table { .. }));
        let mut ends = Vec::new();
        for (tables, stage) in passes::groups(stage, &self.parted) {
            self.passes(number, &stage, &tables, by_row, &mut ends)
                .await?;
        }
        let shape = self.shape(&stage.sink, by_row)?;
        if ends.is_empty() {
            // No row came; the columns are there all the same.
            ends.push(shape.end()?);
        }
        match &stage.sink {
            Sink::Table { .. } => self.table(number, &shape, ends).await,
            Sink::Fold { .. } => self.folded(number, &shape, by_row, ends),
            Sink::Rows { .. } if self.sends => {
                for end in ends {
                    end.sent()?.last().await?;
                }
                Ok(())
            }
            Sink::Rows { .. } => self.gathered(number, &shape, ends),
        }
    }

    /// Runs the pipelines of a stage on the workers of this instance.
    async fn here(
        &mut self,
        number: usize,
        stage: &Stage,
        by_row: Option<usize>,
        ends: &mut Vec<End>,
    ) -> Result<()> {
        let executor = match self.is_small(stage) {
            true => Executor::Fused,
            false => self.execution.executor,
        };
        if executor != self.execution.executor {
            self.report
                .push(format!("stage {number}: too few rows for several tasks"));
        }
        match executor {
            Executor::Fused => {
                let begun = Instant::now();
                let enough = Arc::new(Enough::new(&stage.sink));
                let mut kernels = vec![];
                for pipe in &stage.pipes {
                    let done = self.pipe(pipe, &stage.sink, by_row, &enough, ends).await?;
                    kernels.extend(done);
                }
                let seconds = begun.elapsed().as_secs_f64();
                if let Some(ledger) = &self.execution.ledger {
                    ledger.note(Record {
                        stage: number,
                        executor,
                        seconds,
                        block_rows: 0,
                        blocks_made: 0,
                        blocks_reused: 0,
                        operators: vec![],
                        kernels,
                    });
                }
                let time = stream::milliseconds((seconds * 1e9) as u64);
                self.report.push(format!("stage {number}: fused, {time}"));
                Ok(())
            }
            Executor::Stream => stream::stage(self, number, stage, by_row, ends).await,
            Executor::Staged => staged::stage(self, number, stage, by_row, ends).await,
        }
    }

    /// How many instances run at once.
    pub fn instances(&self) -> usize {
        self.share.as_ref().map_or(1, distr::Share::of)
    }

    /// The stage whose table's rows are the groups of `sink`, if they are.
    fn by_row(&self, sink: &Sink) -> Option<usize> {
        let Sink::Fold {
            by_row: Some(by),
            folds,
            ..
        } = sink
        else {
            return None;
        };
        let lookup = self.lookups[by.stage].as_ref()?;
        // Every worker has a state for each row, which cannot be put away.
        let bytes = (lookup.all * self.width * (1 + 24 * folds.len())) as u64;
        let budget = &self.runtime.budget;
        let fits = bytes <= budget.limit().saturating_sub(budget.used()) / 3;
        let fits = fits && lookup.all <= self.room();
        (lookup.unique && fits).then_some(by.stage)
    }

    /// Rows or groups that a worker keeps at most.
    fn room(&self) -> usize {
        self.execution.room.unwrap_or(usize::MAX)
    }

    /// What the sinks of workers are made from.
    fn shape(&self, sink: &Sink, by_row: Option<usize>) -> Result<Shape> {
        let width = self.width as u64;
        let rows = by_row.map(|stage| self.lookups[stage].as_ref().ok_or_else(missing));
        let vars: BTreeSet<Var> = match sink {
            Sink::Table { keys, vars, .. } => keys.iter().chain(vars).copied().collect(),
            Sink::Rows { vars, .. } => vars.iter().copied().collect(),
            Sink::Fold { .. } => BTreeSet::new(),
        };
        Ok(Shape {
            bar: Bar::of(sink, &self.types),
            sink: sink.clone(),
            rows: rows.transpose()?.map(|lookup| lookup.all),
            types: self.types.clone(),
            budget: self.runtime.budget.clone(),
            spill: self.spill.clone(),
            may_spill: self.may_spill,
            room: self.room(),
            vars: vars
                .into_iter()
                .map(|var| (var, self.types[var].kind))
                .collect(),
            out: self.sends.then(|| self.out.clone()),
            most: (self.runtime.budget.limit() / 16 / width / 32).min(1 << 26),
        })
    }

    /// Takes all pieces of a pipeline's source through it; adds the sinks of the workers to `ends`. Gives what its
    /// operators did, if somebody asks.
    async fn pipe(
        &mut self,
        pipe: &Pipe,
        sink: &Sink,
        by_row: Option<usize>,
        enough: &Arc<Enough>,
        ends: &mut Vec<End>,
    ) -> Result<Vec<Kernel>> {
        let mut job = self.job(pipe, sink, by_row)?;
        if self.execution.ledger.is_some() {
            let meter = Meter::new(pipe, sink, by_row.is_some(), &self.types);
            job.meter = Some(Arc::new(meter));
        }
        if self.execution.preload
            && let Opened::Read(opened) = &mut job.source
        {
            let line = opened.load(&self.runtime.workers).await?;
            self.report.push(line);
        }
        let pieces = job.source.pieces();
        if pieces == 0 {
            return Ok(vec![]);
        }
        // As many as can be: the width may rise while they run.
        let workers = self.runtime.workers.threads().min(pieces);
        let job = Arc::new(job);
        // Whoever awaits this is not on the node of an instance.
        if workers == 1 && self.share.is_none() {
            let mut end = job.shape.end()?;
            job.work(&mut end, enough).await?;
            ends.push(end);
            return Ok(job.kernels());
        }
        let plan = match job.source {
            Opened::Scan { .. } => self.execution.plan,
            _ => Plan::Obliv,
        };
        let mut tasks = Vec::with_capacity(workers);
        for seat in distr::seats(&self.runtime.workers, plan, workers)? {
            let (job, enough) = (job.clone(), enough.clone());
            tasks.push(seat.spawn(async move {
                // Made by whoever fills it: memory is taken on the node that first writes to it.
                let done = match job.shape.end() {
                    Ok(mut end) => job.work(&mut end, &enough).await.map(|()| end),
                    Err(e) => Err(e),
                };
                if done.is_err() {
                    job.stop.stop();
                }
                done
            }));
        }
        // Should this be dropped, tasks that wait for a device end at once.
        let tasks: Vec<_> = tasks.into_iter().map(|task| task.abort_on_drop()).collect();
        let mut failed = None;
        for task in tasks {
            match task.await.map_err(|e| Error::Call(Box::new(e)))? {
                Ok(end) => ends.push(end),
                Err(Error::Cancelled) => failed = failed.or(Some(Error::Cancelled)),
                Err(e) => failed = Some(e),
            }
        }
        failed.map_or(Ok(job.kernels()), Err)
    }

    /// What the workers of a pipeline share.
    pub fn job(&self, pipe: &Pipe, sink: &Sink, by_row: Option<usize>) -> Result<Job> {
        Ok(Job {
            source: self.open(&pipe.source)?,
            live: pipe.live(sink.reads(by_row.is_some())),
            pipe: pipe.clone(),
            shape: self.shape(sink, by_row)?,
            types: self.types.clone(),
            lookups: self.lookups.clone(),
            parameters: self.parameters.clone(),
            traffic: self.runtime.traffic.clone(),
            stop: self.stop.clone(),
            meter: None,
        })
    }
}

fn missing() -> Error {
    Error::internal("a stage that did not run")
}
