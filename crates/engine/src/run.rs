//! Running programs, and fused execution (L4): each worker takes a piece of a source through the whole pipeline
//! into its own sink, and the sinks are merged.

mod answer;
mod distr;
mod enough;
mod open;
mod send;
mod sink;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use arrow::array::RecordBatch;
use fiber::{Nearness, Workers};
use memory::{Budget, Traffic};
use tokio::sync::mpsc::Sender;

use crate::batch::Batch;
use crate::column::Collected;
use crate::error::{Error, Result};
use crate::execution::{Execution, Executor, Plan};
use crate::expr::Var;
use crate::group::Grouping;
use crate::held::Held;
use crate::ledger::{At, Kernel, Meter, Record, Watch};
use crate::lookup::Lookup;
use crate::plan::{Pipe, Program, Sink, Stage};
use crate::rel::Output;
use crate::source::{Feed, Origin, Stored};
use crate::step::{Line, Scratch};
use crate::stop::Stop;
use crate::value::{Type, Vector};
use crate::{staged, stream};

pub(crate) use enough::Enough;
pub(crate) use open::Opened;
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
    taken: Vec<Held>,
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
        types,
        parameters: vec![None; program.parameters.len()],
        lookups: vec![None; program.stages.len()],
        rows: std::iter::repeat_with(|| None)
            .take(program.stages.len())
            .collect(),
        taken: vec![],
        stop: stop.0.clone(),
        width: runtime.workers.threads(),
        share: None,
        instances: match execution.plan {
            Plan::Distr => distr::Instances::new(runtime, program.stages.len())?,
            _ => None,
        },
    };
    for (number, stage) in program.stages.iter().enumerate() {
        run.stage(number, stage, number == program.answer).await?;
        for (parameter, (of, var)) in program.parameters.iter().enumerate() {
            if *of == number {
                run.parameters[parameter] = Some(run.single(number, *var)?);
            }
        }
    }
    // None if it left while it was computed.
    if let Some(answer) = run.rows[program.answer].take() {
        run.out.send(&answer).await?;
    }
    Ok(run.report)
}

impl Run {
    /// The value of a subquery: NULL if it has no row.
    fn single(&self, stage: usize, var: Var) -> Result<Vector> {
        let stored = self.rows[stage]
            .as_ref()
            .ok_or_else(|| Error::internal("a subquery without rows"))?;
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

    fn take(&mut self, bytes: usize, what: &'static str) -> Result<()> {
        let held = Held::take(&self.runtime.budget, bytes as u64, what)?;
        self.taken.push(held);
        Ok(())
    }

    async fn stage(&mut self, number: usize, stage: &Stage, answer: bool) -> Result<()> {
        let by_row = self.by_row(&stage.sink);
        self.sends = answer && stage.sink.is_plain();
        let mut ends = Vec::new();
        for wave in open::waves(stage) {
            match self.instances.take() {
                None => self.here(number, &wave, by_row, &mut ends).await?,
                Some(all) => {
                    let done = self.everywhere(&all, number, &wave, by_row, &mut ends);
                    done.await?;
                    self.instances = Some(all);
                }
            }
        }
        if ends.is_empty() {
            // No row came; the columns are there all the same.
            ends.push(self.shape(&stage.sink, by_row)?.end()?);
        }
        match &stage.sink {
            Sink::Table { keys, marks, .. } => {
                let parts = ends
                    .into_iter()
                    .map(End::collected)
                    .collect::<Result<Vec<_>>>()?;
                let copies = self.instances.as_ref().map_or(1, |all| 1 + all.number());
                let bytes = parts.iter().map(Collected::memory).sum::<usize>();
                self.take(bytes * copies, "a join")?;
                let (columns, rows) = Collected::concat(parts)?;
                self.replicate(number, keys, columns, rows, *marks).await?;
            }
            Sink::Rows { .. } if self.sends => {
                for end in ends {
                    end.sent()?.last().await?;
                }
            }
            Sink::Rows {
                order, skip, fetch, ..
            } => {
                let parts = ends
                    .into_iter()
                    .map(End::collected)
                    .collect::<Result<Vec<_>>>()?;
                self.take(parts.iter().map(Collected::memory).sum::<usize>(), "a sort")?;
                let (columns, rows) = Collected::concat(parts)?;
                let stored = Stored { columns, rows };
                let stored = self.sorted(stored, order, *skip, *fetch)?;
                self.rows[number] = Some(Arc::new(stored));
            }
            Sink::Fold {
                keys,
                folds,
                by_row: by,
            } => {
                let mut all: Option<Grouping> = None;
                for end in ends {
                    let End::Groups(groups) = end else {
                        return Err(Error::internal("an end without groups"));
                    };
                    all = Some(match all {
                        None => *groups,
                        Some(mut all) => {
                            // Those of another worker may all be new here.
                            let (budget, bytes) = (&self.runtime.budget, all.memory());
                            let grown = bytes + groups.memory();
                            all.held.cover(budget, grown, "an aggregate")?;
                            all.merge(*groups)?;
                            all
                        }
                    });
                }
                let all = all.ok_or_else(|| Error::internal("an aggregate without groups"))?;
                self.take(all.memory(), "an aggregate")?;
                let types = |var: Var| self.types[var].clone();
                let finished = all.finish(folds, &types)?;
                let mut columns = BTreeMap::new();
                match (&finished.rows, by, by_row) {
                    (Some(rows), Some(by), Some(lookup)) => {
                        for (key, from) in keys.iter().zip(&by.from) {
                            columns.insert(
                                *key,
                                self.lookups[lookup]
                                    .as_ref()
                                    .ok_or_else(missing)?
                                    .column(*from)?
                                    .at(rows)?,
                            );
                        }
                    }
                    _ => columns.extend(keys.iter().copied().zip(finished.keys)),
                }
                columns.extend(folds.iter().map(|f| f.var).zip(finished.results));
                self.rows[number] = Some(Arc::new(Stored {
                    columns,
                    rows: finished.groups,
                }));
            }
        }
        Ok(())
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
            by_row: Some(by), ..
        } = sink
        else {
            return None;
        };
        let lookup = self.lookups[by.stage].as_ref()?;
        lookup.unique.then_some(by.stage)
    }

