//! Programs: stages of pipelines, in the order they run.
//!
//! A pipeline takes vectors of rows from its source through its steps into the sink of its stage. It is cut
//! where all rows must be there before the next can be found: the table that a join looks rows up in, groups,
//! an order. Stages stand in the order they run; one reads the results only of those before it.

use std::collections::BTreeSet;

use arrow::array::RecordBatch;

use crate::expr::Expr;
use crate::logical::external::Reading;
use crate::logical::relation::{Fold, Key, Scan};
use crate::vector::value::Var;

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
    pub pipes: Vec<Pipeline>,
    pub sink: Sink,
}

#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub source: Source,
    pub steps: Vec<Operator>,
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
pub(crate) enum Operator {
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
    pub kind: JoinKind,
    /// Whether the rows of the build side that match are marked.
    pub marks: bool,
    /// What partners must fulfil besides.
    pub residual: Vec<Expr>,
    /// Vectors of the table that the rows get, and what they are called then.
    pub build_outputs: Vec<(Var, Var)>,
    /// Gets the number of the table's row, if somebody groups by it.
    pub row: Option<Var>,
}

/// Which rows a probe lets go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinKind {
    /// Each row with each match.
    Inner,
    /// Each row with each match; without one, once with NULLs.
    Outer,
    /// Rows that have a match, once.
    Semi,
    /// Rows that have no match.
    Anti,
    /// None: the matches are only marked.
    MarkOnly,
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
        group_join: Option<GroupJoin>,
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
pub(crate) struct GroupJoin {
    pub stage: usize,
    /// The vector of row numbers.
    pub row: Var,
    /// For each key of the groups, the vector of the table that holds it.
    pub from: Vec<Var>,
}

/// The vectors that somebody reads later.
pub(crate) type Required = BTreeSet<Var>;

/// A pipeline without steps.
pub(crate) fn pipe(source: Source) -> Pipeline {
    Pipeline {
        source,
        steps: vec![],
    }
}

/// All `pipes` with one more step.
pub(crate) fn then(mut pipes: Vec<Pipeline>, step: Operator) -> Vec<Pipeline> {
    for pipe in &mut pipes {
        pipe.steps.push(step.clone());
    }
    pipes
}

impl Operator {
    /// The probe that it is, if rows get vectors of their partners by it.
    pub fn joining(&self) -> Option<&Probe> {
        match self {
            Operator::Probe(p) if p.kind == JoinKind::Inner => Some(p),
            _ => None,
        }
    }

    pub fn joining_mut(&mut self) -> Option<&mut Probe> {
        match self {
            Operator::Probe(p) if p.kind == JoinKind::Inner => Some(p),
            _ => None,
        }
    }

    /// The vectors it reads of the rows that come to it.
    pub fn reads(&self, f: &mut dyn FnMut(Var)) {
        match self {
            Operator::Filter(e) | Operator::Map(_, e) => e.each_var(f),
            Operator::Probe(p) => {
                p.keys.iter().for_each(|var| f(*var));
                p.residual.iter().for_each(|e| e.each_var(f));
            }
            Operator::Nulls(_) => {}
            Operator::Alias(pairs) => pairs.iter().for_each(|(from, _)| f(*from)),
        }
    }

    /// The vectors it makes.
    pub fn makes(&self, f: &mut dyn FnMut(Var)) {
        match self {
            Operator::Filter(_) => {}
            Operator::Map(var, _) => f(*var),
            Operator::Probe(p) => {
                p.build_outputs.iter().for_each(|(_, to)| f(*to));
                p.row.iter().for_each(|var| f(*var));
            }
            Operator::Nulls(vars) => vars.iter().for_each(|var| f(*var)),
            Operator::Alias(pairs) => pairs.iter().for_each(|(_, to)| f(*to)),
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

    /// The vectors it reads; `group_join` tells whether groups are found by row.
    pub fn reads(&self, found_by_row: bool) -> Required {
        match self {
            Sink::Table { keys, vars, .. } => keys.iter().chain(vars).copied().collect(),
            Sink::Rows { vars, .. } => vars.iter().copied().collect(),
            Sink::Fold {
                keys,
                folds,
                group_join,
            } => {
                let mut need: Required = folds.iter().filter_map(|fold| fold.arg).collect();
                match group_join {
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

impl Pipeline {
    /// Calls `f` with the stage of each table that rows are looked up in, or come from.
    pub fn tables(&self, f: &mut dyn FnMut(usize)) {
        if let Source::Marked { stage, .. } = self.source {
            f(stage);
        }
        for step in &self.steps {
            if let Operator::Probe(probe) = step {
                f(probe.stage);
            }
        }
    }

    /// For each step, and the sink at the end, the vectors that are read there or later, ascending.
    pub fn live(&self, mut live: Required) -> Vec<Vec<Var>> {
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
