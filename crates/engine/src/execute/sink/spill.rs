//! Spilling a worker's own rows or groups.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::execute::sink::{AggregateSink, RowSink, SinkFactory};
use crate::memory::reservation::SLACK;
use crate::memory::spill::{EXTENT_ROWS, Extent, Lists, RUN_ROWS};
use crate::operators::aggregate::grouping::Grouping;
use crate::operators::sort::order;
use crate::physical::program::Sink;
use crate::vector::builder::RowsBuilder;
use crate::vector::radix::{PARTITIONS, RadixPartitioner, rows_of};
use crate::vector::rows::Materialized;
use crate::vector::value::{Kind, Type, Var, Vector};

impl SinkFactory {
    /// Reserves memory for the collected rows, or spills them.
    pub(crate) fn reserve_rows(&self, row_sink: &mut RowSink) -> Result<()> {
        let rows = &mut row_sink.rows;
        // Rows that will be sorted need memory twice while they are sorted, and those of a join table while they are concatenated.
        let is_copied = matches!(self.sink, Sink::Table { .. }) || !self.sink.sorts().0.is_empty();
        let wanted = rows.memory() * if is_copied && self.may_spill { 2 } else { 1 };
        let over_limit = rows.rows > self.room;
        let kept = rows
            .held
            .cover(&self.budget, wanted, "rows of a join or a sort");
        let few = kept.is_ok() || rows.memory() <= SLACK;
        match kept {
            Ok(()) | Err(Error::Memory { .. }) if self.may_spill => {
                if few && !over_limit {
                    Ok(())
                } else {
                    self.spill_rows(row_sink)
                }
            }
            kept => kept,
        }
    }

    /// Spills all collected rows.
    pub(crate) fn spill_rows(&self, row_sink: &mut RowSink) -> Result<()> {
        let held = std::mem::take(&mut row_sink.rows.held);
        let full = std::mem::replace(&mut row_sink.rows, RowsBuilder::new(&self.vars));
        row_sink.rows.held = held;
        let (columns, rows) = RowsBuilder::concat(vec![full])?;
        self.spill_as_needed(&Materialized { columns, rows }, &mut row_sink.spilled)
    }

    /// Spills `stored` in the form the sink needs: partitioned by key for a join table, as a sorted run for a sort or a
    /// window, otherwise as it is.
    pub(crate) fn spill_as_needed(&self, stored: &Materialized, lists: &mut Lists) -> Result<()> {
        if stored.rows == 0 {
            return Ok(());
        }
        match (&self.sink, self.sink.sorts()) {
            (Sink::Table { keys, .. }, _) => self.spill_partitions(stored, keys, lists),
            (_, (keys, end)) if !keys.is_empty() => {
                let picks = order(stored, &self.types, keys, end)?;
                let run = picks.chunks(RUN_ROWS);
                let run = run.map(|some| self.spill_chunk(stored, some));
                lists.push(run.collect::<Result<_>>()?);
                Ok(())
            }
            _ => {
                let all: Vec<u32> = (0..stored.rows as u32).collect();
                lists.resize_with(1, Vec::new);
                for some in all.chunks(EXTENT_ROWS) {
                    lists[0].push(self.spill_chunk(stored, some)?);
                }
                Ok(())
            }
        }
    }

    /// The vectors of the stage's result, ascending.
    pub(crate) fn result_vars(&self) -> Vec<(Var, Kind)> {
        let all: BTreeSet<Var> = match &self.sink {
            Sink::Table { .. } | Sink::Rows { .. } => return self.vars.clone(),
            Sink::Fold { keys, folds, .. } => {
                let results = folds.iter().map(|fold| fold.var);
                keys.iter().copied().chain(results).collect()
            }
            Sink::Window { kept, parts, .. } => {
                let functions = parts.iter().flat_map(|part| &part.functions);
                let results = functions.map(|fold| fold.var);
                kept.iter().copied().chain(results).collect()
            }
        };
        let kinds = all.into_iter().map(|var| (var, self.types[var].kind));
        kinds.collect()
    }

    fn spill_chunk(&self, stored: &Materialized, rows: &[u32]) -> Result<Extent> {
        let columns = stored.columns.values().map(|vector| vector.at(rows));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        self.spill.write(columns.iter(), rows.len())
    }

    fn spill_partitions(
        &self,
        stored: &Materialized,
        keys: &[Var],
        lists: &mut Lists,
    ) -> Result<()> {
        lists.resize_with(PARTITIONS, Vec::new);
        let parts = if keys.is_empty() {
            (0..stored.rows)
                .map(|row| (row * PARTITIONS / stored.rows) as u8)
                .collect()
        } else {
            let vectors: Vec<&Vector> = keys
                .iter()
                .filter_map(|key| stored.columns.get(key))
                .collect();
            let types: Vec<&Type> = keys.iter().map(|key| &self.types[*key]).collect();
            RadixPartitioner::default().of(&vectors, &types, stored.rows, 0)?
        };
        for (list, rows) in lists.iter_mut().zip(rows_of(&parts)) {
            for some in rows.chunks(EXTENT_ROWS) {
                list.push(self.spill_chunk(stored, some)?);
            }
        }
        Ok(())
    }

