//! The planner: turns relations into a program.
//!
//! See [`program`](crate::physical::program) for stages, pipelines and where pipelines are cut.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::expr::Expr;
use crate::logical::relation::{Fold, Function, Output, Query, Reduced, Rel};
use crate::physical::copies::{Copies, count_copies};
use crate::physical::first_groups::first_groups;
use crate::physical::program::{
    Expand, JoinKind, Operator, Pipeline, Probe, Program, Required, Sink, Source, Stage, pipeline,
    then,
};
use crate::physical::statistics::expected_after_all;
use crate::physical::transfer::transfer;
use crate::physical::{
    distinct_values, document_parts, early_groups, join_order, outer_join, semi_join, shifted_sums,
    together, wide_keys,
};
use crate::vector::value::Var;

/// Plans the program of `root`; the vectors of `output` are the answer.
///
/// # Errors
/// [`Error::Unsupported`](crate::Error::Unsupported).
pub(crate) fn plan(query: &mut Query, root: Rel, output: &Output) -> Result<Program> {
    let root = wide_keys::packed(query, root)?;
    let mut readers = Readers::new();
    let parameters = query.parameters.iter().map(|(rel, _)| rel);
    for rel in parameters.chain([&root]) {
        note_readers(rel, &mut readers);
    }
    let mut planner = Planner {
        query,
        stages: Vec::new(),
        readers,
        shared: Vec::new(),
        copies: Copies::Kept,
        numbers: None,
        is_last: false,
        shares: HashMap::new(),
    };
    let mut parameters = Vec::new();
    for (rel, var) in std::mem::take(&mut planner.query.parameters) {
        let stage = planner.rows_stage(rel, vec![var])?;
        parameters.push((stage, var));
    }
    let answer = planner.rows_stage(root, output.vars.clone())?;
    for stage in &planner.stages {
        if let Sink::Table { keys, .. } | Sink::Fold { keys, .. } = &stage.sink {
            let types = keys.iter().map(|key| planner.query.ty(*key));
            crate::vector::key_encoding::check(types)?;
        }
    }
    for stage in &mut planner.stages {
        let sink = stage.sink.reads(false);
        for pipeline in &mut stage.pipelines {
            document_parts::scanned(planner.query, pipeline, &sink);
            together::computed(planner.query, &mut pipeline.operators);
        }
    }
    let mut program = Program {
        stages: planner.stages,
        shares: planner.shares,
        aggregates: std::mem::take(&mut planner.query.aggregates).into(),
        parameters,
        answer,
    };
    transfer(&mut program, &planner.query.vars);
    first_groups(&mut program);
    Ok(program)
}

/// The vectors that are read of shared relations, by the addresses of these.
type Readers = HashMap<usize, Required>;

/// Notes the vectors of shared relations that are read in `rel`.
fn note_readers(rel: &Rel, readers: &mut Readers) {
    if let Rel::Shared { input, vars } = rel {
        let address = Arc::as_ptr(input) as usize;
        let is_known = readers.contains_key(&address);
        let read = readers.entry(address).or_default();
        read.extend(vars.iter().map(|(var, _)| *var));
        if is_known {
            return;
        }
    }
    rel.each_input(&mut |input| note_readers(input, readers));
}

pub(crate) struct Planner<'q> {
    pub query: &'q mut Query,
    pub stages: Vec<Stage>,
    readers: Readers,
    /// Shared relations that are planned already, and the stages of their rows.
    shared: Vec<(Arc<Rel>, usize)>,
    /// What the aggregate above the relation that is planned next makes of copies of its rows. Each relation takes it, and only
    /// those that neither add nor compare rows hand it on.
    pub copies: Copies,
    /// For an aggregate that counts copies: the vector that says for how many rows each stands, if a join below has made one.
    pub numbers: Option<Var>,
    /// Whether the rows of the relation that is planned next reach the sink of their stage once each. Each relation takes it, and only
    /// those that compare rows with no others hand it on.
    is_last: bool,
    /// By the stages of join tables: the share of rows that is expected to have a match there, if that was estimated.
    pub shares: HashMap<usize, f64>,
}