    /// What the sinks of workers are made from.
    fn shape(&self, sink: &Sink, by_row: Option<usize>) -> Result<Shape> {
        let width = self.width as u64;
        let rows = by_row.map(|stage| self.lookups[stage].as_ref().ok_or_else(missing));
        Ok(Shape {
            sink: sink.clone(),
            rows: rows.transpose()?.map(|lookup| lookup.rows),
            types: self.types.clone(),
            budget: self.runtime.budget.clone(),
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

/// A pipeline being run by several workers.
pub(crate) struct Job {
    pub source: Opened,
    pub pipe: Pipe,
    pub live: Vec<Vec<Var>>,
    pub shape: Shape,
    pub types: Arc<[Type]>,
    pub lookups: Vec<Option<Arc<Lookup>>>,
    pub parameters: Vec<Option<Vector>>,
    pub traffic: Arc<Traffic>,
    pub stop: Stop,
    /// Set if its operators are measured.
    meter: Option<Arc<Meter>>,
}

pub(crate) fn node() -> usize {
    fiber::here().map_or(0, |here| here.node)
}

impl Job {
    /// A worker's share of it.
    async fn work(&self, end: &mut End, enough: &Enough) -> Result<()> {
        let watch = self.meter.as_ref();
        let watch = watch.map(|meter| meter.watch(self.traffic.nodes()));
        self.pieces(end, enough, watch.as_ref()).await?;
        if let Some(watch) = watch {
            watch.end(&self.traffic);
        }
        Ok(())
    }

    /// What its operators did.
    fn kernels(&self) -> Vec<Kernel> {
        self.meter.as_ref().map_or(vec![], |meter| meter.kernels())
    }

    async fn pieces(&self, end: &mut End, enough: &Enough, watch: Option<&Watch>) -> Result<()> {
        let traffic = watch.map_or(&*self.traffic, |watch| &watch.traffic);
        let mut batch = Batch::new(self.types.len());
        let mut origin = Origin::default();
        let mut scratch: Vec<Scratch> = std::iter::repeat_with(Scratch::default)
            .take(self.pipe.steps.len())
            .collect();
        let mut claimant = self.source.claimant();
        while !enough.reached() {
            self.stop.check()?;
            match &self.source {
                Opened::Scan {
                    scan,
                    filters,
                    vars,
                    pieces,
                    ..
                } => {
                    let claimed = claimant.as_mut().and_then(|own| own.claim(node()));
                    let Some(piece) = claimed else {
                        return Ok(());
                    };
                    end.start(piece.into());
                    let pool = scan.table().snapshot().pool();
                    for morsel in &pieces[piece as usize] {
                        watch.inspect(|watch| watch.turn(At::Scan));
                        let opened = scan.open(pool, *morsel, filters, traffic, node).await?;
                        if let Some(watch) = watch {
                            watch.opened(morsel.rows(scan.table()));
                            watch.turn(At::Elsewhere);
                        }
                        let Some(mut cursor) = opened else {
                            continue;
                        };
                        while origin.advance(&mut cursor) {
                            let feed = Feed::Scan(&cursor, vars);
                            let rows =
                                self.push(&mut batch, &mut origin, feed, &mut scratch, end, watch)?;
                            if enough.count(rows) {
                                return Ok(());
                            }
                            end.flush().await?;
                        }
                    }
                }
                Opened::Read(opened) => {
                    let (batch, origin) = (&mut batch, &mut origin);
                    let more = self.part(opened, batch, origin, &mut scratch, end, enough);
                    if !more.await? {
                        return Ok(());
                    }
                }
                Opened::Stored {
                    stored,
                    pieces,
                    next,
                } => {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = pieces.get(number) else {
                        return Ok(());
                    };
                    end.start(piece.start as u64);
                    for start in piece.clone().step_by(algebra::VECTOR_ROWS) {
                        origin.start(start..(start + algebra::VECTOR_ROWS).min(piece.end));
                        let feed = Feed::Stored(stored);
                        let rows =
                            self.push(&mut batch, &mut origin, feed, &mut scratch, end, watch)?;
                        if enough.count(rows) {
                            return Ok(());
                        }
                        end.flush().await?;
                    }
                }
                Opened::Marked {
                    lookup,
                    rows,
                    pieces,
                    next,
                    row,
                } => {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(piece) = pieces.get(number) else {
                        return Ok(());
                    };
                    end.start(piece.start as u64);
                    for some in rows[piece.clone()].chunks(algebra::VECTOR_ROWS) {
                        origin.list(some);
                        let feed = Feed::Lookup(lookup, *row);
                        let rows =
                            self.push(&mut batch, &mut origin, feed, &mut scratch, end, watch)?;
                        if enough.count(rows) {
                            return Ok(());
                        }
                        end.flush().await?;
                    }
                }
            }
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// Some of its steps; see [`Line::complete`].
    pub fn line(&self, steps: std::ops::Range<usize>, complete: bool) -> Line<'_> {
        Line {
            types: &self.types,
            live: &self.live[steps.start..=steps.end],
            steps: &self.pipe.steps[steps],
            lookups: &self.lookups,
            parameters: &self.parameters,
            complete,
            stop: &self.stop,
            watch: None,
        }
    }

    /// Bytes of a row where most vectors are there.
    pub fn row_bytes(&self) -> usize {
        let bytes = |vars: &Vec<Var>| vars.iter().map(|var| self.types[*var].width()).sum();
        self.live.iter().map(bytes).max().unwrap_or(0).max(1)
    }

    /// Takes one vector through all steps; gives how many rows came to the end.
    pub(crate) fn push(
        &self,
        batch: &mut Batch,
        origin: &mut Origin,
        feed: Feed<'_, '_>,
        scratch: &mut [Scratch],
        end: &mut End,
        watch: Option<&Watch>,
    ) -> Result<usize> {
        batch.restart(origin.rows().len());
        let line = Line {
            watch,
            ..self.line(0..self.pipe.steps.len(), true)
        };
        let mut rows = 0;
        let mut add = |batch: &mut Batch, _: &mut Origin| {
            // One piece may have very many partners.
            self.stop.check()?;
            rows += batch.rows;
            self.shape.add(end, batch)
        };
        line.run(0, batch, origin, feed, scratch, &mut add)?;
        watch.inspect(|watch| watch.turn(At::Elsewhere));
        Ok(rows)
    }
}
