//! First groups: a top-k whose input is an aggregation needs few of its groups. The aggregation is told which, so that keys and
//! results of the others are neither computed nor kept where there are many.

use crate::expr::is_fallible;
use crate::logical::relation::Key;
use crate::physical::program::{FirstGroups, Operator, Pipeline, Program, Sink, Source, Stage};
use crate::vector::value::Var;

/// Most groups for which it is done: of more, too many are computed twice.
const MOST: usize = 4_096;

/// Tells aggregations which of their groups are read.
pub(crate) fn first_groups(program: &mut Program) {
    for reader in 0..program.stages.len() {
        let Some((stage, first)) = read_groups(program, &program.stages[reader]) else {
            continue;
        };
        if let Sink::Fold { first: noted, .. } = &mut program.stages[stage].sink {
            *noted = Some(first);
        }
    }
}

/// The aggregation of which `reader` reads the first groups only, and which these are.
fn read_groups(program: &Program, reader: &Stage) -> Option<(usize, FirstGroups)> {
    let (order, Some(groups)) = reader.sink.sorts() else {
        return None;
    };
    let [pipeline] = &reader.pipelines[..] else {
        return None;
    };
    let Source::Rows(stage) = pipeline.source else {
        return None;
    };
    if order.is_empty() || groups > MOST || !is_read_once(program, stage) {
        return None;
    }
    let order = order.iter().map(|key| {
        Some(Key {
            var: before(pipeline, key.var)?,
            ..*key
        })
    });
    let order: Vec<Key> = order.collect::<Option<_>>()?;
    let Sink::Fold { keys, folds, .. } = &program.stages[stage].sink else {
        return None;
    };
    let is_made =
        |key: &Key| keys.contains(&key.var) || folds.iter().any(|fold| fold.var == key.var);
    let first = FirstGroups { order, groups };
    first.order.iter().all(is_made).then_some((stage, first))
}

/// Whether one pipeline reads the rows of a stage, and nothing else does.
fn is_read_once(program: &Program, stage: usize) -> bool {
    let pipelines = program.stages.iter().flat_map(|other| &other.pipelines);
    let reads =
        pipelines.filter(|pipeline| matches!(pipeline.source, Source::Rows(own) if own == stage));
    let is_parameter = program.parameters.iter().any(|(own, _)| *own == stage);
    reads.count() == 1 && !is_parameter && program.answer != stage
}

/// The vector of the source that `var` is; `None` if it is computed, or the pipeline does more than to compute what cannot fail: for
/// a group that is not among the first it would fail no more.
fn before(pipeline: &Pipeline, var: Var) -> Option<Var> {
    let mut var = var;
    for operator in pipeline.operators.iter().rev() {
        match operator {
            Operator::Alias(pairs) => {
                let made = pairs.iter().find(|(_, to)| *to == var);
                var = made.map_or(var, |(from, _)| *from);
            }
            Operator::Map(made, e) if *made != var && !is_fallible(e) => {}
            _ => return None,
        }
    }
    Some(var)
}
