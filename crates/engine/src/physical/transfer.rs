//! Predicate transfer: what the keys of finished join tables say of scans that do not probe these tables themselves.
//!
//! A pipeline that probes a join table drops the rows whose keys are not in it. If such a row comes from another join
//! table, by a vector that is equal to the key, it is of no use there either, nor in the tables and aggregates that
//! were made for that one. So the stages are visited from the last to the first: from what the probes of a pipeline and
//! the readers of its stage drop follows which rows of each stage before it matter to nobody. A scan takes what reaches
//! it of the join tables that are complete by then.
//!
//! Keys are whole numbers or texts.
//!
//! And a join table of several keys, such as (part, supplier), holds only rows that its own pipelines have found in others:
//! where it is probed, their keys are known, too, and by one column they may tell more than it does itself.
//!
//! A row matters to nobody only if every reader of its stage says so. Groups are dropped by their keys alone, and
//! whole partitions of windows; nothing passes a limit. Rows of an outer or an anti join that have no match stay: such a
//! probe drops none itself. What is dropped behind a probe that marks the rows of its join table says nothing of the rows
//! that come to it, as the marks are read elsewhere; but it does of those that are marked.

use std::collections::{BTreeMap, BTreeSet};

use algebra::filter::Op as Compare;

use crate::expr::{Expr, Node};
use crate::logical::relation::Column;
use crate::physical::classes::Classes;
use crate::physical::program::{
    JoinKind, Operator, Pipeline, Probe, Program, Sink, Source, Stage, Transfer,
};
use crate::vector::value::{Kind, Type, Var, is_text};

/// Rows in which `var` is not among the values of a join table's key matter to nobody.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Bound {
    var: Var,
    /// The stage of the join table.
    stage: usize,
    /// The number of the key.
    place: usize,
}

/// What is passed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passed {
    Whole,
    Text,
}

/// What of a type is passed on; `None` if nothing is.
fn of_type(ty: &Type) -> Option<Passed> {
    match ty.kind {
        Kind::Int => Some(Passed::Whole),
        Kind::Text | Kind::Code if is_text(&ty.data) => Some(Passed::Text),
        _ => None,
    }
}

/// For each stage what all readers so far say of the vectors of its sink; `None` while there is no reader.
type Demands = Vec<Option<BTreeSet<Bound>>>;

/// Notes in the pipelines of `program` which join tables their scans take keys of. `types` are names and types of all vectors.
pub(crate) fn transfer(program: &mut Program, types: &[Column]) {
    let mut demands: Demands = vec![None; program.stages.len()];
    let kept = program.parameters.iter().map(|(stage, _)| *stage);
    for stage in kept.chain([program.answer]) {
        demands[stage] = Some(BTreeSet::new());
    }
    let held = held(program, types);
    for number in (0..program.stages.len()).rev() {
        let demand = demands[number].take().unwrap_or_default();
        let (before, rest) = program.stages.split_at_mut(number);
        let Some(stage) = rest.first_mut() else {
            continue;
        };
        let before = Before {
            stages: before,
            held: &held,
        };
        let demand: BTreeSet<Bound> = demand
            .into_iter()
            .filter(|bound| may_pass(&stage.sink, bound.var))
            .collect();
        for pipeline in &mut stage.pipelines {
            let known = Known::of(pipeline, before, &demand, types, 0);
            let behind = Known::of(pipeline, before, &demand, types, 1);
            known.tell_tables(&behind, pipeline, before, &mut demands);
            pipeline.transfers = known.tell_source(pipeline, before, &mut demands);
        }
    }
}

/// The stages before one, and what is known of the keys of their join tables.
#[derive(Clone, Copy)]
struct Before<'s> {
    stages: &'s [Stage],
    /// For each join table of several keys what all its rows were found in, by the vectors of its keys.
    held: &'s [BTreeSet<Bound>],
}

/// For each stage what all rows of its join table were found in, if that has several keys.
fn held(program: &Program, types: &[Column]) -> Vec<BTreeSet<Bound>> {
    let mut held: Vec<BTreeSet<Bound>> = vec![BTreeSet::new(); program.stages.len()];
    for (number, stage) in program.stages.iter().enumerate() {
        let Sink::Table { keys, .. } = &stage.sink else {
            continue;
        };
        // A single key tells more than what its rows were found in.
        if keys.len() < 2 {
            continue;
        }
        let before = Before {
            stages: &program.stages[..number],
            held: &held,
        };
        let mut all = None;
        for pipeline in &stage.pipelines {
            let mut own = BTreeSet::new();
            if !pipeline.marks() {
                let known = Known::of(pipeline, before, &BTreeSet::new(), types, 0);
                let bounds = keys.iter().map(|key| known.of_var(*key, *key, number));
                own.extend(bounds.flatten());
            }
            agree(&mut all, own);
        }
        held[number] = all.unwrap_or_default();
    }
    held
}

