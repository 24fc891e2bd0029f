//! Semi joins and anti joins.

use crate::error::Result;
use crate::expr::Expr;
use crate::logical::relation::{Reduced, Rel};
use crate::physical::band::Band;
use crate::physical::planner::Planner;
use crate::physical::program::{
    JoinKind, Operator, Pipeline, Probe, Required, Sink, Source, pipeline, then,
};
use crate::physical::statistics::expected;
use crate::vector::value::Var;

/// Plans the rows of `input` that have a match in `other` (semi join), or that have none (anti join). The smaller
/// side becomes the build side.
pub(crate) fn semi(
    planner: &mut Planner<'_>,
    mut input: Rel,
    other: Rel,
    equal: &[(Var, Var)],
    residual: Vec<Expr>,
    anti: bool,
    required: &Required,
) -> Result<Vec<Pipeline>> {
    let mine: Vec<Var> = equal.iter().map(|(mine, _)| *mine).collect();
    if residual.is_empty() && !mine.is_empty() && descend(&mut input, &mine) {
        let mut other = Some(other);
        replace(&mut input, &mine, &mut |part| Rel::Semi {
            input: Box::new(part),
            other: Box::new(
                other
                    .take()
                    .unwrap_or_else(|| unreachable!("one part owns the keys")),
            ),
            equal: equal.to_vec(),
            residual: vec![],
            anti,
        });
        return planner.pipelines(input, required);
    }
    let mut read = Required::new();
    for e in &residual {
        read.extend(e.vars());
    }
    let join = Semi {
        input,
        other,
        equal,
        residual,
        read,
        anti,
    };
    let rows = |rel| expected(planner.query, rel).0;
    if rows(&join.input) * 2.0 <= rows(&join.other) {
        join.build_input(planner, required)
    } else {
        join.build_other(planner, required)
    }
}

/// A semi join or an anti join.
struct Semi<'a> {
    input: Rel,
    other: Rel,
    equal: &'a [(Var, Var)],
    residual: Vec<Expr>,
    /// The vectors that the residual reads.
    read: Required,
    anti: bool,
}

impl Semi<'_> {
    /// A join table of the other side, probed by the input.
    fn build_other(self, planner: &mut Planner<'_>, required: &Required) -> Result<Vec<Pipeline>> {
        let Semi {
            input,
            other,
            equal,
            residual,
            read,
            anti,
        } = self;
        let (mine, theirs): (Vec<Var>, Vec<Var>) = equal.iter().copied().unzip();
        let mut vars = Required::new();
        other.each_var(&mut |var| {
            if read.contains(&var) {
                vars.insert(var);
            }
        });
        let mut wanted = vars.clone();
        wanted.extend(&theirs);
        let pipelines = planner.pipelines(other, &wanted)?;
        let build_outputs = vars.iter().map(|var| (*var, *var)).collect();
        let band = Band::of(&residual, |var| vars.contains(&var));
        let sink = Sink::Table {
            keys: theirs,
            vars: vars.into_iter().collect(),
            marks: false,
        };
        let stage = planner.stage(pipelines, sink);
        let mut wanted = required.clone();
        wanted.extend(&mine);
        wanted.extend(read.iter().filter(|var| input.gives(**var)));
        let pipelines = planner.pipelines(input, &wanted)?;
        let kind = if anti { JoinKind::Anti } else { JoinKind::Semi };
        let probe = Probe {
            stage,
            keys: mine,
            band,
            nearest: None,
            kind,
            marks: false,
            residual,
            build_outputs,
            row: None,
        };
        Ok(then(pipelines, Operator::Probe(probe)))
    }

    /// A join table of the input, in which the other side marks the rows that match. The input's rows with a mark
    /// (or without one) are the result.
    fn build_input(self, planner: &mut Planner<'_>, required: &Required) -> Result<Vec<Pipeline>> {
        let Semi {
            input,
            mut other,
            equal,
            residual,
            read,
            anti,
        } = self;
        let (mine, theirs): (Vec<Var>, Vec<Var>) = equal.iter().copied().unzip();
        let mut wanted: Required = required.clone();
        wanted.extend(read.iter().filter(|var| input.gives(**var)));
        let vars: Vec<Var> = wanted.iter().copied().collect();
        let band = Band::of(&residual, |var| vars.contains(&var));
        let build_outputs = vars
            .iter()
            .filter(|var| read.contains(var))
            .map(|var| (*var, *var))
            .collect();
        wanted.extend(&mine);
        let pipelines = planner.pipelines(input, &wanted)?;
        let stage = planner.stage(
            pipelines,
            Sink::Table {
                keys: mine,
                vars,
                marks: true,
            },
        );
        let groups = group_keys(&other, &theirs);
        match groups.len() {
            n if n == theirs.len() || n == 0 => reduce(&mut other, &theirs, stage, false),
            _ => {
                let keys = equal.iter().filter(|(_, var)| groups.contains(var));
                let (keys, groups): (Vec<Var>, Vec<Var>) = keys.copied().unzip();
                let stage = keys_of(planner, stage, keys);
                reduce(&mut other, &groups, stage, false);
            }
        }
        let mut wanted: Required = theirs.iter().copied().collect();
        wanted.extend(read.iter().filter(|var| other.gives(**var)));
        let probe = Probe {
            stage,
            keys: theirs,
            band,
            nearest: None,
            kind: JoinKind::MarkOnly,
            marks: true,
            residual,
            build_outputs,
            row: None,
        };
        let pipelines = then(planner.pipelines(other, &wanted)?, Operator::Probe(probe));
        mark(planner, pipelines);
        Ok(vec![pipeline(Source::Marked {
            stage,
            marked: !anti,
            row: None,
        })])
    }
}

