//! Group joins: an aggregate whose groups are the rows of a join table that its input probes anyway. Row numbers of
//! the join table serve as group numbers.

use crate::physical::planner::Planner;
use crate::physical::program::{GroupJoin, Operator, Pipeline, Probe, Sink, Source};
use crate::vector::value::Var;

impl Planner<'_> {
    /// The group join of an aggregate by `keys`, if all `pipelines` reach one join table, by probing it, by reading its
    /// marked rows, or through a join table that was built by probing it, and each group is one of its rows.
    pub(crate) fn group_join(
        &mut self,
        pipelines: &mut [Pipeline],
        keys: &[Var],
    ) -> Option<GroupJoin> {
        let mut candidates = Vec::new();
        self.tables_of(pipelines.first()?, &mut candidates);
        let (stage, from) = candidates
            .into_iter()
            .find_map(|stage| Some((stage, self.keys_in(stage, pipelines, keys)?)))?;
        let ty = crate::vector::value::Type::of(&arrow::datatypes::DataType::UInt32, false)?;
        let row = self.query.add("row", ty);
        self.output_row_numbers(pipelines, stage, row);
        if let Sink::Table { vars, .. } = &mut self.stages[stage].sink {
            let missing: Vec<Var> = from.iter().copied().filter(|v| !vars.contains(v)).collect();
            vars.extend(missing);
        }
        Some(GroupJoin { stage, row, from })
    }

    /// Collects the join tables that `pipeline` reaches, each before those that were probed to build it.
    fn tables_of(&self, pipeline: &Pipeline, into: &mut Vec<usize>) {
        for p in pipeline.operators.iter().filter_map(Operator::joining) {
            into.push(p.stage);
            if let Some(pipeline) = self.stages[p.stage].pipelines.first() {
                self.tables_of(pipeline, into);
            }
        }
        if let Source::Marked { stage, .. } = pipeline.source {
            into.push(stage);
        }
    }

    /// For each of `keys`, the vector of `stage`'s join table that holds it. `None` unless every pipeline reaches
    /// that table and `keys` include all keys of the table.
    fn keys_in(&self, stage: usize, pipelines: &[Pipeline], keys: &[Var]) -> Option<Vec<Var>> {
        let Sink::Table {
            keys: own, vars, ..
        } = &self.stages[stage].sink
        else {
            return None;
        };
        if own.is_empty() || pipelines.is_empty() {
            return None;
        }
        let mut result: Option<Vec<Var>> = None;
        for pipeline in pipelines {
            let probe = self.path(pipeline, stage)?;
            let source = |key: Var| {
                if vars.contains(&key) || own.contains(&key) {
                    return Some(key);
                }
                let place = probe?.keys.iter().position(|k| *k == key)?;
                // Equal texts may be codes of two dictionaries, or of none.
                let alike = self.query.ty(key).represents_as(self.query.ty(own[place]));
                alike.then_some(own[place])
            };
            let from: Option<Vec<Var>> = keys.iter().map(|key| source(*key)).collect();
            let from = from?;
            if !own.iter().all(|key| from.contains(key))
                || result.as_ref().is_some_and(|r| *r != from)
            {
                return None;
            }
            result = Some(from);
        }
        result
    }

    /// The probe by which `pipeline` reaches `stage`'s join table; `Some(None)` if the pipeline reads the table as its
    /// source, `None` if it does not reach it.
    fn path<'s>(&'s self, pipeline: &'s Pipeline, stage: usize) -> Option<Option<&'s Probe>> {
        if matches!(pipeline.source, Source::Marked { stage: other, .. } if other == stage) {
            return Some(None);
        }
        for p in pipeline.operators.iter().filter_map(Operator::joining) {
            if p.stage == stage {
                return Some(Some(p));
            }
            let below = &self.stages[p.stage].pipelines;
            let paths: Option<Vec<_>> = below
                .iter()
                .map(|pipeline| self.path(pipeline, stage))
                .collect();
            if let Some(found) = paths.and_then(|paths| paths.into_iter().next()) {
                return Some(found);
            }
        }
        None
    }

    /// Makes `pipelines` output the row numbers of `stage`'s join table as `row`.
    fn output_row_numbers(&mut self, pipelines: &mut [Pipeline], stage: usize, row: Var) {
        for pipeline in pipelines {
            if let Source::Marked {
                stage: other,
                row: wanted,
                ..
            } = &mut pipeline.source
                && *other == stage
            {
                *wanted = Some(row);
                continue;
            }
            for p in pipeline
                .operators
                .iter_mut()
                .filter_map(Operator::joining_mut)
            {
                if p.stage == stage {
                    p.row = Some(row);
                    break;
                }
                let leads = |pipeline: &Pipeline| self.path(pipeline, stage).is_some();
                if !self.stages[p.stage].pipelines.iter().all(leads) {
                    continue;
                }
                let mut below = std::mem::take(&mut self.stages[p.stage].pipelines);
                self.output_row_numbers(&mut below, stage, row);
                self.stages[p.stage].pipelines = below;
                if let Sink::Table { vars, .. } = &mut self.stages[p.stage].sink {
                    vars.push(row);
                }
                p.build_outputs.push((row, row));
                break;
            }
        }
    }
}