    /// Reserves memory for the groups, or spills them.
    pub(crate) fn reserve_groups(&self, aggregate: &mut AggregateSink, level: u32) -> Result<()> {
        let groups = &mut aggregate.groups;
        let over_limit = groups.group_count() > self.room;
        let what = "an aggregate";
        let kept = groups.held.cover(&self.budget, groups.memory(), what);
        let may = self.may_spill && !groups.is_by_row();
        let few = kept.is_ok() || groups.memory() <= SLACK;
        match kept {
            Ok(()) | Err(Error::Memory { .. }) if may && few && !over_limit => Ok(()),
            Ok(()) | Err(Error::Memory { .. }) if may => {
                self.spill_groups(aggregate, level)?;
                // What an empty set of groups takes must fit.
                let groups = &mut aggregate.groups;
                let bytes = groups.memory().saturating_sub(SLACK);
                groups.held.cover(&self.budget, bytes, what)
            }
            kept => kept,
        }
    }

    /// Spills all groups, partitioned by key at `level`.
    pub(crate) fn spill_groups(&self, aggregate: &mut AggregateSink, level: u32) -> Result<()> {
        let mut fresh = self.groups_for(aggregate.groups.group_count())?;
        fresh.held = std::mem::take(&mut aggregate.groups.held);
        let mut full = std::mem::replace(&mut aggregate.groups, fresh);
        let types = self.key_types();
        let types: Vec<&Type> = types.iter().collect();
        let spilled = &mut aggregate.spilled;
        spilled.states.resize_with(PARTITIONS, Vec::new);
        full.each_chunk(|some| self.spill_states(some, &types, level, &mut spilled.states))?;
        for (place, state) in full.states().iter().enumerate() {
            state.each_value(&mut |groups, values| {
                let lists = spilled.values.entry(place).or_default();
                self.spill_values((&full, place), (groups, values), level, lists)
            })?;
        }
        Ok(())
    }

    /// Spills the keys of groups and what was accumulated of them, partitioned by key, which is of `types`, at `level`.
    fn spill_states(
        &self,
        full: &Grouping,
        types: &[&Type],
        level: u32,
        lists: &mut Lists,
    ) -> Result<()> {
        let (groups, places) = full.entries();
        let chunks = groups.chunks(EXTENT_ROWS).zip(places.chunks(EXTENT_ROWS));
        for (some, places) in chunks {
            let keys = full.keys(some)?;
            let states = full.states().iter().map(|state| state.state(places));
            let states = states.collect::<Result<Vec<_>>>()?;
            let columns: Vec<&Vector> = keys.iter().chain(states.iter().flatten()).collect();
            let own: Vec<&Vector> = keys.iter().collect();
            let parts = RadixPartitioner::default().of(&own, types, some.len(), level)?;
            self.spill_columns(&columns, &parts, lists)?;
        }
        Ok(())
    }

    /// Spills values of accumulator `place` of `full`, each of its group, partitioned at `level`.
    fn spill_values(
        &self,
        (full, place): (&Grouping, usize),
        (groups, values): (&[u32], &Vector),
        level: u32,
        lists: &mut Lists,
    ) -> Result<()> {
        let types = self.key_types();
        let types: Vec<&Type> = types.iter().collect();
        lists.resize_with(PARTITIONS, Vec::new);
        let all: Vec<u32> = (0..groups.len() as u32).collect();
        for some in all.chunks(EXTENT_ROWS) {
            let groups: Vec<u32> = some.iter().map(|row| groups[*row as usize]).collect();
            let (keys, values) = (full.keys(&groups)?, values.at(some)?);
            let columns: Vec<&Vector> = keys.iter().chain([&values]).collect();
            let parts = if full.is_single_group() {
                let ty = self.argument(full, place)?;
                RadixPartitioner::default().of(&[&values], &[ty], some.len(), level)?
            } else {
                let own: Vec<&Vector> = keys.iter().collect();
                RadixPartitioner::default().of(&own, &types, some.len(), level)?
            };
            self.spill_columns(&columns, &parts, lists)?;
        }
        Ok(())
    }

    fn spill_columns(&self, columns: &[&Vector], parts: &[u8], lists: &mut Lists) -> Result<()> {
        for (list, rows) in lists.iter_mut().zip(rows_of(parts)) {
            if !rows.is_empty() {
                let own = columns.iter().map(|column| column.at(&rows));
                let own = own.collect::<Result<Vec<_>>>()?;
                list.push(self.spill.write(own.iter(), rows.len())?);
            }
        }
        Ok(())
    }

    /// The types of the grouping keys.
    pub(crate) fn key_types(&self) -> Vec<Type> {
        match &self.sink {
            Sink::Fold { keys, .. } => keys.iter().map(|key| self.types[*key].clone()).collect(),
            _ => vec![],
        }
    }

    /// The argument type of accumulator number `place` of `groups`.
    pub(crate) fn argument(&self, groups: &Grouping, place: usize) -> Result<&Type> {
        let argument = groups.argument(place).map(|var| &self.types[var]);
        argument.ok_or_else(|| Error::internal("a distinct aggregate without argument"))
    }
}
