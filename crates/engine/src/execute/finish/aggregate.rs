//! Finishing an aggregation.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result, missing};
use crate::execute::finish::by_partition::is_by_partition;
use crate::execute::query_state::QueryState;
use crate::execute::sink::{AggregateSink, SinkFactory, SinkState, SpilledGroups};
use crate::logical::relation::Fold;
use crate::memory::reservation::{Reservation, SLACK};
use crate::memory::spill::{EXTENT_ROWS, Extent, numbered};
use crate::operators::aggregate::grouping::Grouping;
use crate::physical::program::{GroupJoin, Sink};
use crate::vector::radix::LAST_LEVEL;
use crate::vector::rows::Materialized;
use crate::vector::value::{Var, Vector};

impl QueryState {
    /// Merges the groups of all workers. The results become the rows of stage `number`.
    pub(crate) async fn finish_aggregate(
        &mut self,
        number: usize,
        factory: &SinkFactory,
        group_join: Option<usize>,
        sinks: Vec<SinkState>,
    ) -> Result<()> {
        let sinks = sinks.into_iter().map(SinkState::aggregate);
        let sinks: Vec<AggregateSink> = sinks.collect::<Result<_>>()?;
        if is_by_partition(&sinks) {
            let groups = sinks.into_iter().map(|sink| sink.groups);
            return self
                .finish_by_partition(number, factory, groups.collect())
                .await;
        }
        let mut sinks = sinks.into_iter();
        let mut all = sinks.next().ok_or_else(missing)?;
        for other in sinks {
            all.spilled.join(other.spilled);
            if all.spilled.is_empty() {
                self.merge(factory, &mut all, other.groups)?
            } else {
                let groups = other.groups;
                let mut other = AggregateSink {
                    groups,
                    spilled: SpilledGroups::default(),
                };
                factory.spill_groups(&mut other, 0)?;
                all.spilled.join(other.spilled);
            }
        }
        let bytes = all.groups.memory();
        // From here on the results are reserved under the stage.
        all.groups.held = Reservation::default();
        let taken = self.take(number, bytes, "an aggregate");
        let few = bytes <= SLACK || taken.is_ok() && !self.is_full();
        let fits =
            few && all.groups.group_count() <= self.room() && self.can_finish(&[&all.groups]);
        if !all.spilled.is_empty() || !fits && factory.may_spill && !all.groups.is_by_row() {
            self.held[number].clear();
            factory.spill_groups(&mut all, 0)?;
            return self.finish_spilled(number, factory, all);
        }
        if !fits {
            taken?;
        }
        let Sink::Fold {
            keys,
            folds,
            group_join: by,
            ..
        } = &factory.sink
        else {
            return Err(missing());
        };
        let stored = self.results_of(all, keys, folds, by.as_ref().zip(group_join))?;
        self.rows[number] = Some(Arc::new(stored));
        Ok(())
    }

    /// Merges another worker's groups, all of which may be new here. Spills them if they do not fit in memory.
    fn merge(
        &self,
        factory: &SinkFactory,
        all: &mut AggregateSink,
        groups: Grouping,
    ) -> Result<()> {
        let mut grown = all.groups.memory();
        if all.groups.grows() {
            grown += groups.memory();
        }
        let held = &mut all.groups.held;
        match held.cover(&self.runtime.budget, grown, "an aggregate") {
            Ok(()) => all.groups.merge(groups),
            Err(Error::Memory { .. }) if factory.may_spill && !groups.is_by_row() => {
                let mut other = AggregateSink {
                    groups,
                    spilled: SpilledGroups::default(),
                };
                factory.spill_groups(&mut other, 0)?;
                all.spilled.join(other.spilled);
                factory.spill_groups(all, 0)
            }
            Err(e) => Err(e),
        }
    }

    /// The keys and results of the groups.
    fn results_of(
        &self,
        all: AggregateSink,
        keys: &[Var],
        folds: &[Fold],
        by: Option<(&GroupJoin, usize)>,
    ) -> Result<Materialized> {
        let mut groups = all.groups;
        groups.tighten()?;
        let types = |var: Var| self.types[var].clone();
        let finished = groups.finish(folds, &types)?;
        let mut columns = BTreeMap::new();
        match (&finished.rows, by) {
            (Some(rows), Some((by, join_table))) => {
                let table = self.join_tables[join_table].as_ref().ok_or_else(missing)?;
                for (key, from) in keys.iter().zip(&by.from) {
                    columns.insert(*key, table.column(*from)?.at(rows)?);
                }
            }
            _ => columns.extend(keys.iter().copied().zip(finished.keys)),
        }
        columns.extend(folds.iter().map(|f| f.var).zip(finished.results));
        Ok(Materialized {
            columns,
            rows: finished.groups,
        })
    }