impl Planner<'_> {
    /// Adds a stage and returns its number.
    pub fn stage(&mut self, pipelines: Vec<Pipeline>, sink: Sink) -> usize {
        self.stages.push(Stage { pipelines, sink });
        self.stages.len() - 1
    }

    /// Adds a stage that gives the rows of `rel` with `vars`, sorted and limited as `rel` asks.
    fn rows_stage(&mut self, rel: Rel, vars: Vec<Var>) -> Result<usize> {
        let (rel, order, skip, fetch) = match rel {
            Rel::Sort {
                input,
                keys,
                skip,
                fetch,
            } => (*input, keys, skip, fetch),
            rel => (rel, vec![], 0, None),
        };
        let mut required: Required = vars.iter().copied().collect();
        required.extend(order.iter().map(|key| key.var));
        self.is_last = true;
        let pipelines = self.pipelines(rel, &required)?;
        let vars = required.into_iter().collect();
        Ok(self.stage(
            pipelines,
            Sink::Rows {
                vars,
                order,
                skip,
                fetch,
            },
        ))
    }

    /// Plans the pipelines that together give the rows of `rel`, with at least the required columns.
    pub fn pipelines(&mut self, rel: Rel, required: &Required) -> Result<Vec<Pipeline>> {
        let copies = std::mem::take(&mut self.copies);
        let is_last = std::mem::take(&mut self.is_last);
        match rel {
            Rel::Scan(mut scan) => {
                let expected = expected_after_all(self.query, &scan);
                scan.columns.retain(|(var, _)| required.contains(var));
                scan.row_ids = scan.row_ids.filter(|var| required.contains(var));
                scan.expected = expected;
                Ok(vec![pipeline(Source::Scan(scan))])
            }
            Rel::Read(mut reading) => {
                reading.columns.retain(|(var, _)| required.contains(var));
                Ok(vec![pipeline(Source::Read(reading))])
            }
            Rel::Values { vars, batch } => Ok(vec![pipeline(Source::Values { vars, batch })]),
            Rel::Filter { input, predicate } => {
                (self.copies, self.is_last) = (copies, is_last);
                self.filter(*input, predicate, required)
            }
            Rel::Map { input, exprs } => {
                (self.copies, self.is_last) = (copies, is_last);
                self.map(*input, exprs, required)
            }
            Rel::Expand { .. } => self.expand(rel, required, is_last),
            Rel::Join {
                inputs,
                equal,
                residual,
            } => join_order::join(self, inputs, equal, residual, required, copies),
            Rel::Semi {
                input,
                other,
                equal,
                residual,
                anti,
            } => semi_join::semi(self, *input, *other, &equal, residual, anti, required),
            Rel::Left {
                left,
                right,
                equal,
                residual,
                outer,
            } => outer_join::left(self, *left, *right, &equal, residual, outer, required),
            Rel::Full {
                left,
                right,
                equal,
                residual,
                outer,
            } => outer_join::full(self, *left, *right, &equal, residual, outer, required),
            Rel::AsOf(join) => outer_join::as_of(self, join, required),
            Rel::Reduced(reduced) => self.reduced(reduced, required),
            Rel::Fold { input, keys, folds } => self.fold(*input, keys, folds, required),
            Rel::Window { .. } => self.windows(rel, required),
            Rel::Shared { input, vars } => {
                let stage = self.shared(&input)?;
                let vars = vars.into_iter().filter(|(_, var)| required.contains(var));
                let named = Operator::Alias(vars.collect());
                Ok(then(vec![pipeline(Source::Rows(stage))], named))
            }
            Rel::Sort { .. } => self.sort(rel, required),
            Rel::Union { inputs, vars } => self.union(inputs, &vars, required, is_last),
        }
    }

    /// The stage that gives the sorted or limited rows, and the pipeline that reads them.
    fn sort(&mut self, rel: Rel, required: &Required) -> Result<Vec<Pipeline>> {
        let mut vars = Vec::new();
        rel.each_var(&mut |var| {
            if required.contains(&var) {
                vars.push(var);
            }
        });
        let stage = self.rows_stage(rel, vars)?;
        Ok(vec![pipeline(Source::Rows(stage))])
    }

    fn filter(
        &mut self,
        input: Rel,
        predicate: Expr,
        required: &Required,
    ) -> Result<Vec<Pipeline>> {
        let mut more = required.clone();
        predicate.each_var(&mut |var| {
            more.insert(var);
        });
        let pipelines = self.pipelines(input, &more)?;
        Ok(then(pipelines, Operator::Filter(predicate)))
    }

    /// The rows that a function makes. Those of a volatile one are kept, unless they reach a sink once each: what probes a join table
    /// in several passes would call it in each of them. A serial one takes the rows of a stage, whose order is known.
    fn expand(&mut self, rel: Rel, required: &Required, is_last: bool) -> Result<Vec<Pipeline>> {
        let Rel::Expand {
            input,
            function,
            args,
            vars,
        } = rel
        else {
            return Err(Error::internal("rows of no function"));
        };
        let expand = Expand {
            function,
            args,
            vars,
        };
        let keeps = expand.function.is_volatile() && !is_last;
        let mut more = required.clone();
        for var in &expand.vars {
            more.remove(var);
        }
        for arg in &expand.args {
            arg.each_var(&mut |var| _ = more.insert(var));
        }
        let pipelines = if expand.function.is_serial() {
            let stage = self.rows_stage(*input, more.into_iter().collect())?;
            vec![pipeline(Source::Rows(stage))]
        } else {
            self.is_last = is_last || keeps;
            self.pipelines(*input, &more)?
        };
        let pipelines = then(pipelines, Operator::Expand(expand));
        if !keeps {
            return Ok(pipelines);
        }
        let rows = Sink::Rows {
            vars: required.iter().copied().collect(),
            order: vec![],
            skip: 0,
            fetch: None,
        };
        let stage = self.stage(pipelines, rows);
        Ok(vec![pipeline(Source::Rows(stage))])
    }

    /// The rows of a relation that have a match in a join table: a semi join.
    fn reduced(&mut self, reduced: Reduced, required: &Required) -> Result<Vec<Pipeline>> {
        let Reduced { input, stage, keys } = reduced;
        let mut more = required.clone();
        more.extend(&keys);
        let pipelines = self.pipelines(*input, &more)?;
        let probe = Probe {
            stage,
            keys,
            band: None,
            nearest: None,
            kind: JoinKind::Semi,
            marks: false,
            residual: vec![],
            build_outputs: vec![],
            row: None,
        };
        Ok(then(pipelines, Operator::Probe(probe)))
    }

    /// The pipelines of all inputs, whose vectors get the numbers `vars`.
    fn union(
        &mut self,
        inputs: Vec<(Rel, Vec<Var>)>,
        vars: &[Var],
        required: &Required,
        is_last: bool,
    ) -> Result<Vec<Pipeline>> {
        let mut all = Vec::new();
        for (input, own) in inputs {
            let pairs: Vec<(Var, Var)> = own.iter().copied().zip(vars.iter().copied()).collect();
            let pairs: Vec<_> = pairs
                .into_iter()
                .filter(|(_, to)| required.contains(to))
                .collect();
            let required = pairs.iter().map(|(from, _)| *from).collect();
            self.is_last = is_last;
            let pipelines = self.pipelines(input, &required)?;
            all.extend(then(pipelines, Operator::Alias(pairs)));
        }
        Ok(all)
    }

    /// The stage that gives the rows of a shared relation, with the vectors that any of its readers has.
    fn shared(&mut self, rel: &Arc<Rel>) -> Result<usize> {
        let known = self
            .shared
            .iter()
            .find(|(other, _)| Arc::ptr_eq(other, rel));
        if let Some((_, stage)) = known {
            return Ok(*stage);
        }
        let address = Arc::as_ptr(rel) as usize;
        let all = self.readers.get(&address).cloned().unwrap_or_default();
        let pipelines = self.pipelines((**rel).clone(), &all)?;
        let stage = match &pipelines[..] {
            [
                Pipeline {
                    source: Source::Rows(stage),
                    operators,
                    ..
                },
            ] if operators.is_empty() => *stage,
            _ => self.stage(
                pipelines,
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
        required: &Required,
    ) -> Result<Vec<Pipeline>> {
        let mut more = required.clone();
        let mut kept = Vec::new();
        for (var, expr) in exprs.into_iter().rev() {
            if more.remove(&var) {
                expr.each_var(&mut |var| {
                    more.insert(var);
                });
                kept.push((var, expr));
            }
        }
        let mut pipelines = self.pipelines(input, &more)?;
        for (var, expr) in kept.into_iter().rev() {
            let operator = match expr.as_var() {
                Some(from) => Operator::Alias(vec![(from, var)]),
                None => Operator::Map(var, expr),
            };
            pipelines = then(pipelines, operator);
        }
        Ok(pipelines)
    }

    fn fold(
        &mut self,
        input: Rel,
        keys: Vec<Var>,
        folds: Vec<Fold>,
        required: &Required,
    ) -> Result<Vec<Pipeline>> {
        let is_of_many = folds.iter().any(|fold| fold.function.is_of_many());
        let order = folds.first().and_then(|fold| fold.function.order());
        let alike = |fold: &Fold| fold.function.order() == order;
        if is_of_many && !folds.iter().all(alike) {
            return Err(Error::unsupported(
                "aggregates of different numbers of rows",
            ));
        }
        let folds = self.read(folds, required, is_of_many);
        let (mut folds, results) = shifted_sums::as_one_sum(self.query, &input, folds);
        let mut input = input;
        if !is_of_many {
            // First: what is below sees groups by the distinct values then, and may make them before a join, or by the rows of a
            // join table.
            (input, folds) = distinct_values::as_groups(self.query, input, &keys, folds);
            (input, folds) = early_groups::before_join(self.query, input, &keys, folds)?;
        }
        let mut more: Required = keys.iter().copied().collect();
        for fold in &folds {
            fold.each_var(&mut |var| _ = more.insert(var));
        }
        if !is_of_many {
            self.copies = Copies::of(&folds);
        }
        self.is_last = true;
        let mut pipelines = self.pipelines(input, &more)?;
        if let Some(numbers) = self.numbers.take() {
            count_copies(&mut folds, numbers);
        }
        // The rows of a join table are one of each group.
        let keeps_values = |fold: &Fold| matches!(fold.function, Function::Call(_));
        let keeps_values = folds.iter().any(keeps_values);
        let group_join = if keys.is_empty() || is_of_many || keeps_values {
            None
        } else {
            self.group_join(&mut pipelines, &keys)
        };
        let stage = self.stage(
            pipelines,
            Sink::Fold {
                keys,
                folds,
                group_join,
                first: None,
            },
        );
        let rows = vec![pipeline(Source::Rows(stage))];
        let computed = results.into_iter().map(|(var, e)| Operator::Map(var, e));
        Ok(computed.fold(rows, then))
    }

    /// Those of `folds` that are read. Of functions of many rows one stays, which says how many rows a group has.
    fn read(&self, mut folds: Vec<Fold>, required: &Required, is_of_many: bool) -> Vec<Fold> {
        let last = folds.last().filter(|_| is_of_many).cloned();
        folds.retain(|fold| required.contains(&fold.var));
        if folds.is_empty() {
            folds.extend(last);
        }
        for fold in folds
            .iter_mut()
            .filter(|fold| fold.function == Function::Count)
        {
            // Without NULLs it counts rows, whatever the values are.
            fold.arg = fold.arg.filter(|arg| self.query.ty(*arg).nullable);
        }
        folds
    }
}
