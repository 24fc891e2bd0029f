//! Fused execution (L4): each worker takes a piece of a source through the whole pipeline into its own sink, and
//! the sinks are merged.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use arrow::array::{ArrayRef, RecordBatch, RecordBatchOptions, UInt32Array};
use arrow::compute::{SortColumn, SortOptions, lexsort_to_indices};
use fiber::{Morsels, Nearness, Workers};
use memory::{Budget, Traffic};
use table::{Morsel, Scan};

use crate::batch::Batch;
use crate::column::Collected;
use crate::error::{Error, Result};
use crate::expr::Var;
use crate::group::{By, Grouping};
use crate::lookup::Lookup;
use crate::plan::{Pipe, Program, Sink, Source, Stage};
use crate::rel::{Key, Output};
use crate::source::{Feed, Origin, Stored, pieces};
use crate::step::{Line, Scratch};
use crate::value::{Type, Vector};

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
}

/// Rows of an answer's batches.
const BATCH_ROWS: usize = 8_192;

/// A running query.
struct Run {
    runtime: Runtime,
    types: Arc<[Type]>,
    parameters: Vec<Option<Vector>>,
    lookups: Vec<Option<Arc<Lookup>>>,
    rows: Vec<Option<Arc<Stored>>>,
    taken: Vec<Taken>,
    stop: Arc<AtomicBool>,
}

/// Bytes of the budget, given back when dropped.
#[derive(Debug)]
struct Taken(Arc<Budget>, u64);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.give(self.1);
    }
}

