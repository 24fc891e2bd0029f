//! Groups that are the rows of a table which is looked up anyway: their numbers are those of its rows.

use crate::physical::planner::Planner;
use crate::physical::program::{GroupJoin, Operator, Pipeline, Probe, Sink, Source};
use crate::vector::value::Var;

impl Planner<'_> {
    /// Whether the groups of `keys` are rows of a table that all `pipes` look up (or come from), directly or in
    /// the making of a table that they look up.
    pub(crate) fn group_join(&mut self, pipes: &mut [Pipeline], keys: &[Var]) -> Option<GroupJoin> {
        let mut candidates = Vec::new();
        self.tables_of(pipes.first()?, &mut candidates);
        let (stage, from) = candidates
            .into_iter()
            .find_map(|stage| Some((stage, self.keys_in(stage, pipes, keys)?)))?;
        let ty = crate::vector::value::Type::of(&arrow::datatypes::DataType::UInt32, false)?;
        let row = self.query.add("row", ty);
        self.lead(pipes, stage, row);
        if let Sink::Table { vars, .. } = &mut self.stages[stage].sink {
            let missing: Vec<Var> = from.iter().copied().filter(|v| !vars.contains(v)).collect();
            vars.extend(missing);
        }
        Some(GroupJoin { stage, row, from })
    }

    /// The tables that `pipe` looks up, each before those that were looked up to make it.
    fn tables_of(&self, pipe: &Pipeline, into: &mut Vec<usize>) {
        for p in pipe.steps.iter().filter_map(Operator::joining) {
            into.push(p.stage);
            if let Some(pipe) = self.stages[p.stage].pipes.first() {
                self.tables_of(pipe, into);
            }
        }
        if let Source::Marked { stage, .. } = pipe.source {
            into.push(stage);
        }
    }

    /// For each of `keys` the vector of `stage`'s table that holds it, if every pipe leads through that table and
    /// the keys contain the table's own.
    fn keys_in(&self, stage: usize, pipes: &[Pipeline], keys: &[Var]) -> Option<Vec<Var>> {
        let Sink::Table {
            keys: own, vars, ..
        } = &self.stages[stage].sink
        else {
            return None;
        };
        if own.is_empty() || pipes.is_empty() {
            return None;
        }
        let mut result: Option<Vec<Var>> = None;
        for pipe in pipes {
            let probe = self.path(pipe, stage)?;
            let source = |key: Var| {
                if vars.contains(&key) || own.contains(&key) {
                    return Some(key);
                }
                let place = probe?.keys.iter().position(|k| *k == key)?;
                Some(own[place])
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

    /// The probe through which `pipe` gets to `stage`'s table, `Some(None)` if it starts there, `None` if it does
    /// not lead there.
    fn path<'s>(&'s self, pipe: &'s Pipeline, stage: usize) -> Option<Option<&'s Probe>> {
        if matches!(pipe.source, Source::Marked { stage: other, .. } if other == stage) {
            return Some(None);
        }
        for p in pipe.steps.iter().filter_map(Operator::joining) {
            if p.stage == stage {
                return Some(Some(p));
            }
            let below = &self.stages[p.stage].pipes;
            let paths: Option<Vec<_>> = below.iter().map(|pipe| self.path(pipe, stage)).collect();
            if let Some(found) = paths.and_then(|paths| paths.into_iter().next()) {
                return Some(found);
            }
        }
        None
    }

    /// Has `pipes` give the row numbers of `stage`'s table as `row`.
    fn lead(&mut self, pipes: &mut [Pipeline], stage: usize, row: Var) {
        for pipe in pipes {
            if let Source::Marked {
                stage: other,
                row: wanted,
                ..
            } = &mut pipe.source
                && *other == stage
            {
                *wanted = Some(row);
                continue;
            }
            for p in pipe.steps.iter_mut().filter_map(Operator::joining_mut) {
                if p.stage == stage {
                    p.row = Some(row);
                    break;
                }
                let leads = |pipe: &Pipeline| self.path(pipe, stage).is_some();
                if !self.stages[p.stage].pipes.iter().all(leads) {
                    continue;
                }
                let mut below = std::mem::take(&mut self.stages[p.stage].pipes);
                self.lead(&mut below, stage, row);
                self.stages[p.stage].pipes = below;
                if let Sink::Table { vars, .. } = &mut self.stages[p.stage].sink {
                    vars.push(row);
                }
                p.build_outputs.push((row, row));
                break;
            }
        }
    }
}
