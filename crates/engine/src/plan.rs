//! Programs: stages of pipelines, in the order they run, and how relations become them.
//!
//! A pipeline takes vectors of rows from its source through its steps into the sink of its stage. It is cut
//! where all rows must be there before the next can be found: the table that a join looks rows up in, groups,
//! an order. Stages stand in the order they run; one reads the results only of those before it.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::batches::Reading;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::join;
use crate::rel::{Fold, Key, Output, Query, Rel, Scan};

mod by_row;

/// A query, ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    pub stages: Vec<Stage>,
    /// Which stage gives the value of each subquery.
    pub parameters: Vec<(usize, Var)>,
    /// The stage whose rows are the answer.
    pub answer: usize,
}

/// Pipelines into one sink.
#[derive(Debug)]
pub(crate) struct Stage {
    pub pipes: Vec<Pipe>,
    pub sink: Sink,
}

#[derive(Clone, Debug)]
pub(crate) struct Pipe {
    pub source: Source,
    pub steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Scan(Scan),
    Values {
        vars: Vec<Var>,
        batch: RecordBatch,
    },
    Read(Reading),
    /// The rows of a stage.
    Rows(usize),
    /// The rows of a table that were marked, or that were not, with their row numbers if `row`.
    Marked {
        stage: usize,
        marked: bool,
        row: Option<Var>,
    },
}

#[derive(Clone, Debug)]
pub(crate) enum Step {
    Filter(Expr),
    Map(Var, Expr),
    Probe(Probe),
    /// These vectors are NULL.
    Nulls(Vec<Var>),
    /// The second is the first under another number.
    Alias(Vec<(Var, Var)>),
}

/// Looking rows up in a table: a dot.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// The stage that made the table.
    pub stage: usize,
    /// What is looked for, in the order of the table's keys.
    pub keys: Vec<Var>,
    pub how: How,
    /// What partners must fulfil besides.
    pub residual: Vec<Expr>,
    /// Vectors of the table that the rows get, and what they are called then.
    pub gives: Vec<(Var, Var)>,
    /// Gets the number of the table's row, if somebody groups by it.
    pub row: Option<Var>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Each row with each partner.
    Inner,
    /// The same, and the partners are marked.
    InnerMark,
    /// Each row with each partner; without one, with NULLs.
    Left,
    /// The same, and the partners are marked.
    LeftMark,
    /// Rows that have a partner.
    Semi,
    /// Rows that have none.
    Anti,
    /// No row: partners are marked.
    Mark,
}

#[derive(Clone, Debug)]
pub(crate) enum Sink {
    /// A table to look rows up in.
    Table {
        keys: Vec<Var>,
        vars: Vec<Var>,
        marks: bool,
    },
    /// Groups.
    Fold {
        keys: Vec<Var>,
        folds: Vec<Fold>,
        by_row: Option<ByRow>,
    },
    /// Rows, in order if there are keys.
    Rows {
        vars: Vec<Var>,
        order: Vec<Key>,
        skip: usize,
        fetch: Option<usize>,
    },
}

/// Groups that are rows of a table, if no two rows of it have one key: then all keys of the group follow.
#[derive(Clone, Debug)]
pub(crate) struct ByRow {
    pub stage: usize,
    /// The vector of row numbers.
    pub row: Var,
    /// For each key of the groups, the vector of the table that holds it.
    pub from: Vec<Var>,
}

/// Makes the program of `root`, whose vectors `output` are the answer.
///
/// # Errors
/// [`Error::Unsupported`].
pub(crate) fn plan(query: &mut Query, root: Rel, output: &Output) -> Result<Program> {
    let mut planner = Planner {
        query,
        stages: Vec::new(),
        shared: Vec::new(),
    };
    let mut parameters = Vec::new();
    for (rel, var) in std::mem::take(&mut planner.query.parameters) {
        let stage = planner.rows(rel, vec![var])?;
        parameters.push((stage, var));
    }
    let answer = planner.rows(root, output.vars.clone())?;
    for stage in &planner.stages {
        if let Sink::Table { keys, .. } | Sink::Fold { keys, .. } = &stage.sink {
            let types = keys.iter().map(|key| planner.query.ty(*key));
            crate::key::check(types)?;
        }
    }
    Ok(Program {
        stages: planner.stages,
        parameters,
        answer,
    })
}

pub(crate) struct Planner<'q> {
    pub query: &'q mut Query,
    pub stages: Vec<Stage>,
    /// Relations that several others read, and the stages that give their rows.
    shared: Vec<(Arc<Rel>, usize)>,
}

/// The vectors that somebody reads later.
pub(crate) type Need = BTreeSet<Var>;

