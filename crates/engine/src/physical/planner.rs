//! Programs: stages of pipelines, in the order they run, and how relations become them.
//!
//! A pipeline takes vectors of rows from its source through its steps into the sink of its stage. It is cut
//! where all rows must be there before the next can be found: the table that a join looks rows up in, groups,
//! an order. Stages stand in the order they run; one reads the results only of those before it.

use std::sync::Arc;

use crate::error::Result;
use crate::expr::Expr;
use crate::logical::relation::{Fold, Output, Query, Reduced, Rel};
use crate::physical::program::{
    JoinKind, Operator, Pipeline, Probe, Program, Required, Sink, Source, Stage, pipe, then,
};
use crate::physical::{join_order, outer_join, semi_join};
use crate::vector::value::Var;

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
            crate::vector::key_encoding::check(types)?;
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

impl Planner<'_> {
    /// Adds a stage; its number.
    pub fn stage(&mut self, pipes: Vec<Pipeline>, sink: Sink) -> usize {
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
        let mut need: Required = vars.iter().copied().collect();
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
    pub fn pipes(&mut self, rel: Rel, need: &Required) -> Result<Vec<Pipeline>> {
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
                Ok(then(pipes, Operator::Filter(predicate)))
            }
            Rel::Map { input, exprs } => self.map(*input, exprs, need),
            Rel::Join {
                inputs,
                equal,
                residual,
            } => join_order::join(self, inputs, equal, residual, need),
            Rel::Semi {
                input,
                other,
                equal,
                residual,
                anti,
            } => semi_join::semi(self, *input, *other, &equal, residual, anti, need),
            Rel::Left {
                left,
                right,
                equal,
                residual,
                outer,
            } => outer_join::left(self, *left, *right, &equal, residual, outer, need),
            Rel::Full {
                left,
                right,
                equal,
                residual,
                outer,
            } => outer_join::full(self, *left, *right, &equal, residual, outer, need),
            Rel::Reduced(Reduced { input, stage, keys }) => {
                let mut more = need.clone();
                more.extend(&keys);
                let pipes = self.pipes(*input, &more)?;
                let probe = Probe {
                    stage,
                    keys,
                    kind: JoinKind::Semi,
                    marks: false,
                    residual: vec![],
                    build_outputs: vec![],
                    row: None,
                };
                Ok(then(pipes, Operator::Probe(probe)))
            }
            Rel::Fold { input, keys, folds } => self.fold(*input, keys, folds, need),
            Rel::Shared { input, vars } => {
                let stage = self.shared(&input)?;
                let vars = vars.into_iter().filter(|(_, var)| need.contains(var));
                let named = Operator::Alias(vars.collect());
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
                    all.extend(then(pipes, Operator::Alias(pairs)));
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
        let mut all = Required::new();
        rel.each_var(&mut |var| {
            all.insert(var);
        });
        let pipes = self.pipes((**rel).clone(), &all)?;
        let stage = match &pipes[..] {
            [
                Pipeline {
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

    fn map(
        &mut self,
        input: Rel,
        exprs: Vec<(Var, Expr)>,
        need: &Required,
    ) -> Result<Vec<Pipeline>> {
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
                Some(from) => Operator::Alias(vec![(from, var)]),
                None => Operator::Map(var, expr),
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
        need: &Required,
    ) -> Result<Vec<Pipeline>> {
        let folds: Vec<Fold> = folds
            .into_iter()
            .filter(|f| need.contains(&f.var))
            .collect();
        let mut more: Required = keys.iter().copied().collect();
        more.extend(folds.iter().filter_map(|f| f.arg));
        let mut pipes = self.pipes(input, &more)?;
        let group_join = match keys.is_empty() {
            true => None,
            false => self.group_join(&mut pipes, &keys),
        };
        let stage = self.stage(
            pipes,
            Sink::Fold {
                keys,
                folds,
                group_join,
            },
        );
        Ok(vec![pipe(Source::Rows(stage))])
    }
}