/// Whether all rows with a value of `var` may be missing in a sink that loses nothing but them by it.
fn may_pass(sink: &Sink, var: Var) -> bool {
    match sink {
        Sink::Table { keys, vars, .. } => keys.contains(&var) || vars.contains(&var),
        Sink::Fold { keys, .. } => keys.contains(&var),
        Sink::Window { order, parts, .. } => {
            let mut partitions = parts.iter().map(|part| order.get(..part.partition));
            !parts.is_empty()
                && partitions
                    .all(|keys| keys.is_some_and(|keys| keys.iter().any(|key| key.var == var)))
        }
        Sink::Rows {
            vars, skip, fetch, ..
        } => *skip == 0 && fetch.is_none() && vars.contains(&var),
    }
}

/// What is known of the rows of a pipeline that matter.
struct Known<'t> {
    equal: Classes,
    bounds: BTreeSet<Bound>,
    /// The vectors that are made in more than one place, of which nothing is said.
    unclear: BTreeSet<Var>,
    types: &'t [Column],
}

impl<'t> Known<'t> {
    /// What the operators of a pipeline say, up to the first that marks rows behind so many `marking` ones, and, if there
    /// is none, the readers of its stage. `before` are the stages before its own.
    fn of(
        pipeline: &Pipeline,
        before: Before<'_>,
        demand: &BTreeSet<Bound>,
        types: &'t [Column],
        marking: usize,
    ) -> Known<'t> {
        let mut marked = 0;
        let mut known = Known {
            equal: Classes::default(),
            bounds: BTreeSet::new(),
            unclear: made_twice(pipeline, before.stages),
            types,
        };
        for operator in &pipeline.operators {
            match operator {
                Operator::Filter(e) => known.filter(e),
                Operator::Alias(pairs) => pairs.iter().for_each(|pair| known.equate(*pair)),
                Operator::Probe(probe) => {
                    known.probe(probe, before);
                    marked += usize::from(probe.marks);
                    if marked > marking {
                        return known;
                    }
                }
                Operator::Map(..)
                | Operator::Together(_)
                | Operator::Expand(_)
                | Operator::Nulls(_) => {}
            }
        }
        let clear = demand.iter().filter(|bound| known.is_key(bound.var));
        let clear: Vec<Bound> = clear.copied().collect();
        known.bounds.extend(clear);
        known
    }

    /// Whether something can be said of the values of `var`: it is made in one place.
    fn is_key(&self, var: Var) -> bool {
        let ty = self.types.get(var);
        ty.is_some_and(|column| of_type(&column.ty).is_some()) && !self.unclear.contains(&var)
    }

    /// Whether values of `a` and of `b` can be equal.
    fn are_alike(&self, a: Var, b: Var) -> bool {
        let of = |var: Var| self.types.get(var).and_then(|column| of_type(&column.ty));
        of(a).is_some() && of(a) == of(b)
    }

    fn equate(&mut self, (a, b): (Var, Var)) {
        if a != b && self.is_key(a) && self.is_key(b) && self.are_alike(a, b) {
            self.equal.join((a, b));
        }
    }

    fn filter(&mut self, e: &Expr) {
        match &e.node {
            Node::And(all) => all.iter().for_each(|e| self.filter(e)),
            Node::Compare(Compare::Eq, a, b) => {
                let same = a.ty.data == b.ty.data;
                if let (Some(a), Some(b), true) = (a.as_var(), b.as_var(), same) {
                    self.equate((a, b));
                }
            }
            _ => {}
        }
    }

    fn probe(&mut self, probe: &Probe, before: Before<'_>) {
        if matches!(probe.kind, JoinKind::Outer | JoinKind::Anti) {
            return;
        }
        let Some(keys) = keys_of(before.stages, probe.stage) else {
            return;
        };
        for (place, (var, key)) in probe.keys.iter().zip(keys).enumerate() {
            let (var, key) = (*var, *key);
            if !self.is_key(var) || !self.are_alike(var, key) {
                continue;
            }
            self.bounds.insert(Bound {
                var,
                stage: probe.stage,
                place,
            });
            let held = before.held[probe.stage].iter();
            let held = held.filter(|bound| bound.var == key);
            self.bounds
                .extend(held.map(|bound| Bound { var, ..*bound }));
            let outputs = probe.build_outputs.iter();
            let outputs = outputs.filter(|(from, _)| *from == key);
            if probe.kind == JoinKind::Inner {
                outputs.for_each(|(_, to)| self.equate((var, *to)));
            }
        }
    }

    /// What is said of `var`, or of a vector that equals it, by the join tables of stages before `stage`; as bounds of
    /// the vector `named`.
    fn of_var(&self, var: Var, named: Var, stage: usize) -> BTreeSet<Bound> {
        if !self.is_key(var) {
            return BTreeSet::new();
        }
        let class = self.equal.of(var);
        let equals = |other: Var| other == var || class.is_some_and(|all| all.contains(&other));
        let mine = |bound: &&Bound| bound.stage < stage && equals(bound.var);
        let bounds = self.bounds.iter().filter(mine);
        bounds
            .map(|bound| Bound {
                var: named,
                ..*bound
            })
            .collect()
    }

    /// Tells the stage of each join table that `pipeline` probes what it says of its rows. `behind` is what is known behind
    /// the first operator that marks rows.
    fn tell_tables(
        &self,
        behind: &Known<'_>,
        pipeline: &Pipeline,
        Before { stages, .. }: Before<'_>,
        demands: &mut Demands,
    ) {
        let mut is_marked = false;
        for operator in &pipeline.operators {
            let Operator::Probe(probe) = operator else {
                continue;
            };
            let is_first = probe.marks && !is_marked;
            is_marked |= probe.marks;
            // Where rows are only marked, who reads the marks says which matter.
            if probe.kind != JoinKind::MarkOnly {
                let known = if is_first { behind } else { self };
                agree(&mut demands[probe.stage], known.of_table(probe, stages));
            }
        }
    }

    /// Tells the stage whose rows `pipeline` reads what it says of them. Returns what its scan takes.
    fn tell_source(
        &self,
        pipeline: &Pipeline,
        Before { stages, .. }: Before<'_>,
        demands: &mut Demands,
    ) -> Vec<Transfer> {
        let named = |vars: &[Var], stage: usize| {
            let bounds = vars.iter().map(|var| self.of_var(*var, *var, stage));
            bounds.flatten().collect::<BTreeSet<Bound>>()
        };
        match &pipeline.source {
            Source::Scan(scan) => {
                let columns = scan.columns.iter().flat_map(|(var, column)| {
                    let bounds = self.of_var(*var, *var, stages.len()).into_iter();
                    bounds.map(|bound| Transfer {
                        column: *column,
                        stage: bound.stage,
                        place: bound.place,
                    })
                });
                return columns.collect();
            }
            Source::Rows(stage) | Source::Marked { stage, .. } => {
                let own = outputs_of(&stages[*stage].sink);
                agree(&mut demands[*stage], named(&own, *stage));
            }
            Source::Values { .. } | Source::Read(_) => {}
        }
        vec![]
    }

    /// What is said of the rows of a join table: by the vectors that probe it, and by those that it gives.
    fn of_table(&self, probe: &Probe, before: &[Stage]) -> BTreeSet<Bound> {
        let mut bounds = BTreeSet::new();
        let keys = keys_of(before, probe.stage).unwrap_or_default();
        for (var, key) in probe.keys.iter().zip(keys) {
            bounds.extend(self.of_var(*var, *key, probe.stage));
        }
        // Without the nearest row of a key another one would be the nearest.
        if probe.nearest.is_none() {
            for (from, to) in &probe.build_outputs {
                bounds.extend(self.of_var(*to, *from, probe.stage));
            }
        }
        bounds.retain(|bound| of_type(&self.types[bound.var].ty).is_some());
        bounds
    }
}

