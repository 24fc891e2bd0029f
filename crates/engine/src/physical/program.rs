//! Programs: stages of pipelines, in the order they run.
//!
//! A pipeline takes vectors of rows from its source through its operators into the sink of its stage. Pipelines are
//! cut at pipeline breakers, where all rows must be there before the next operator may start: a join table, an
//! aggregation, a sort. A stage reads only the results of stages before it.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use arrow::array::RecordBatch;

use crate::expr::{Calls, Expr};
use crate::logical::aggregate_call::AggregateCall;
use crate::logical::external::{ExternalScan, ExternalSource};
use crate::logical::relation::{Fold, Key, RowOrder, Scan};
use crate::logical::row_function::RowFunction;
use crate::logical::window::WindowPart;
use crate::physical::band::Band;
use crate::physical::nearest::Nearest;
use crate::vector::value::Var;

/// A physical plan, ready to run.
#[derive(Debug)]
pub(crate) struct Program {
    pub stages: Vec<Stage>,
    /// By the stages of join tables: the share of rows that is expected to have a match there, if that was estimated.
    pub shares: HashMap<usize, f64>,
    /// The aggregate functions that the engine has no accumulator for.
    pub aggregates: Arc<[Arc<dyn AggregateCall>]>,
    /// The stage that gives the value of each scalar subquery, and the vector of the value.
    pub parameters: Vec<(usize, Var)>,
    /// The stage whose rows are the answer.
    pub answer: usize,
}

impl Program {
    /// Whether its rows depend on those of the working table of this number.
    pub fn reads_working_table(&self, number: u64) -> bool {
        self.sources()
            .any(|source| source.reads_working_table(number))
    }

    /// The external sources that it reads.
    pub fn sources(&self) -> impl Iterator<Item = &dyn ExternalSource> {
        let pipelines = self.stages.iter().flat_map(|stage| &stage.pipelines);
        pipelines.filter_map(|pipeline| match &pipeline.source {
            Source::Read(reading) => Some(&*reading.source),
            _ => None,
        })
    }
}

/// Pipelines that share one sink.
#[derive(Debug)]
pub(crate) struct Stage {
    pub pipelines: Vec<Pipeline>,
    pub sink: Sink,
}

#[derive(Clone, Debug)]
pub(crate) struct Pipeline {
    pub source: Source,
    pub operators: Vec<Operator>,
    /// The join tables whose keys a scan takes, whether the pipeline probes them or others do.
    pub transfers: Vec<Transfer>,
}

impl Pipeline {
    /// Whether one worker must take all its rows in their order.
    pub fn is_serial(&self) -> bool {
        let mut operators = self.operators.iter();
        operators.any(|operator| match operator {
            Operator::Expand(expand) => expand.function.is_serial(),
            _ => false,
        })
    }
}

/// A scan drops the rows whose value of a column is not among the keys of a join table: they matter to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Transfer {
    /// The position of the column in the table that is scanned.
    pub column: usize,
    /// The stage of the join table.
    pub stage: usize,
    /// The number of the key.
    pub place: usize,
}

#[derive(Clone, Debug)]
pub(crate) enum Source {
    Scan(Scan),
    Values {
        vars: Vec<Var>,
        batch: RecordBatch,
    },
    Read(ExternalScan),
    /// The rows of a stage.
    Rows(usize),
    /// The rows of a join table that were marked, or that were not, with their row numbers in `row` if it is set.
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
    /// Computes several functions of one vector.
    Together(Together),
    Expand(Expand),
    Probe(Probe),
    /// Sets these vectors to NULL.
    Nulls(Vec<Var>),
    /// Copies the first vector of each pair to the second.
    Alias(Vec<(Var, Var)>),
}

/// Functions of one vector that are computed at once.
#[derive(Clone, Debug)]
pub(crate) struct Together {
    /// The vector of their argument.
    pub of: Var,
    /// The vectors of their values, in their order.
    pub vars: Vec<Var>,
    pub calls: Arc<dyn Calls>,
}

/// A function that makes rows of each row.
#[derive(Clone, Debug)]
pub(crate) struct Expand {
    pub function: Arc<dyn RowFunction>,
    /// Its arguments.
    pub args: Vec<Expr>,
    /// The vectors of the columns that it adds.
    pub vars: Vec<Var>,
}