impl Planner<'_> {
    /// Adds a stage; its number.
    pub fn stage(&mut self, pipes: Vec<Pipe>, sink: Sink) -> usize {
        self.stages.push(Stage { pipes, sink });
        self.stages.len() - 1
    }

    /// A stage that gives the rows of `rel` with `vars`.
    fn rows(&mut self, rel: Rel, vars: Vec<Var>) -> Result<usize> {
        let (rel, order, skip, fetch) = match rel {
            Rel::Sort {
                input,
                keys,
                skip,
                fetch,
            } => (*input, keys, skip, fetch),
            rel => (rel, vec![], 0, None),
        };
        let mut need: Need = vars.iter().copied().collect();
        need.extend(order.iter().map(|key| key.var));
        let pipes = self.pipes(rel, &need)?;
        let vars = need.into_iter().collect();
        Ok(self.stage(
            pipes,
            Sink::Rows {
                vars,
                order,
                skip,
                fetch,
            },
        ))
    }

    /// Pipelines that give the rows of `rel` together, with at least the vectors in `need`.
    pub fn pipes(&mut self, rel: Rel, need: &Need) -> Result<Vec<Pipe>> {
        match rel {
            Rel::Scan(mut scan) => {
                scan.columns.retain(|(var, _)| need.contains(var));
                Ok(vec![pipe(Source::Scan(scan))])
            }
            Rel::Read(mut reading) => {
                reading.columns.retain(|(var, _)| need.contains(var));
                Ok(vec![pipe(Source::Read(reading))])
            }
            Rel::Values { vars, batch } => Ok(vec![pipe(Source::Values { vars, batch })]),
            Rel::Filter { input, predicate } => {
                let mut more = need.clone();
                predicate.each_var(&mut |var| {
                    more.insert(var);
                });
                let pipes = self.pipes(*input, &more)?;
                Ok(then(pipes, Step::Filter(predicate)))
            }
            Rel::Map { input, exprs } => self.map(*input, exprs, need),
            Rel::Join {
                inputs,
                equal,
                residual,
            } => join::join(self, inputs, equal, residual, need),
            Rel::Semi {
                input,
                other,
                equal,
                residual,
                anti,
            } => join::semi(self, *input, *other, &equal, residual, anti, need),
            Rel::Left {
                left,
                right,
                equal,
                residual,
                outer,
            } => join::left(self, *left, *right, &equal, residual, outer, need),
            Rel::Full {
                left,
                right,
                equal,
                residual,
                outer,
            } => join::full(self, *left, *right, &equal, residual, outer, need),
            Rel::Reduced { input, stage, keys } => {
                let mut more = need.clone();
                more.extend(&keys);
                let pipes = self.pipes(*input, &more)?;
                let probe = Probe {
                    stage,
                    keys,
                    how: How::Semi,
                    residual: vec![],
                    gives: vec![],
                    row: None,
                };
                Ok(then(pipes, Step::Probe(probe)))
            }
            Rel::Fold { input, keys, folds } => self.fold(*input, keys, folds, need),
            Rel::Shared { input, vars } => {
                let stage = self.shared(&input)?;
                let vars = vars.into_iter().filter(|(_, var)| need.contains(var));
                let named = Step::Alias(vars.collect());
                Ok(then(vec![pipe(Source::Rows(stage))], named))
            }
            Rel::Sort { .. } => {
                let mut vars = Vec::new();
                rel.each_var(&mut |var| {
                    if need.contains(&var) {
                        vars.push(var);
                    }
                });
                let stage = self.rows(rel, vars)?;
                Ok(vec![pipe(Source::Rows(stage))])
            }
            Rel::Union { inputs, vars } => {
                let mut all = Vec::new();
                for (input, own) in inputs {
                    let pairs: Vec<(Var, Var)> =
                        own.iter().copied().zip(vars.iter().copied()).collect();
                    let pairs: Vec<_> = pairs
                        .into_iter()
                        .filter(|(_, to)| need.contains(to))
                        .collect();
                    let need = pairs.iter().map(|(from, _)| *from).collect();
                    let pipes = self.pipes(input, &need)?;
                    all.extend(then(pipes, Step::Alias(pairs)));
                }
                Ok(all)
            }
        }
    }

    /// The stage that gives the rows of `rel`, with all vectors: nobody knows yet who else reads them.
    fn shared(&mut self, rel: &Arc<Rel>) -> Result<usize> {
        let known = self
            .shared
            .iter()
            .find(|(other, _)| Arc::ptr_eq(other, rel));
        if let Some((_, stage)) = known {
            return Ok(*stage);
        }
        let mut all = Need::new();
        rel.each_var(&mut |var| {
            all.insert(var);
        });
        let pipes = self.pipes((**rel).clone(), &all)?;
        let stage = match &pipes[..] {
            [
                Pipe {
                    source: Source::Rows(stage),
                    steps,
                },
            ] if steps.is_empty() => *stage,
            _ => self.stage(
                pipes,
                Sink::Rows {
                    vars: all.into_iter().collect(),
                    order: vec![],
                    skip: 0,
                    fetch: None,
                },
            ),
        };
        self.shared.push((Arc::clone(rel), stage));
        Ok(stage)
    }

    fn map(&mut self, input: Rel, exprs: Vec<(Var, Expr)>, need: &Need) -> Result<Vec<Pipe>> {
        let mut more = need.clone();
        let mut kept = Vec::new();
        for (var, expr) in exprs.into_iter().rev() {
            if more.remove(&var) {
                expr.each_var(&mut |var| {
                    more.insert(var);
                });
                kept.push((var, expr));
            }
        }
        let mut pipes = self.pipes(input, &more)?;
        for (var, expr) in kept.into_iter().rev() {
            let step = match expr.as_var() {
                Some(from) => Step::Alias(vec![(from, var)]),
                None => Step::Map(var, expr),
            };
            pipes = then(pipes, step);
        }
        Ok(pipes)
    }

    fn fold(
        &mut self,
        input: Rel,
        keys: Vec<Var>,
        folds: Vec<Fold>,
        need: &Need,
    ) -> Result<Vec<Pipe>> {
        let folds: Vec<Fold> = folds
            .into_iter()
            .filter(|f| need.contains(&f.var))
            .collect();
        let mut more: Need = keys.iter().copied().collect();
        more.extend(folds.iter().filter_map(|f| f.arg));
        let mut pipes = self.pipes(input, &more)?;
        let by_row = match keys.is_empty() {
            true => None,
            false => self.by_row(&mut pipes, &keys),
        };
        let stage = self.stage(
            pipes,
            Sink::Fold {
                keys,
                folds,
                by_row,
            },
        );
        Ok(vec![pipe(Source::Rows(stage))])
    }
}