/// Leaves what both the readers so far and another one say.
fn agree(all: &mut Option<BTreeSet<Bound>>, own: BTreeSet<Bound>) {
    match all {
        Some(all) => all.retain(|bound| own.contains(bound)),
        None => *all = Some(own),
    }
}

/// The keys of the join table of a stage.
fn keys_of(stages: &[Stage], stage: usize) -> Option<&[Var]> {
    match &stages.get(stage)?.sink {
        Sink::Table { keys, .. } => Some(keys),
        _ => None,
    }
}

/// The vectors that the rows of a sink have.
fn outputs_of(sink: &Sink) -> Vec<Var> {
    match sink {
        Sink::Table { keys, vars, .. } => keys.iter().chain(vars).copied().collect(),
        Sink::Fold { keys, folds, .. } => {
            let folds = folds.iter().map(|fold| fold.var);
            keys.iter().copied().chain(folds).collect()
        }
        Sink::Window { kept, parts, .. } => {
            let functions = parts.iter().flat_map(|part| &part.functions);
            let functions = functions.map(|fold| fold.var);
            kept.iter().copied().chain(functions).collect()
        }
        Sink::Rows { vars, .. } => vars.clone(),
    }
}

/// The vectors that a pipeline makes in more than one place.
fn made_twice(pipeline: &Pipeline, before: &[Stage]) -> BTreeSet<Var> {
    let mut times: BTreeMap<Var, usize> = BTreeMap::new();
    let mut source: BTreeSet<Var> = BTreeSet::new();
    match &pipeline.source {
        Source::Scan(scan) => scan.each_var(&mut |var| _ = source.insert(var)),
        Source::Values { vars, .. } => source.extend(vars),
        Source::Read(reading) => source.extend(reading.columns.iter().map(|(var, _)| *var)),
        Source::Rows(stage) => source.extend(outputs_of(&before[*stage].sink)),
        Source::Marked { stage, row, .. } => {
            source.extend(outputs_of(&before[*stage].sink));
            source.extend(row);
        }
    }
    source.into_iter().for_each(|var| _ = times.insert(var, 1));
    for operator in &pipeline.operators {
        match operator {
            // A vector that gets its own name is the same.
            Operator::Alias(pairs) => {
                let others = pairs.iter().filter(|(from, to)| from != to);
                others.for_each(|(_, to)| *times.entry(*to).or_default() += 1);
            }
            operator => operator.makes(&mut |var| *times.entry(var).or_default() += 1),
        }
    }
    let twice = times.into_iter().filter(|(_, times)| *times > 1);
    twice.map(|(var, _)| var).collect()
}
