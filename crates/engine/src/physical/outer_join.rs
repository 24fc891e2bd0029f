//! Outer joins: rows without a partner stay, with NULLs in its place.

use crate::error::Result;
use crate::expr::Expr;
use crate::logical::relation::Rel;
use crate::physical::planner::Planner;
use crate::physical::program::{
    JoinKind, Operator, Pipeline, Probe, Required, Sink, Source, pipe, then,
};
use crate::physical::statistics::expected;
use crate::vector::value::Var;

/// Pipelines of a left outer join: a table of the left rows, whose partners mark them; those without a mark follow.
pub(crate) fn left(
    planner: &mut Planner<'_>,
    left: Rel,
    right: Rel,
    equal: &[(Var, Var)],
    residual: Vec<Expr>,
    outer: Vec<(Var, Var)>,
    need: &Required,
) -> Result<Vec<Pipeline>> {
    let (mine, theirs): (Vec<Var>, Vec<Var>) = equal.iter().copied().unzip();
    let outer: Vec<(Var, Var)> = outer
        .into_iter()
        .filter(|(_, var)| need.contains(var))
        .collect();
    let nulls: Vec<Var> = outer.iter().map(|(_, var)| *var).collect();
    let mut read: Required = need.clone();
    residual.iter().for_each(|e| {
        e.each_var(&mut |var| {
            read.insert(var);
        })
    });
    let mut ours: Required = read
        .iter()
        .copied()
        .filter(|var| left.gives(*var))
        .collect();
    let mut others: Required = read
        .iter()
        .copied()
        .filter(|var| right.gives(*var))
        .collect();
    others.extend(outer.iter().map(|(from, _)| *from));
    if residual.is_empty() && expected(&right).0 <= expected(&left).0 {
        let vars: Vec<Var> = outer.iter().map(|(from, _)| *from).collect();
        others.extend(&theirs);
        let pipes = planner.pipes(right, &others)?;
        let stage = planner.stage(
            pipes,
            Sink::Table {
                keys: theirs,
                vars,
                marks: false,
            },
        );
        ours.extend(&mine);
        let pipes = planner.pipes(left, &ours)?;
        let probe = Probe {
            stage,
            keys: mine,
            kind: JoinKind::Outer,
            marks: false,
            residual,
            build_outputs: outer,
            row: None,
        };
        return Ok(then(pipes, Operator::Probe(probe)));
    }
    let vars: Vec<Var> = ours.iter().copied().collect();
    let build_outputs = vars.iter().map(|var| (*var, *var)).collect();
    ours.extend(&mine);
    let pipes = planner.pipes(left, &ours)?;
    let stage = planner.stage(
        pipes,
        Sink::Table {
            keys: mine,
            vars,
            marks: true,
        },
    );
    others.extend(&theirs);
    let probe = Probe {
        stage,
        keys: theirs,
        kind: JoinKind::Inner,
        marks: true,
        residual,
        build_outputs,
        row: None,
    };
    let mut pipes = then(planner.pipes(right, &others)?, Operator::Probe(probe));
    pipes = then(pipes, Operator::Alias(outer));
    pipes.push(without(stage, vec![Operator::Nulls(nulls)]));
    Ok(pipes)
}

/// Pipelines of a full outer join: a table of the left rows, in which the right rows mark their partners and stay
/// without; the left rows without a mark follow.
pub(crate) fn full(
    planner: &mut Planner<'_>,
    left: Rel,
    right: Rel,
    equal: &[(Var, Var)],
    residual: Vec<Expr>,
    outer: Vec<(Var, Var)>,
    need: &Required,
) -> Result<Vec<Pipeline>> {
    let (mine, theirs): (Vec<Var>, Vec<Var>) = equal.iter().copied().unzip();
    let wanted = outer.into_iter().filter(|(_, var)| need.contains(var));
    let (lefts, rights): (Vec<_>, Vec<_>) = wanted.partition(|(from, _)| left.gives(*from));
    let read: Required = residual.iter().flat_map(Expr::vars).collect();
    let side = |rel: &Rel, pairs: &[(Var, Var)]| -> Required {
        let named = pairs.iter().map(|(from, _)| *from);
        named
            .chain(read.iter().copied().filter(|var| rel.gives(*var)))
            .collect()
    };
    let mut ours = side(&left, &lefts);
    let mut others = side(&right, &rights);
    let vars: Vec<Var> = ours.iter().copied().collect();
    // Those that only the residual reads keep their names.
    let kept = vars.iter().filter(|var| read.contains(var));
    let build_outputs = lefts
        .iter()
        .copied()
        .chain(kept.map(|var| (*var, *var)))
        .collect();
    ours.extend(&mine);
    let pipes = planner.pipes(left, &ours)?;
    let sink = Sink::Table {
        keys: mine,
        vars,
        marks: true,
    };
    let stage = planner.stage(pipes, sink);
    others.extend(&theirs);
    let probe = Probe {
        stage,
        keys: theirs,
        kind: JoinKind::Outer,
        marks: true,
        residual,
        build_outputs,
        row: None,
    };
    let mut pipes = then(planner.pipes(right, &others)?, Operator::Probe(probe));
    let nulls = rights.iter().map(|(_, var)| *var).collect();
    pipes = then(pipes, Operator::Alias(rights));
    pipes.push(without(
        stage,
        vec![Operator::Alias(lefts), Operator::Nulls(nulls)],
    ));
    Ok(pipes)
}

/// The rows of the table of `stage` that nobody marked.
fn without(stage: usize, steps: Vec<Operator>) -> Pipeline {
    let mut rest = pipe(Source::Marked {
        stage,
        marked: false,
        row: None,
    });
    rest.steps = steps;
    rest
}
