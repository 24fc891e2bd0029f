//! Outer joins: rows without a partner stay, with NULLs in its place.

use super::expected;
use crate::error::Result;
use crate::expr::{Expr, Var};
use crate::plan::{How, Need, Pipe, Planner, Probe, Sink, Source, Step, pipe, then};
use crate::rel::Rel;

/// Pipelines of a left outer join: a table of the left rows, whose partners mark them; those without a mark follow.
pub(crate) fn left(
    planner: &mut Planner<'_>,
    left: Rel,
    right: Rel,
    equal: &[(Var, Var)],
    residual: Vec<Expr>,
    outer: Vec<(Var, Var)>,
    need: &Need,
) -> Result<Vec<Pipe>> {
    let (mine, theirs): (Vec<Var>, Vec<Var>) = equal.iter().copied().unzip();
    let outer: Vec<(Var, Var)> = outer
        .into_iter()
        .filter(|(_, var)| need.contains(var))
        .collect();
    let nulls: Vec<Var> = outer.iter().map(|(_, var)| *var).collect();
    let mut read: Need = need.clone();
    residual.iter().for_each(|e| {
        e.each_var(&mut |var| {
            read.insert(var);
        })
    });
    let mut ours: Need = read
        .iter()
        .copied()
        .filter(|var| left.gives(*var))
        .collect();
    let mut others: Need = read
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
            how: How::Left,
            residual,
            gives: outer,
            row: None,
        };
        return Ok(then(pipes, Step::Probe(probe)));
    }
    let vars: Vec<Var> = ours.iter().copied().collect();
    let gives = vars.iter().map(|var| (*var, *var)).collect();
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
        how: How::InnerMark,
        residual,
        gives,
        row: None,
    };
    let mut pipes = then(planner.pipes(right, &others)?, Step::Probe(probe));
    pipes = then(pipes, Step::Alias(outer));
    pipes.push(without(stage, vec![Step::Nulls(nulls)]));
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
    need: &Need,
) -> Result<Vec<Pipe>> {
    let (mine, theirs): (Vec<Var>, Vec<Var>) = equal.iter().copied().unzip();
    let wanted = outer.into_iter().filter(|(_, var)| need.contains(var));
    let (lefts, rights): (Vec<_>, Vec<_>) = wanted.partition(|(from, _)| left.gives(*from));
    let read: Need = residual.iter().flat_map(Expr::vars).collect();
    let side = |rel: &Rel, pairs: &[(Var, Var)]| -> Need {
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
    let gives = lefts
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
        how: How::LeftMark,
        residual,
        gives,
        row: None,
    };
    let mut pipes = then(planner.pipes(right, &others)?, Step::Probe(probe));
    let nulls = rights.iter().map(|(_, var)| *var).collect();
    pipes = then(pipes, Step::Alias(rights));
    pipes.push(without(stage, vec![Step::Alias(lefts), Step::Nulls(nulls)]));
    Ok(pipes)
}

/// The rows of the table of `stage` that nobody marked.
fn without(stage: usize, steps: Vec<Step>) -> Pipe {
    let mut rest = pipe(Source::Marked {
        stage,
        marked: false,
        row: None,
    });
    rest.steps = steps;
    rest
}