    /// Finishes spilled groups, partition by partition.
    pub(super) fn finish_spilled(
        &mut self,
        number: usize,
        factory: &SinkFactory,
        all: AggregateSink,
    ) -> Result<()> {
        let AggregateSink { groups, spilled } = all;
        let one = groups.is_single_group();
        drop(groups);
        let mut results = Vec::new();
        if one {
            self.finish_single_group(factory, spilled, &mut results)?
        } else {
            self.finish_partitions(factory, spilled, 0, &mut results)?
        }
        self.note_spilled(number, "groups");
        self.set_spilled(number, factory.result_vars(), results);
        Ok(())
    }

    /// Finishes an aggregation without keys, with its spilled distinct values partition by partition.
    fn finish_single_group(
        &mut self,
        factory: &SinkFactory,
        spilled: SpilledGroups,
        results: &mut Vec<Extent>,
    ) -> Result<()> {
        let mut aggregate = AggregateSink {
            groups: factory.groups()?,
            spilled: SpilledGroups::default(),
        };
        for extent in spilled.states.iter().flatten() {
            self.absorb(factory, &mut aggregate, extent)?;
        }
        for (place, lists) in &spilled.values {
            let all: Vec<&Extent> = lists.iter().flatten().collect();
            if self.selected(factory, &mut aggregate, *place, &all)? {
                continue;
            }
            for list in lists {
                for extent in list {
                    self.absorb_values(factory, &mut aggregate, *place, extent)?;
                }
                aggregate.groups.forget_values();
            }
        }
        self.spill_results(factory, aggregate, results)
    }

    /// Finishes spilled groups, one partition after the other. A partition that does not fit in memory is split
    /// again at the next level.
    fn finish_partitions(
        &mut self,
        factory: &SinkFactory,
        spilled: SpilledGroups,
        level: u32,
        results: &mut Vec<Extent>,
    ) -> Result<()> {
        for part in 0..spilled.states.len() {
            self.stop.check()?;
            if spilled.states[part].is_empty() {
                continue;
            }
            let count = spilled.states[part].iter().map(|extent| extent.rows);
            let mut aggregate = AggregateSink {
                groups: factory.groups_for(count.sum())?,
                spilled: SpilledGroups::default(),
            };
            for extent in &spilled.states[part] {
                self.absorb(factory, &mut aggregate, extent)?;
                self.keep(factory, &mut aggregate, level)?;
            }
            for (place, lists) in &spilled.values {
                let all: Vec<&Extent> = lists[part].iter().collect();
                // A single group cannot be divided.
                let is_last = level == LAST_LEVEL || aggregate.groups.group_count() == 1;
                if is_last && self.selected(factory, &mut aggregate, *place, &all)? {
                    continue;
                }
                for extent in &lists[part] {
                    self.absorb_values(factory, &mut aggregate, *place, extent)?;
                    self.keep(factory, &mut aggregate, level)?;
                }
            }
            let is_last = level == LAST_LEVEL || aggregate.groups.group_count() == 1;
            if aggregate.spilled.is_empty() && (is_last || self.can_finish(&[&aggregate.groups])) {
                self.spill_results(factory, aggregate, results)?;
                continue;
            }
            factory.spill_groups(&mut aggregate, level + 1)?;
            let AggregateSink { groups, spilled } = aggregate;
            drop(groups);
            self.finish_partitions(factory, spilled, level + 1, results)?;
        }
        Ok(())
    }

    /// Whether there is memory to compute the results of partitions of groups, as many at a time as there are workers.
    pub(super) fn can_finish(&self, parts: &[&Grouping]) -> bool {
        let most = parts.iter().map(|groups| groups.memory_to_finish()).max();
        let at_once = self.runtime.workers.threads().min(parts.len());
        let bytes = (most.unwrap_or(0) * at_once) as u64;
        Reservation::take(&self.runtime.budget, bytes, "an aggregate").is_ok()
    }