/// The probe side of a hash join: a `dot`.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    /// The stage that builds the join table.
    pub stage: usize,
    /// The probing vectors, in the order of the join table's keys.
    pub keys: Vec<Var>,
    /// What a number of matching rows lies between.
    pub band: Option<Band>,
    /// Which of the rows with the same keys is the only match, in an as-of join.
    pub nearest: Option<Nearest>,
    pub kind: JoinKind,
    /// Whether the rows of the build side that match are marked.
    pub marks: bool,
    /// Extra join predicates on matching rows.
    pub residual: Vec<Expr>,
    /// Vectors of the join table that the output gets, each with its number there.
    pub build_outputs: Vec<(Var, Var)>,
    /// Set to the matching row's number in the join table, for a group join.
    pub row: Option<Var>,
}

/// Which rows a probe lets through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum JoinKind {
    /// Each row with each match.
    Inner,
    /// Each row with each match; a row without a match once, with NULLs.
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
    /// A join table: the build side of joins. With `marks`, probes can mark rows that match.
    Table {
        keys: Vec<Var>,
        vars: Vec<Var>,
        marks: bool,
    },
    /// An aggregation.
    Fold {
        keys: Vec<Var>,
        folds: Vec<Fold>,
        group_join: Option<GroupJoin>,
        /// Which groups are read, if not all.
        first: Option<FirstGroups>,
    },
    /// Window functions: the rows are sorted, and then the functions computed.
    Window {
        vars: Vec<Var>,
        /// Those of `vars` that the result has.
        kept: Vec<Var>,
        /// The keys by which the rows are sorted.
        order: Vec<Key>,
        /// The functions, by partitions and order.
        parts: Vec<WindowPart>,
    },
    /// Materialised rows, sorted if there are keys.
    Rows {
        vars: Vec<Var>,
        order: Vec<Key>,
        skip: usize,
        fetch: Option<usize>,
    },
}

/// Says that the groups of an aggregate are rows of a join table. It holds only if no two rows of the table have
/// the same key; then the row determines all keys of its group.
#[derive(Clone, Debug)]
pub(crate) struct GroupJoin {
    pub stage: usize,
    /// The vector of row numbers.
    pub row: Var,
    /// For each grouping key, the vector of the join table that holds it.
    pub from: Vec<Var>,
}

/// Says that only the first groups of an order are read; the sink may give more of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FirstGroups {
    /// The keys of the order, which are vectors that the aggregation makes. There is at least one.
    pub order: Vec<Key>,
    /// How many groups.
    pub groups: usize,
}

/// Required columns: the vectors that a later operator or the sink reads.
pub(crate) type Required = BTreeSet<Var>;

/// A pipeline without operators.
pub(crate) fn pipeline(source: Source) -> Pipeline {
    Pipeline {
        source,
        operators: vec![],
        transfers: vec![],
    }
}

/// Appends an operator to each of the pipelines.
pub(crate) fn then(mut pipelines: Vec<Pipeline>, operator: Operator) -> Vec<Pipeline> {
    for pipeline in &mut pipelines {
        pipeline.operators.push(operator.clone());
    }
    pipelines
}

/// Applies those of the `waiting` conditions whose vectors are all in `there`, each as soon as it can be decided.
pub(crate) fn decided(
    mut pipelines: Vec<Pipeline>,
    waiting: &mut Vec<Expr>,
    there: &BTreeSet<Var>,
) -> Vec<Pipeline> {
    let ready = |e: &Expr| e.vars().iter().all(|var| there.contains(var));
    let (now, later): (Vec<Expr>, Vec<Expr>) = std::mem::take(waiting).into_iter().partition(ready);
    *waiting = later;
    for condition in now {
        pipelines = then(pipelines, Operator::Filter(condition));
    }
    pipelines
}

impl Operator {
    /// The probe of an inner join with all matches that this operator is, if it is one.
    pub fn joining(&self) -> Option<&Probe> {
        match self {
            Operator::Probe(p) if p.kind == JoinKind::Inner && p.nearest.is_none() => Some(p),
            _ => None,
        }
    }

    pub fn joining_mut(&mut self) -> Option<&mut Probe> {
        match self {
            Operator::Probe(p) if p.kind == JoinKind::Inner && p.nearest.is_none() => Some(p),
            _ => None,
        }
    }

    /// Calls `f` with each vector that the operator reads of its input.
    pub fn reads(&self, f: &mut dyn FnMut(Var)) {
        match self {
            Operator::Filter(e) | Operator::Map(_, e) => e.each_var(f),
            Operator::Together(together) => f(together.of),
            Operator::Expand(expand) => expand.args.iter().for_each(|e| e.each_var(f)),
            Operator::Probe(p) => {
                p.keys.iter().for_each(|var| f(*var));
                p.band.iter().flat_map(Band::reads).for_each(&mut *f);
                p.nearest.iter().flat_map(Nearest::reads).for_each(&mut *f);
                // A residual predicate reads what the probe itself adds, too.
                let is_made = |var: Var| {
                    p.row == Some(var) || p.build_outputs.iter().any(|(_, to)| *to == var)
                };
                let mut read = |var: Var| {
                    if !is_made(var) {
                        f(var);
                    }
                };
                p.residual.iter().for_each(|e| e.each_var(&mut read));
            }
            Operator::Nulls(_) => {}
            Operator::Alias(pairs) => pairs.iter().for_each(|(from, _)| f(*from)),
        }
    }