/// A pipeline without steps.
pub(crate) fn pipe(source: Source) -> Pipe {
    Pipe {
        source,
        steps: vec![],
    }
}

/// All `pipes` with one more step.
pub(crate) fn then(mut pipes: Vec<Pipe>, step: Step) -> Vec<Pipe> {
    for pipe in &mut pipes {
        pipe.steps.push(step.clone());
    }
    pipes
}

impl Step {
    /// The probe that it is, if rows get vectors of their partners by it.
    fn joining(&self) -> Option<&Probe> {
        match self {
            Step::Probe(p) if matches!(p.how, How::Inner | How::InnerMark) => Some(p),
            _ => None,
        }
    }

    fn joining_mut(&mut self) -> Option<&mut Probe> {
        match self {
            Step::Probe(p) if matches!(p.how, How::Inner | How::InnerMark) => Some(p),
            _ => None,
        }
    }

    /// The vectors it reads of the rows that come to it.
    pub fn reads(&self, f: &mut dyn FnMut(Var)) {
        match self {
            Step::Filter(e) | Step::Map(_, e) => e.each_var(f),
            Step::Probe(p) => {
                p.keys.iter().for_each(|var| f(*var));
                p.residual.iter().for_each(|e| e.each_var(f));
            }
            Step::Nulls(_) => {}
            Step::Alias(pairs) => pairs.iter().for_each(|(from, _)| f(*from)),
        }
    }

    /// The vectors it makes.
    pub fn makes(&self, f: &mut dyn FnMut(Var)) {
        match self {
            Step::Filter(_) => {}
            Step::Map(var, _) => f(*var),
            Step::Probe(p) => {
                p.gives.iter().for_each(|(_, to)| f(*to));
                p.row.iter().for_each(|var| f(*var));
            }
            Step::Nulls(vars) => vars.iter().for_each(|var| f(*var)),
            Step::Alias(pairs) => pairs.iter().for_each(|(_, to)| f(*to)),
        }
    }
}

impl Sink {
    /// Whether it takes all rows as they come.
    pub fn is_plain(&self) -> bool {
        match self {
            Sink::Rows {
                order, skip, fetch, ..
            } => order.is_empty() && *skip == 0 && fetch.is_none(),
            _ => false,
        }
    }

    /// The vectors it reads; `by_row` tells whether groups are found by row.
    pub fn reads(&self, found_by_row: bool) -> Need {
        match self {
            Sink::Table { keys, vars, .. } => keys.iter().chain(vars).copied().collect(),
            Sink::Rows { vars, .. } => vars.iter().copied().collect(),
            Sink::Fold {
                keys,
                folds,
                by_row,
            } => {
                let mut need: Need = folds.iter().filter_map(|fold| fold.arg).collect();
                match by_row {
                    Some(by) if found_by_row => {
                        need.insert(by.row);
                    }
                    _ => need.extend(keys),
                }
                need
            }
        }
    }
}

impl Pipe {
    /// Calls `f` with the stage of each table that rows are looked up in, or come from.
    pub fn tables(&self, f: &mut dyn FnMut(usize)) {
        if let Source::Marked { stage, .. } = self.source {
            f(stage);
        }
        for step in &self.steps {
            if let Step::Probe(probe) = step {
                f(probe.stage);
            }
        }
    }

    /// For each step, and the sink at the end, the vectors that are read there or later, ascending.
    pub fn live(&self, mut live: Need) -> Vec<Vec<Var>> {
        let mut all = vec![live.iter().copied().collect()];
        for step in self.steps.iter().rev() {
            step.makes(&mut |var| {
                live.remove(&var);
            });
            step.reads(&mut |var| {
                live.insert(var);
            });
            all.push(live.iter().copied().collect());
        }
        all.reverse();
        all
    }
}
