//! Outer joins: rows without a match are kept, with NULLs in place of the match.

use algebra::filter::Op as Compare;

use crate::error::Result;
use crate::expr::Expr;
use crate::logical::relation::{AsOf, Key, Query, Rel};
use crate::physical::band::Band;
use crate::physical::nearest::Nearest;
use crate::physical::planner::Planner;
use crate::physical::program::{
    JoinKind, Operator, Pipeline, Probe, Required, Sink, Source, pipeline, then,
};
use crate::physical::statistics::expected;
use crate::vector::value::Var;

/// Plans a left outer join. If the right side is the smaller one and there are no further predicates, the left side
/// probes a join table of the right side. Otherwise the left side is the build side: matches of the right side mark
/// its rows, and a second pipeline adds those without a mark.
pub(crate) fn left(
    planner: &mut Planner<'_>,
    left: Rel,
    right: Rel,
    equal: &[(Var, Var)],
    residual: Vec<Expr>,
    outer: Vec<(Var, Var)>,
    required: &Required,
) -> Result<Vec<Pipeline>> {
    let (mine, theirs): (Vec<Var>, Vec<Var>) = equal.iter().copied().unzip();
    let outer: Vec<(Var, Var)> = outer
        .into_iter()
        .filter(|(_, var)| required.contains(var))
        .collect();
    let nulls: Vec<Var> = outer.iter().map(|(_, var)| *var).collect();
    let mut read: Required = required.clone();
    for e in &residual {
        read.extend(e.vars());
    }
    let given = |rel: &Rel| read.iter().copied().filter(|var| rel.gives(*var)).collect();
    let (mut ours, mut others): (Required, Required) = (given(&left), given(&right));
    others.extend(outer.iter().map(|(from, _)| *from));
    if residual.is_empty() && expected(planner.query, &right).0 <= expected(planner.query, &left).0
    {
        let vars: Vec<Var> = outer.iter().map(|(from, _)| *from).collect();
        others.extend(&theirs);
        let pipelines = planner.pipelines(right, &others)?;
        let stage = planner.stage(
            pipelines,
            Sink::Table {
                keys: theirs,
                vars,
                marks: false,
            },
        );
        ours.extend(&mine);
        let pipelines = planner.pipelines(left, &ours)?;
        let probe = Probe {
            stage,
            keys: mine,
            band: None,
            nearest: None,
            kind: JoinKind::Outer,
            marks: false,
            residual,
            build_outputs: outer,
            row: None,
        };
        return Ok(then(pipelines, Operator::Probe(probe)));
    }
    let vars: Vec<Var> = ours.iter().copied().collect();
    let band = Band::of(&residual, |var| vars.contains(&var));
    let build_outputs = vars.iter().map(|var| (*var, *var)).collect();
    ours.extend(&mine);
    let pipelines = planner.pipelines(left, &ours)?;
    let stage = planner.stage(
        pipelines,
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
        band,
        nearest: None,
        kind: JoinKind::Inner,
        marks: true,
        residual,
        build_outputs,
        row: None,
    };
    let mut pipelines = then(planner.pipelines(right, &others)?, Operator::Probe(probe));
    pipelines = then(pipelines, Operator::Alias(outer));
    pipelines.push(without(stage, vec![Operator::Nulls(nulls)]));
    Ok(pipelines)
}

/// Makes left outer joins among the `inputs` of an inner join inner ones where an equality of that join reads a vector of their right
/// side: a row without a match has NULL there, which equals nothing.
pub(crate) fn drop_unmatched(
    inputs: Vec<Rel>,
    equal: &mut Vec<(Var, Var)>,
    residual: &mut Vec<Expr>,
    query: &Query,
) -> Vec<Rel> {
    let mut all = Vec::with_capacity(inputs.len());
    let mut open = inputs;
    while let Some(rel) = open.pop() {
        match rel {
            Rel::Left {
                left,
                right,
                equal: pairs,
                residual: conditions,
                outer,
            } if outer
                .iter()
                .any(|(_, var)| equal.iter().any(|(a, b)| a == var || b == var)) =>
            {
                equal.extend(pairs);
                residual.extend(conditions);
                let named = outer.into_iter().map(|(from, var)| (var, query.expr(from)));
                open.push(*left);
                open.push(Rel::Map {
                    input: right,
                    exprs: named.collect(),
                });
            }
            rel => all.push(rel),
        }
    }
    all.reverse();
    all
}