/// Raised when the query is dropped, so that workers stop at their next piece.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `program`; gives its answer.
pub(crate) async fn run(
    program: &Program,
    types: Arc<[Type]>,
    output: &Output,
    runtime: &Runtime,
) -> Result<Vec<RecordBatch>> {
    let stop = StopOnDrop(Arc::default());
    let mut run = Run {
        runtime: runtime.clone(),
        types,
        parameters: vec![None; program.parameters.len()],
        lookups: vec![None; program.stages.len()],
        rows: std::iter::repeat_with(|| None)
            .take(program.stages.len())
            .collect(),
        taken: vec![],
        stop: stop.0.clone(),
    };
    for (number, stage) in program.stages.iter().enumerate() {
        run.stage(number, stage).await?;
        for (parameter, (of, var)) in program.parameters.iter().enumerate() {
            if *of == number {
                run.parameters[parameter] = Some(run.single(number, *var)?);
            }
        }
    }
    let answer = run.rows[program.answer]
        .take()
        .ok_or_else(|| Error::internal("no answer"))?;
    batches(&answer, &run.types, output)
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
        let wanted = bytes as u64;
        let budget = &self.runtime.budget;
        budget
            .take(wanted)
            .map_err(|_| Error::Memory { what, wanted })?;
        self.taken.push(Taken(budget.clone(), wanted));
        Ok(())
    }

    async fn stage(&mut self, number: usize, stage: &Stage) -> Result<()> {
        let by_row = self.by_row(&stage.sink);
        let mut ends = Vec::new();
        for pipe in &stage.pipes {
            self.pipe(pipe, &stage.sink, by_row, &mut ends).await?;
        }
        match &stage.sink {
            Sink::Table { keys, marks, .. } => {
                let parts = ends
                    .into_iter()
                    .map(End::collected)
                    .collect::<Result<Vec<_>>>()?;
                self.take(
                    2 * parts.iter().map(Collected::memory).sum::<usize>(),
                    "a join",
                )?;
                let (columns, rows) = Collected::concat(parts)?;
                let types = keys.iter().map(|key| self.types[*key].clone()).collect();
                let lookup = Lookup::new(keys, types, columns, rows, *marks)?;
                self.take(lookup.memory, "a join")?;
                self.lookups[number] = Some(Arc::new(lookup));
            }
            Sink::Rows {
                order, skip, fetch, ..
            } => {
                let parts = ends
                    .into_iter()
                    .map(End::collected)
                    .collect::<Result<Vec<_>>>()?;
                self.take(
                    2 * parts.iter().map(Collected::memory).sum::<usize>(),
                    "a sort",
                )?;
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
                            all.merge(*groups)?;
                            all
                        }
                    });
                }
                let all = match all {
                    Some(all) => all,
                    None => self.groups(&stage.sink, by_row)?,
                };
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

    fn groups(&self, sink: &Sink, by_row: Option<usize>) -> Result<Grouping> {
        let Sink::Fold { keys, folds, .. } = sink else {
            return Err(Error::internal("groups of another stage"));
        };
        let types = |var: Var| self.types[var].clone();
        let own: Vec<Type> = keys.iter().map(|key| self.types[*key].clone()).collect();
        let by = match by_row {
            Some(stage) => By::Row(self.lookups[stage].as_ref().ok_or_else(missing)?.rows),
            None => By::Keys(&own),
        };
        let width = self.runtime.workers.width().max(1) as u64;
        let most = (self.runtime.budget.limit() / 16 / width / 32).min(1 << 26);
        Grouping::new(by, folds, &types, most)
    }

    fn end(&self, sink: &Sink, by_row: Option<usize>) -> Result<End> {
        let kinds = |vars: &mut dyn Iterator<Item = Var>| -> Vec<_> {
            let mut vars: Vec<Var> = vars.collect();
            vars.sort_unstable();
            vars.dedup();
            vars.into_iter()
                .map(|var| (var, self.types[var].kind))
                .collect()
        };
        Ok(match sink {
            Sink::Table { keys, vars, .. } => End::Rows(Collected::new(&kinds(
                &mut keys.iter().chain(vars).copied(),
            ))),
            Sink::Rows { vars, .. } => End::Rows(Collected::new(&kinds(&mut vars.iter().copied()))),
            Sink::Fold { .. } => End::Groups(Box::new(self.groups(sink, by_row)?)),
        })
    }

    /// Takes all pieces of a pipeline's source through it; adds the sinks of the workers to `ends`.
    async fn pipe(
        &mut self,
        pipe: &Pipe,
        sink: &Sink,
        by_row: Option<usize>,
        ends: &mut Vec<End>,
    ) -> Result<()> {
        let source = Arc::new(self.open(&pipe.source)?);
        let pieces = source.pieces();
        if pieces == 0 {
            return Ok(());
        }
        let workers = self.runtime.workers.width().max(1).min(pieces);
        let job = Arc::new(Job {
            source,
            pipe: pipe.clone(),
            live: pipe.live(sink.reads(by_row.is_some())),
            keys: match sink {
                Sink::Fold { keys, .. } => keys.clone(),
                _ => vec![],
            },
            folds: match sink {
                Sink::Fold { folds, .. } => folds.clone(),
                _ => vec![],
            },
            row: match sink {
                Sink::Fold {
                    by_row: Some(by), ..
                } if by_row.is_some() => Some(by.row),
                _ => None,
            },
            types: self.types.clone(),
            lookups: self.lookups.clone(),
            parameters: self.parameters.clone(),
            traffic: self.runtime.traffic.clone(),
            stop: self.stop.clone(),
        });
        if workers == 1 {
            let mut end = self.end(sink, by_row)?;
            job.work(&mut end).await?;
            ends.push(end);
            return Ok(());
        }
        let mut tasks = Vec::with_capacity(workers);
        for _ in 0..workers {
            let (job, mut end) = (job.clone(), self.end(sink, by_row)?);
            tasks.push(self.runtime.workers.spawn(async move {
                let done = job.work(&mut end).await;
                if done.is_err() {
                    job.stop.store(true, Ordering::Relaxed);
                }
                (done, end)
            }));
        }
        let mut failed = None;
        for task in tasks {
            let (done, end) = task.await.map_err(|e| Error::Call(Box::new(e)))?;
            match done {
                Ok(()) => ends.push(end),
                Err(Error::Cancelled) => failed = failed.or(Some(Error::Cancelled)),
                Err(e) => failed = Some(e),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    fn open(&self, source: &Source) -> Result<Opened> {
        Ok(match source {
            Source::Scan(scan) => {
                let columns = scan.columns.iter().map(|(_, column)| *column).collect();
                let vars = scan.columns.iter().map(|(var, _)| *var).collect();
                let inner = Scan::new(scan.table.clone(), columns, false);
                let nodes = self.runtime.nearness.nodes();
                let (homes, pieces): (Vec<u8>, Vec<Morsel>) = inner.morsels().unzip();
                let homes = homes
                    .into_iter()
                    .enumerate()
                    .map(|(i, home)| (usize::from(home) % nodes, i as u32));
                Opened::Scan {
                    morsels: Morsels::near(&self.runtime.nearness, homes),
                    scan: inner,
                    filters: scan.filters.clone(),
                    vars,
                    pieces,
                }
            }
            Source::Values { vars, batch } => {
                let mut columns = BTreeMap::new();
                for (var, array) in vars.iter().zip(batch.columns()) {
                    columns.insert(*var, Vector::from_arrow(array, &self.types[*var])?);
                }
                let rows = batch.num_rows();
                Opened::Stored {
                    pieces: pieces(rows),
                    next: AtomicUsize::new(0),
                    stored: Arc::new(Stored { columns, rows }),
                }
            }
            Source::Rows(stage) => {
                let stored = self.rows[*stage].clone().ok_or_else(missing)?;
                Opened::Stored {
                    pieces: pieces(stored.rows),
                    next: AtomicUsize::new(0),
                    stored,
                }
            }
            Source::Marked { stage, marked, row } => {
                let lookup = self.lookups[*stage].clone().ok_or_else(missing)?;
                let rows = lookup.marked(*marked);
                Opened::Marked {
                    pieces: pieces(rows.len()),
                    next: AtomicUsize::new(0),
                    lookup,
                    rows,
                    row: *row,
                }
            }
        })
    }

    fn sorted(
        &self,
        stored: Stored,
        order: &[Key],
        skip: usize,
        fetch: Option<usize>,
    ) -> Result<Stored> {
        let end = fetch.map_or(stored.rows, |n| stored.rows.min(skip.saturating_add(n)));
        let start = skip.min(end);
        if order.is_empty() && start == 0 && end == stored.rows {
            return Ok(stored);
        }
        let picks: Vec<u32> = match order.is_empty() {
            true => (start as u32..end as u32).collect(),
            false => {
                let mut keys = Vec::with_capacity(order.len());
                for key in order {
                    let vector = stored.columns.get(&key.var).ok_or_else(missing)?;
                    keys.push(SortColumn {
                        values: vector.to_arrow(&self.types[key.var])?,
                        options: Some(SortOptions {
                            descending: key.descending,
                            nulls_first: key.nulls_first,
                        }),
                    });
                }
                let sorted = match stored.rows {
                    0 => UInt32Array::from(Vec::<u32>::new()),
                    _ => lexsort_to_indices(&keys, Some(end))?,
                };
                sorted.values()[start.min(sorted.len())..].to_vec()
            }
        };
        let mut columns = BTreeMap::new();
        for (var, vector) in &stored.columns {
            columns.insert(*var, vector.at(&picks)?);
        }
        Ok(Stored {
            columns,
            rows: picks.len(),
        })
    }
}

fn missing() -> Error {
    Error::internal("a stage that did not run")
}

/// A pipeline being run by several workers.
struct Job {
    source: Arc<Opened>,
    pipe: Pipe,
    live: Vec<Vec<Var>>,
    keys: Vec<Var>,
    folds: Vec<crate::rel::Fold>,
    row: Option<Var>,
    types: Arc<[Type]>,
    lookups: Vec<Option<Arc<Lookup>>>,
    parameters: Vec<Option<Vector>>,
    traffic: Arc<Traffic>,
    stop: Arc<AtomicBool>,
}

/// A worker's own sink.
enum End {
    Rows(Collected),
    Groups(Box<Grouping>),
}

impl End {
    fn collected(self) -> Result<Collected> {
        match self {
            End::Rows(rows) => Ok(rows),
            End::Groups(_) => Err(Error::internal("groups where rows were expected")),
        }
    }
}

enum Opened {
    Scan {
        scan: Scan,
        filters: Vec<table::Filter>,
        vars: Vec<Var>,
        pieces: Vec<Morsel>,
        morsels: Morsels,
    },
    Stored {
        stored: Arc<Stored>,
        pieces: Arc<[std::ops::Range<usize>]>,
        next: AtomicUsize,
    },
    Marked {
        lookup: Arc<Lookup>,
        rows: Vec<u32>,
        pieces: Arc<[std::ops::Range<usize>]>,
        next: AtomicUsize,
        row: Option<Var>,
    },
}

impl Opened {
    fn pieces(&self) -> usize {
        match self {
            Opened::Scan { pieces, .. } => pieces.len(),
            Opened::Stored { pieces, .. } | Opened::Marked { pieces, .. } => pieces.len(),
        }
    }
}

fn node() -> usize {
    fiber::here().map_or(0, |here| here.node)
}

impl Job {
    async fn work(&self, end: &mut End) -> Result<()> {
        let mut batch = Batch::new(self.types.len());
        let mut origin = Origin::default();
        let mut scratch: Vec<Scratch> = std::iter::repeat_with(Scratch::default)
            .take(self.pipe.steps.len())
            .collect();
        loop {
            if self.stop.load(Ordering::Relaxed) {
                return Err(Error::Cancelled);
            }
            match &*self.source {
                Opened::Scan {
                    scan,
                    filters,
                    vars,
                    pieces,
                    morsels,
                } => {
                    let Some(piece) = morsels.claim(node()) else {
                        return Ok(());
                    };
                    let pool = scan.table().snapshot().pool().clone();
                    let morsel = pieces[piece as usize];
                    let opened = scan
                        .open(&pool, morsel, filters, &self.traffic, node)
                        .await?;
                    if let Some(mut cursor) = opened {
                        while origin.advance(&mut cursor) {
                            let feed = Feed::Scan(&cursor, vars);
                            self.push(&mut batch, &mut origin, feed, &mut scratch, end)?;
                        }
                    }
                }
                Opened::Stored {
                    stored,
                    pieces,
                    next,
                } => {
                    let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return Ok(());
                    };
                    for start in piece.clone().step_by(algebra::VECTOR_ROWS) {
                        origin.start(start..(start + algebra::VECTOR_ROWS).min(piece.end));
                        self.push(
                            &mut batch,
                            &mut origin,
                            Feed::Stored(stored),
                            &mut scratch,
                            end,
                        )?;
                    }
                }
                Opened::Marked {
                    lookup,
                    rows,
                    pieces,
                    next,
                    row,
                } => {
                    let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) else {
                        return Ok(());
                    };
                    for some in rows[piece.clone()].chunks(algebra::VECTOR_ROWS) {
                        origin.list(some);
                        self.push(
                            &mut batch,
                            &mut origin,
                            Feed::Lookup(lookup, *row),
                            &mut scratch,
                            end,
                        )?;
                    }
                }
            }
            tokio::task::yield_now().await;
        }
    }

    fn push(
        &self,
        batch: &mut Batch,
        origin: &mut Origin,
        feed: Feed<'_, '_>,
        scratch: &mut [Scratch],
        end: &mut End,
    ) -> Result<()> {
        batch.restart(origin.rows().len());
        let line = Line {
            types: &self.types,
            steps: &self.pipe.steps,
            live: &self.live,
            lookups: &self.lookups,
            parameters: &self.parameters,
        };
        let mut add = |batch: &Batch| match end {
            End::Rows(rows) => rows.add(batch),
            End::Groups(groups) => groups.add(batch, &self.keys, self.row, &self.folds),
        };
        line.run(0, batch, origin, feed, scratch, &mut add)
    }
}

/// The rows of an answer as Arrow.
fn batches(answer: &Stored, types: &[Type], output: &Output) -> Result<Vec<RecordBatch>> {
    let mut columns: Vec<ArrayRef> = Vec::with_capacity(output.vars.len());
    for (var, field) in output.vars.iter().zip(output.schema.fields()) {
        let vector = answer.columns.get(var).ok_or_else(missing)?;
        let ty = Type {
            data: field.data_type().clone(),
            ..types[*var].clone()
        };
        columns.push(vector.to_arrow(&ty)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(answer.rows));
    let all = RecordBatch::try_new_with_options(output.schema.clone(), columns, &options)?;
    let starts = (0..answer.rows).step_by(BATCH_ROWS);
    Ok(starts
        .map(|start| all.slice(start, BATCH_ROWS.min(answer.rows - start)))
        .collect())
}