/// Adds a stage with a join table by `keys` of all rows in `stage`'s join table.
fn keys_of(planner: &mut Planner<'_>, stage: usize, keys: Vec<Var>) -> usize {
    // No row is marked yet, so these are all rows.
    let rows = pipeline(Source::Marked {
        stage,
        marked: false,
        row: None,
    });
    let sink = Sink::Table {
        keys,
        vars: vec![],
        marks: false,
    };
    planner.stage(vec![rows], sink)
}

/// Those of `vars` that are grouping keys of `rel`.
fn group_keys(rel: &Rel, vars: &[Var]) -> Vec<Var> {
    match rel {
        Rel::Fold { keys, .. } => {
            let keys = vars.iter().filter(|var| keys.contains(var));
            keys.copied().collect()
        }
        Rel::Map { input, .. } | Rel::Filter { input, .. } => {
            let given = vars.iter().filter(|var| input.gives(**var));
            group_keys(input, &given.copied().collect::<Vec<_>>())
        }
        _ => vec![],
    }
}

/// Adds a stage of pipelines that only mark rows of a join table.
fn mark(planner: &mut Planner<'_>, pipelines: Vec<Pipeline>) -> usize {
    let sink = Sink::Rows {
        vars: vec![],
        order: vec![],
        skip: 0,
        fetch: None,
    };
    planner.stage(pipelines, sink)
}

/// Whether `rel` contains a join of which one input gives all of `vars` unchanged.
fn descend(rel: &mut Rel, vars: &[Var]) -> bool {
    match rel {
        Rel::Join { inputs, .. } => {
            inputs.len() > 1 && inputs.iter().any(|i| vars.iter().all(|var| i.gives(*var)))
        }
        Rel::Map { input, .. } | Rel::Filter { input, .. } => {
            vars.iter().all(|var| input.gives(*var)) && descend(input, vars)
        }
        _ => false,
    }
}

/// Replaces the smallest input of joins in `rel` that gives `vars` by `make` of it.
fn replace(rel: &mut Rel, vars: &[Var], make: &mut dyn FnMut(Rel) -> Rel) {
    match rel {
        Rel::Join { inputs, .. } => {
            if let Some(input) = inputs
                .iter_mut()
                .find(|i| vars.iter().all(|var| i.gives(*var)))
            {
                return replace(input, vars, make);
            }
        }
        Rel::Map { input, .. } | Rel::Filter { input, .. }
            if vars.iter().all(|var| input.gives(*var)) =>
        {
            return replace(input, vars, make);
        }
        _ => {}
    }
    let empty = Rel::Union {
        inputs: vec![],
        vars: vec![],
    };
    let part = std::mem::replace(rel, empty);
    *rel = make(part);
}

/// Semi-join reduction: makes `rel` read only rows whose `vars` match `stage`'s join table, by a probe placed as
/// deep as possible. It is only `useful` below an aggregation by these keys, which then has fewer rows to group;
/// elsewhere the join itself probes just as early.
fn reduce(rel: &mut Rel, vars: &[Var], stage: usize, useful: bool) {
    match rel {
        Rel::Fold { input, keys, .. } if vars.iter().all(|var| keys.contains(var)) => {
            return reduce(input, vars, stage, true);
        }
        Rel::Map { input, .. } | Rel::Filter { input, .. }
            if vars.iter().all(|var| input.gives(*var)) =>
        {
            return reduce(input, vars, stage, useful);
        }
        Rel::Join { inputs, .. } => {
            if let Some(input) = inputs
                .iter_mut()
                .find(|i| vars.iter().all(|var| i.gives(*var)))
            {
                return reduce(input, vars, stage, useful);
            }
        }
        _ => {}
    }
    if useful {
        let empty = Rel::Union {
            inputs: vec![],
            vars: vec![],
        };
        let part = std::mem::replace(rel, empty);
        *rel = Rel::Reduced(Reduced {
            input: Box::new(part),
            stage,
            keys: vars.to_vec(),
        });
    }
}
