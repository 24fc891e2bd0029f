//! The end of a stage that groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result, missing};
use crate::execute::query_state::QueryState;
use crate::execute::sink::{AggregateSink, SinkFactory, SinkState, SpilledGroups};
use crate::logical::relation::Fold;
use crate::memory::reservation::{Reservation, SLACK};
use crate::memory::spill::{EXTENT_ROWS, Extent, numbered};
use crate::physical::program::{GroupJoin, Sink};
use crate::vector::radix::LAST_LEVEL;
use crate::vector::rows::Materialized;
use crate::vector::value::{Var, Vector};

impl QueryState {
    /// Merges the groups of all workers; the rows of stage `number` are what was found of them.
    pub(crate) fn folded(
        &mut self,
        number: usize,
        sinks: &SinkFactory,
        group_join: Option<usize>,
        ends: Vec<SinkState>,
    ) -> Result<()> {
        let mut ends = ends.into_iter().map(SinkState::folded);
        let mut all = ends.next().ok_or_else(missing)??;
        for other in ends {
            let other = other?;
            all.away.join(other.away);
            match all.away.is_empty() {
                true => self.merge(sinks, &mut all, other.groups)?,
                // Where some were put away, all will be.
                false => {
                    let groups = other.groups;
                    let mut other = AggregateSink {
                        groups,
                        away: SpilledGroups::default(),
                    };
                    sinks.spill_groups(&mut other, 0)?;
                    all.away.join(other.away);
                }
            }
        }
        let bytes = all.groups.memory();
        // What the results take from now on.
        all.groups.held = Reservation::default();
        let taken = self.take(number, bytes, "an aggregate");
        let few = bytes <= SLACK || taken.is_ok() && !self.is_full();
        let fits = few && all.groups.number_of() <= self.room();
        if !all.away.is_empty() || !fits && sinks.may_spill && !all.groups.is_by_row() {
            self.held[number].clear();
            sinks.spill_groups(&mut all, 0)?;
            return self.fold_parts(number, sinks, all);
        }
        if !fits {
            taken?;
        }
        let Sink::Fold {
            keys,
            folds,
            group_join: by,
        } = &sinks.sink
        else {
            return Err(missing());
        };
        let stored = self.found(all, keys, folds, by.as_ref().zip(group_join))?;
        self.rows[number] = Some(Arc::new(stored));
        Ok(())
    }

    /// Merges another worker's groups, all of which may be new here; what does not fit is put away.
    fn merge(
        &self,
        sinks: &SinkFactory,
        all: &mut AggregateSink,
        groups: crate::operators::aggregate::grouping::Grouping,
    ) -> Result<()> {
        let mut grown = all.groups.memory();
        if all.groups.grows() {
            grown += groups.memory();
        }
        let held = &mut all.groups.held;
        match held.cover(&self.runtime.budget, grown, "an aggregate") {
            Ok(()) => all.groups.merge(groups),
            Err(Error::Memory { .. }) if sinks.may_spill && !groups.is_by_row() => {
                let mut other = AggregateSink {
                    groups,
                    away: SpilledGroups::default(),
                };
                sinks.spill_groups(&mut other, 0)?;
                all.away.join(other.away);
                sinks.spill_groups(all, 0)
            }
            Err(e) => Err(e),
        }
    }

