//! Rows with a partner, and rows without.

use crate::error::Result;
use crate::expr::Expr;
use crate::logical::relation::{Reduced, Rel};
use crate::physical::planner::Planner;
use crate::physical::program::{
    JoinKind, Operator, Pipeline, Probe, Required, Sink, Source, pipe, then,
};
use crate::physical::statistics::expected;
use crate::vector::value::Var;

/// Pipelines of the rows of `input` that have a partner in `other`, or none.
pub(crate) fn semi(
    planner: &mut Planner<'_>,
    mut input: Rel,
    other: Rel,
    equal: &[(Var, Var)],
    residual: Vec<Expr>,
    anti: bool,
    need: &Required,
) -> Result<Vec<Pipeline>> {
    let (mine, theirs): (Vec<Var>, Vec<Var>) = equal.iter().copied().unzip();
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
        return planner.pipes(input, need);
    }
    let mut read = Required::new();
    for e in &residual {
        read.extend(e.vars());
    }
    let few = expected(&input).0 * 2.0 <= expected(&other).0;
    if !few {
        let mut vars = Required::new();
        other.each_var(&mut |var| {
            if read.contains(&var) {
                vars.insert(var);
            }
        });
        let mut wanted = vars.clone();
        wanted.extend(&theirs);
        let pipes = planner.pipes(other, &wanted)?;
        let build_outputs = vars.iter().map(|var| (*var, *var)).collect();
        let sink = Sink::Table {
            keys: theirs,
            vars: vars.into_iter().collect(),
            marks: false,
        };
        let stage = planner.stage(pipes, sink);
        let mut wanted = need.clone();
        wanted.extend(&mine);
        wanted.extend(read.iter().filter(|var| input.gives(**var)));
        let pipes = planner.pipes(input, &wanted)?;
        let kind = if anti { JoinKind::Anti } else { JoinKind::Semi };
        let probe = Probe {
            stage,
            keys: mine,
            kind,
            marks: false,
            residual,
            build_outputs,
            row: None,
        };
        return Ok(then(pipes, Operator::Probe(probe)));
    }
    let mut wanted: Required = need.clone();
    wanted.extend(read.iter().filter(|var| input.gives(**var)));
    let vars: Vec<Var> = wanted.iter().copied().collect();
    let build_outputs = vars
        .iter()
        .filter(|var| read.contains(var))
        .map(|var| (*var, *var))
        .collect();
    wanted.extend(&mine);
    let pipes = planner.pipes(input, &wanted)?;
    let stage = planner.stage(
        pipes,
        Sink::Table {
            keys: mine,
            vars,
            marks: true,
        },
    );
    let mut other = other;
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
        kind: JoinKind::MarkOnly,
        marks: true,
        residual,
        build_outputs,
        row: None,
    };
    let pipes = then(planner.pipes(other, &wanted)?, Operator::Probe(probe));
    mark(planner, pipes);
    Ok(vec![pipe(Source::Marked {
        stage,
        marked: !anti,
        row: None,
    })])
}

/// A stage with a table by `keys` of the rows that the table of `stage` has.
fn keys_of(planner: &mut Planner<'_>, stage: usize, keys: Vec<Var>) -> usize {
    // None is marked yet.
    let rows = pipe(Source::Marked {
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

/// Those of `vars` that are keys of the groups of `rel`.
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

/// A stage of pipelines that only mark rows of a table.
fn mark(planner: &mut Planner<'_>, pipes: Vec<Pipeline>) -> usize {
    let sink = Sink::Rows {
        vars: vec![],
        order: vec![],
        skip: 0,
        fetch: None,
    };
    planner.stage(pipes, sink)
}

/// Whether all of `vars` belong to one input of a join somewhere in `rel`, which gives them unchanged.
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

/// Puts `make(part)` in the place of the smallest part of joins in `rel` that gives `vars`.
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

/// Has only the rows of `rel` read whose `vars` stand in the table of `stage`, below the groups that they are keys
/// of; `useful` once such groups were passed. Where there are none, looking up is all that is to be done anyway.
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