    /// Finds what is asked of the values `all` of accumulator `place` by passes over them, if they do not fit in memory and that can be
    /// done.
    fn selected(
        &self,
        factory: &SinkFactory,
        aggregate: &mut AggregateSink,
        place: usize,
        all: &[&Extent],
    ) -> Result<bool> {
        let Sink::Fold { folds, .. } = &factory.sink else {
            return Err(missing());
        };
        let groups = &mut aggregate.groups;
        let rows: usize = all.iter().map(|extent| extent.rows).sum();
        // Kept, then sorted by group, and kept once more by the function, unless the values of another one are more.
        let bytes: usize = all.iter().map(|extent| extent.memory).sum();
        let bytes = bytes + groups.memory_to_finish().max(2 * bytes);
        let what = "the values of an aggregate";
        let budget = &self.runtime.budget;
        let fits = || Reservation::take(budget, bytes as u64, what).is_ok();
        let held = groups.held.cover(budget, groups.memory(), what);
        if rows <= factory.room && held.is_ok() && fits() {
            return Ok(false);
        }
        if !groups.select(place, folds) {
            return Ok(false);
        }
        loop {
            for extent in all {
                self.stop.check()?;
                self.absorb_values(factory, aggregate, place, extent)?;
                let groups = &mut aggregate.groups;
                groups.held.cover(budget, groups.memory(), what)?;
            }
            if !aggregate.groups.end_pass(place)? {
                return Ok(true);
            }
        }
    }

    /// Reserves memory for the groups of a partition of `level`, or spills them at the next level.
    fn keep(&self, factory: &SinkFactory, aggregate: &mut AggregateSink, level: u32) -> Result<()> {
        if level < LAST_LEVEL {
            return factory.reserve_groups(aggregate, level + 1);
        }
        let groups = &mut aggregate.groups;
        let bytes = groups.memory();
        let held = &mut groups.held;
        held.cover(&self.runtime.budget, bytes, "one partition of an aggregate")
    }

    fn absorb(
        &self,
        factory: &SinkFactory,
        aggregate: &mut AggregateSink,
        extent: &Extent,
    ) -> Result<()> {
        let keys = factory.key_types();
        let kinds: Vec<_> = aggregate
            .groups
            .states()
            .iter()
            .map(|s| s.kinds())
            .collect();
        let all = keys.iter().map(|ty| ty.kind);
        let all = numbered(all.chain(kinds.iter().flatten().copied()));
        let mut columns = self.spill.read(extent, &all)?.columns.into_values();
        let own: Vec<Vector> = columns.by_ref().take(keys.len()).collect();
        let parts = kinds
            .iter()
            .map(|kinds| columns.by_ref().take(kinds.len()).collect());
        let parts = parts.collect();
        let own: Vec<&Vector> = own.iter().collect();
        aggregate.groups.absorb(&own, parts, extent.rows)
    }

    fn absorb_values(
        &self,
        factory: &SinkFactory,
        aggregate: &mut AggregateSink,
        place: usize,
        extent: &Extent,
    ) -> Result<()> {
        let keys = factory.key_types();
        let all = keys.iter().map(|ty| ty.kind);
        let all = numbered(all.chain([factory.argument(&aggregate.groups, place)?.kind]));
        let mut columns = self.spill.read(extent, &all)?.columns.into_values();
        let own: Vec<Vector> = columns.by_ref().take(keys.len()).collect();
        let own: Vec<&Vector> = own.iter().collect();
        let values = columns.next().ok_or_else(missing)?;
        aggregate.groups.absorb_values(place, &own, &values)
    }

    /// Spills the results of finished groups.
    fn spill_results(
        &self,
        factory: &SinkFactory,
        aggregate: AggregateSink,
        results: &mut Vec<Extent>,
    ) -> Result<()> {
        let Sink::Fold { keys, folds, .. } = &factory.sink else {
            return Err(missing());
        };
        let mut groups = aggregate.groups;
        groups.tighten()?;
        let held: Reservation = std::mem::take(&mut groups.held);
        let types = |var: Var| self.types[var].clone();
        let finished = groups.finish(folds, &types)?;
        let keys = keys.iter().copied().zip(finished.keys);
        let outputs = folds.iter().map(|fold| fold.var).zip(finished.results);
        // In the order of the vectors' numbers, as they are read back.
        let columns: BTreeMap<Var, Vector> = keys.chain(outputs).collect();
        let all: Vec<u32> = (0..finished.groups as u32).collect();
        for some in all.chunks(EXTENT_ROWS) {
            let own = columns.values().map(|vector| vector.at(some));
            let own = own.collect::<Result<Vec<_>>>()?;
            results.push(self.spill.write(own.iter(), some.len())?);
        }
        drop(held);
        Ok(())
    }
}