    /// Calls `f` with each vector that the operator adds.
    pub fn makes(&self, f: &mut dyn FnMut(Var)) {
        match self {
            Operator::Filter(_) => {}
            Operator::Map(var, _) => f(*var),
            Operator::Together(together) => together.vars.iter().for_each(|var| f(*var)),
            Operator::Expand(expand) => expand.vars.iter().for_each(|var| f(*var)),
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
    /// Whether it takes all rows, in any order.
    pub fn is_plain(&self) -> bool {
        match self {
            Sink::Rows {
                order, skip, fetch, ..
            } => order.is_empty() && *skip == 0 && fetch.is_none(),
            _ => false,
        }
    }

    /// The keys by which it sorts its rows, and how many rows of that order it keeps at most.
    pub fn sorts(&self) -> (&[Key], Option<usize>) {
        match self {
            Sink::Rows {
                order, skip, fetch, ..
            } => (order, fetch.map(|n| skip.saturating_add(n))),
            Sink::Window { order, .. } => (order, None),
            Sink::Table { .. } | Sink::Fold { .. } => (&[], None),
        }
    }

    /// The vectors it reads; `found_by_row` says whether groups are found by row number (group join).
    pub fn reads(&self, found_by_row: bool) -> Required {
        match self {
            Sink::Table { keys, vars, .. } => keys.iter().chain(vars).copied().collect(),
            Sink::Rows { vars, .. } | Sink::Window { vars, .. } => vars.iter().copied().collect(),
            Sink::Fold {
                keys,
                folds,
                group_join,
                ..
            } => {
                let mut required = Required::new();
                for fold in folds {
                    fold.each_var(&mut |var| _ = required.insert(var));
                }
                match group_join {
                    Some(by) if found_by_row => {
                        required.insert(by.row);
                    }
                    _ => required.extend(keys),
                }
                required
            }
        }
    }
}

impl Sink {
    /// For an aggregation of nothing but first rows of one order: that order.
    fn row_order(&self) -> Option<&RowOrder> {
        let Sink::Fold { folds, .. } = self else {
            return None;
        };
        let order = folds.first()?.function.order()?;
        let alike = |fold: &Fold| fold.function.order() == Some(order);
        folds.iter().all(alike).then_some(order)
    }

    /// For such an aggregation: the first key of its order.
    pub fn first_key(&self) -> Option<Key> {
        self.row_order()?.keys().first().copied()
    }

    /// For an aggregation of nothing but first rows of one order: the vectors that decide which rows are kept, if it
    /// reads more than these.
    pub fn decides(&self, found_by_row: bool) -> Option<Vec<Var>> {
        let Sink::Fold {
            keys, group_join, ..
        } = self
        else {
            return None;
        };
        let order = self.row_order()?;
        let mut vars = match group_join {
            Some(by) if found_by_row => vec![by.row],
            _ => keys.clone(),
        };
        order.each_var(&mut |var| vars.push(var));
        let all = self.reads(found_by_row);
        let more = all.iter().any(|var| !vars.contains(var));
        more.then_some(vars)
    }
}

impl Pipeline {
    /// Calls `f` with the stage of each join table that the pipeline probes or reads.
    pub fn tables(&self, f: &mut dyn FnMut(usize)) {
        if let Source::Marked { stage, .. } = self.source {
            f(stage);
        }
        for operator in &self.operators {
            if let Operator::Probe(probe) = operator {
                f(probe.stage);
            }
        }
    }

    /// Whether a probe of it marks rows of its join table.
    pub fn marks(&self) -> bool {
        let marks = |operator: &Operator| matches!(operator, Operator::Probe(own) if own.marks);
        self.operators.iter().any(marks)
    }

    /// For each operator, and the sink at the end, the vectors that are read there or later (ascending).
    pub fn live(&self, mut live: Required) -> Vec<Vec<Var>> {
        let mut all = vec![live.iter().copied().collect()];
        for operator in self.operators.iter().rev() {
            operator.makes(&mut |var| {
                live.remove(&var);
            });
            operator.reads(&mut |var| {
                live.insert(var);
            });
            all.push(live.iter().copied().collect());
        }
        all.reverse();
        all
    }
}
