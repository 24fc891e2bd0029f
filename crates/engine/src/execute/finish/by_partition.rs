//! Finishing an aggregation of many groups partition by partition, with all workers: by hashes of the keys, or by ranges where they
//! came in order.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result, missing};
use crate::execute::query_state::QueryState;
use crate::execute::sink::{AggregateSink, SinkFactory, SpilledGroups};
use crate::memory::reservation::{Reservation, SLACK};
use crate::operators::aggregate::grouping::chunks::MOST_BITS;
use crate::operators::aggregate::grouping::first::FirstOf;
use crate::operators::aggregate::grouping::{Finished, Grouping};
use crate::operators::top_k::TopKFilter;
use crate::physical::program::{FirstGroups, Sink};
use crate::vector::rows::Materialized;
use crate::vector::value::{Var, Vector};

/// Groups from which on workers share in the merging.
const MANY: usize = 1 << 16;

/// About how many groups a partition has: the hash table of so many fits in the L2 cache.
const PART_GROUPS: usize = 1 << 14;

/// Whether the groups of these sinks are merged partition by partition.
pub(super) fn is_by_partition(sinks: &[AggregateSink]) -> bool {
    let groups: usize = sinks.iter().map(|sink| sink.groups.group_count()).sum();
    let loose = sinks.iter().any(|sink| sink.groups.is_loose());
    let stays = sinks.iter().all(|sink| sink.spilled.is_empty());
    let all = |may: fn(&Grouping) -> bool| sinks.iter().all(|sink| may(&sink.groups));
    let may = stays && (all(Grouping::is_by_hash) || all(Grouping::is_by_range));
    (loose || sinks.len() > 1 && groups >= MANY) && may
}

impl QueryState {
    /// Merges the groups of all workers, which are found [by hash](Grouping::is_by_hash) or [sorted](Grouping::is_by_range). The
    /// results become the rows of stage `number`.
    pub(super) async fn finish_by_partition(
        &mut self,
        number: usize,
        factory: &SinkFactory,
        groups: Vec<Grouping>,
    ) -> Result<()> {
        // Groups are in memory twice while they are merged.
        let bytes: usize = groups.iter().map(Grouping::memory).sum();
        let twice = Reservation::take(&self.runtime.budget, bytes as u64, "an aggregate");
        if let (Err(Error::Memory { .. }), true) = (&twice, factory.may_spill) {
            return self.spill_and_finish(number, factory, groups);
        }
        let twice = twice?;
        let merged = if groups.iter().all(Grouping::is_by_range) {
            self.merged_by_range(groups).await?
        } else {
            self.merged_by_partition(groups).await?
        };
        drop(twice);
        let bytes = merged.iter().map(Grouping::memory).sum();
        let taken = self.take(number, bytes, "an aggregate");
        let few = bytes <= SLACK || taken.is_ok() && !self.is_full();
        let count: usize = merged.iter().map(Grouping::group_count).sum();
        let can_finish = self.can_finish(&merged.iter().collect::<Vec<_>>());
        if !(few && count <= self.room() && can_finish) {
            if factory.may_spill {
                self.held[number].clear();
                return self.spill_and_finish(number, factory, merged);
            }
            taken?;
        }
        let stored = self.results_of_partitions(factory, merged).await?;
        self.rows[number] = Some(Arc::new(stored));
        Ok(())
    }

    /// The groups of each partition.
    async fn merged_by_partition(&self, groups: Vec<Grouping>) -> Result<Vec<Grouping>> {
        let all: usize = groups.iter().map(Grouping::group_count).sum();
        let least = self.runtime.workers.threads().max(1);
        let parts = (all / PART_GROUPS).max(least).next_power_of_two();
        let bits = parts.ilog2().min(MOST_BITS);
        let interned = groups.iter().all(Grouping::is_interned);
        let divided = groups
            .into_iter()
            .map(|groups| async move { groups.divided(bits, interned) });
        let sources = Arc::new(self.spread(divided.collect()).await?);
        let merging = (0..1 << bits).map(|part| {
            let (sources, stop) = (sources.clone(), self.stop.clone());
            async move {
                stop.check()?;
                Grouping::of_partition(&sources, part)
            }
        });
        self.spread(merging.collect()).await
    }

    /// The groups of each range of keys.
    async fn merged_by_range(&self, groups: Vec<Grouping>) -> Result<Vec<Grouping>> {
        let all: usize = groups.iter().map(Grouping::group_count).sum();
        let parts = (all / PART_GROUPS).max(self.runtime.workers.threads());
        let ranges = Grouping::ranges(&groups, parts);
        let sources = Arc::new(groups);
        let merging = ranges.into_iter().map(|range| {
            let (sources, stop) = (sources.clone(), self.stop.clone());
            async move {
                stop.check()?;
                Grouping::of_range(&sources, &range)
            }
        });
        self.spread(merging.collect()).await
    }

    /// The keys and results of the groups of all partitions, behind each other; of those that are read, if it is known which.
    async fn results_of_partitions(
        &self,
        factory: &SinkFactory,
        merged: Vec<Grouping>,
    ) -> Result<Materialized> {
        let Sink::Fold {
            keys, folds, first, ..
        } = &factory.sink
        else {
            return Err(missing());
        };
        let by = |first: &FirstGroups| Arc::new(TopKFilter::by(first.order[0], &self.types));
        let first = first.clone().map(|first| (by(&first), first));
        let finishing = merged.into_iter().map(|groups| {
            let (keys, folds, types) = (keys.clone(), folds.clone(), self.types.clone());
            let first = first.clone();
            async move {
                match &first {
                    None => groups.finish(&folds, &|var: Var| types[var].clone()),
                    Some((filter, first)) => groups.finish_first(&FirstOf {
                        keys: &keys,
                        folds: &folds,
                        types: &types,
                        first,
                        filter,
                    }),
                }
            }
        });
        let parts: Vec<Finished> = self.spread(finishing.collect()).await?;
        let runs: Vec<_> = parts
            .iter()
            .map(|part| 0..part.groups)
            .enumerate()
            .collect();
        let rows = parts.iter().map(|part| part.groups).sum();
        let vars = keys
            .iter()
            .copied()
            .chain(folds.iter().map(|fold| fold.var));
        let mut columns: BTreeMap<usize, Vec<Vector>> = BTreeMap::new();
        for part in parts {
            let vectors = part.keys.into_iter().chain(part.results);
            for (at, vector) in vectors.enumerate() {
                columns.entry(at).or_default().push(vector);
            }
        }
        let (vars, parts): (Vec<Var>, Vec<_>) = vars.zip(columns.into_values()).unzip();
        let runs = Arc::new(runs);
        let joining = vars.iter().zip(parts).map(|(var, parts)| {
            let (kind, runs) = (self.types[*var].kind, runs.clone());
            async move { Vector::runs(kind, &parts, &runs) }
        });
        let columns = self.spread(joining.collect()).await?;
        Ok(Materialized {
            columns: vars.into_iter().zip(columns).collect(),
            rows,
        })
    }

    /// Spills all groups, and finishes them partition by partition of what was spilled.
    fn spill_and_finish(
        &mut self,
        number: usize,
        factory: &SinkFactory,
        groups: Vec<Grouping>,
    ) -> Result<()> {
        let mut all = AggregateSink {
            groups: factory.groups()?,
            spilled: SpilledGroups::default(),
        };
        for groups in groups {
            let mut own = AggregateSink {
                groups,
                spilled: SpilledGroups::default(),
            };
            factory.spill_groups(&mut own, 0)?;
            all.spilled.join(own.spilled);
        }
        self.finish_spilled(number, factory, all)
    }
}