/// Plans a full outer join. The left side is the build side: the right side probes it, marks the matching rows, and
/// keeps its own rows without a match; a second pipeline adds the left rows without a mark.
pub(crate) fn full(
    planner: &mut Planner<'_>,
    left: Rel,
    right: Rel,
    equal: &[(Var, Var)],
    residual: Vec<Expr>,
    outer: Vec<(Var, Var)>,
    required: &Required,
) -> Result<Vec<Pipeline>> {
    let (mine, theirs): (Vec<Var>, Vec<Var>) = equal.iter().copied().unzip();
    let wanted = outer.into_iter().filter(|(_, var)| required.contains(var));
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
    // Vectors that only the extra predicates read keep their names.
    let kept = vars.iter().filter(|var| read.contains(var));
    let build_outputs = lefts
        .iter()
        .copied()
        .chain(kept.map(|var| (*var, *var)))
        .collect();
    ours.extend(&mine);
    let pipelines = planner.pipelines(left, &ours)?;
    let sink = Sink::Table {
        keys: mine,
        vars,
        marks: true,
    };
    let stage = planner.stage(pipelines, sink);
    others.extend(&theirs);
    let probe = Probe {
        stage,
        keys: theirs,
        band: None,
        nearest: None,
        kind: JoinKind::Outer,
        marks: true,
        residual,
        build_outputs,
        row: None,
    };
    let mut pipelines = then(planner.pipelines(right, &others)?, Operator::Probe(probe));
    let nulls = rights.iter().map(|(_, var)| *var).collect();
    pipelines = then(pipelines, Operator::Alias(rights));
    pipelines.push(without(
        stage,
        vec![Operator::Alias(lefts), Operator::Nulls(nulls)],
    ));
    Ok(pipelines)
}

/// Plans an as-of join: the right side is the build side, which is put in order, and the left side probes it.
pub(crate) fn as_of(
    planner: &mut Planner<'_>,
    join: AsOf,
    required: &Required,
) -> Result<Vec<Pipeline>> {
    let (mine, theirs): (Vec<Var>, Vec<Var>) = join.equal.iter().copied().unzip();
    let given = |var: &Var| join.left.gives(*var);
    let mut ours: Required = required.iter().copied().filter(given).collect();
    ours.extend(&mine);
    ours.insert(join.at);
    ours.extend(join.bounds.iter().map(|(_, var)| *var));
    let mut outer = join.outer;
    outer.retain(|(_, var)| required.contains(var));
    let mut vars: Required = outer.iter().map(|(from, _)| *from).collect();
    vars.insert(join.of);
    vars.extend(join.ties.iter().map(|key| key.var));
    let mut others = vars.clone();
    others.extend(&theirs);
    let pipelines = planner.pipelines(*join.right, &others)?;
    let sink = Sink::Table {
        keys: theirs,
        vars: vars.into_iter().collect(),
        marks: false,
    };
    let stage = planner.stage(pipelines, sink);
    let is_last = matches!(join.op, Compare::Lt | Compare::Le);
    let turned = |key: Key| Key {
        descending: key.descending != is_last,
        nulls_first: key.nulls_first != is_last,
        ..key
    };
    let nearest = Nearest {
        of: join.of,
        op: join.op,
        at: join.at,
        bounds: join.bounds,
        ties: join.ties.into_iter().map(turned).collect(),
    };
    let kind = if join.keeps {
        JoinKind::Outer
    } else {
        JoinKind::Inner
    };
    let probe = Probe {
        stage,
        keys: mine,
        band: None,
        nearest: Some(nearest),
        kind,
        marks: false,
        residual: vec![],
        build_outputs: outer,
        row: None,
    };
    let pipelines = planner.pipelines(*join.left, &ours)?;
    Ok(then(pipelines, Operator::Probe(probe)))
}

/// A pipeline of the rows of `stage`'s join table that no probe has marked.
fn without(stage: usize, operators: Vec<Operator>) -> Pipeline {
    let mut rest = pipeline(Source::Marked {
        stage,
        marked: false,
        row: None,
    });
    rest.operators = operators;
    rest
}