    /// The keys and results of groups.
    fn found(
        &self,
        all: AggregateSink,
        keys: &[Var],
        folds: &[Fold],
        by: Option<(&GroupJoin, usize)>,
    ) -> Result<Materialized> {
        let groups = all.groups;
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

    /// Part by part, the groups that were put away.
    fn fold_parts(&mut self, number: usize, sinks: &SinkFactory, all: AggregateSink) -> Result<()> {
        let AggregateSink { groups, away } = all;
        let one = groups.is_one();
        drop(groups);
        let mut found = Vec::new();
        match one {
            true => self.fold_one(sinks, away, &mut found)?,
            false => self.fold_level(sinks, away, 0, &mut found)?,
        }
        self.note_spilled(number, "groups");
        self.file(number, sinks.given(), found);
        Ok(())
    }

    /// The only group, its different values part by part.
    fn fold_one(
        &mut self,
        sinks: &SinkFactory,
        away: SpilledGroups,
        found: &mut Vec<Extent>,
    ) -> Result<()> {
        let mut folded = AggregateSink {
            groups: sinks.groups()?,
            away: SpilledGroups::default(),
        };
        for extent in away.states.iter().flatten() {
            self.absorb(sinks, &mut folded, extent)?;
        }
        for (place, lists) in &away.values {
            for list in lists {
                for extent in list {
                    self.absorb_values(sinks, &mut folded, *place, extent)?;
                }
                folded.groups.forget_values();
            }
        }
        self.put_found(sinks, folded, found)
    }

    /// The groups of each part, which those of another level are put away from if there are too many.
    fn fold_level(
        &mut self,
        sinks: &SinkFactory,
        away: SpilledGroups,
        level: u32,
        found: &mut Vec<Extent>,
    ) -> Result<()> {
        for part in 0..away.states.len() {
            self.stop.check()?;
            if away.states[part].is_empty() {
                continue;
            }
            let mut folded = AggregateSink {
                groups: sinks.groups()?,
                away: SpilledGroups::default(),
            };
            for extent in &away.states[part] {
                self.absorb(sinks, &mut folded, extent)?;
                self.keep(sinks, &mut folded, level)?;
            }
            for (place, lists) in &away.values {
                for extent in &lists[part] {
                    self.absorb_values(sinks, &mut folded, *place, extent)?;
                    self.keep(sinks, &mut folded, level)?;
                }
            }
            if folded.away.is_empty() {
                self.put_found(sinks, folded, found)?;
                continue;
            }
            sinks.spill_groups(&mut folded, level + 1)?;
            let AggregateSink { groups, away } = folded;
            drop(groups);
            self.fold_level(sinks, away, level + 1, found)?;
        }
        Ok(())
    }

    /// Takes memory for the groups of a part of `level`, or puts them away at the next.
    fn keep(&self, sinks: &SinkFactory, folded: &mut AggregateSink, level: u32) -> Result<()> {
        if level < LAST_LEVEL {
            return sinks.keep_groups(folded, level + 1);
        }
        let groups = &mut folded.groups;
        let bytes = groups.memory();
        let held = &mut groups.held;
        held.cover(&self.runtime.budget, bytes, "one part of an aggregate")
    }

    fn absorb(
        &self,
        sinks: &SinkFactory,
        folded: &mut AggregateSink,
        extent: &Extent,
    ) -> Result<()> {
        let keys = sinks.key_types();
        let kinds: Vec<_> = folded.groups.states().iter().map(|s| s.kinds()).collect();
        let all = keys.iter().map(|ty| ty.kind);
        let all = numbered(all.chain(kinds.iter().flatten().copied()));
        let mut columns = self.spill.get(extent, &all)?.columns.into_values();
        let own: Vec<Vector> = columns.by_ref().take(keys.len()).collect();
        let parts = kinds
            .iter()
            .map(|kinds| columns.by_ref().take(kinds.len()).collect());
        let parts = parts.collect();
        let own: Vec<&Vector> = own.iter().collect();
        folded.groups.absorb(&own, parts, extent.rows)
    }

    fn absorb_values(
        &self,
        sinks: &SinkFactory,
        folded: &mut AggregateSink,
        place: usize,
        extent: &Extent,
    ) -> Result<()> {
        let keys = sinks.key_types();
        let all = keys.iter().map(|ty| ty.kind);
        let all = numbered(all.chain([sinks.argument(&folded.groups, place)?.kind]));
        let mut columns = self.spill.get(extent, &all)?.columns.into_values();
        let own: Vec<Vector> = columns.by_ref().take(keys.len()).collect();
        let own: Vec<&Vector> = own.iter().collect();
        let values = columns.next().ok_or_else(missing)?;
        folded.groups.absorb_values(place, &own, &values)
    }

    /// Puts what was found of groups away.
    fn put_found(
        &self,
        sinks: &SinkFactory,
        folded: AggregateSink,
        found: &mut Vec<Extent>,
    ) -> Result<()> {
        let Sink::Fold { keys, folds, .. } = &sinks.sink else {
            return Err(missing());
        };
        let mut groups = folded.groups;
        let held: Reservation = std::mem::take(&mut groups.held);
        let types = |var: Var| self.types[var].clone();
        let finished = groups.finish(folds, &types)?;
        let keys = keys.iter().copied().zip(finished.keys);
        let results = folds.iter().map(|fold| fold.var).zip(finished.results);
        // In the order of the vectors' numbers, as they are read again.
        let columns: BTreeMap<Var, Vector> = keys.chain(results).collect();
        let all: Vec<u32> = (0..finished.groups as u32).collect();
        for some in all.chunks(EXTENT_ROWS) {
            let own = columns.values().map(|vector| vector.at(some));
            let own = own.collect::<Result<Vec<_>>>()?;
            found.push(self.spill.put(own.iter(), some.len())?);
        }
        drop(held);
        Ok(())
    }
}
