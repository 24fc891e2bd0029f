//! Grace (partitioned) hash join: each pass loads as many partitions of the build side as fit in memory.

use std::ops::Range;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::execute::partitioned::PartitionedTable;
use crate::execute::query_state::QueryState;
use crate::memory::reservation::Reservation;
use crate::memory::spill::{EXTENT_ROWS, Extent, Lists, joined};
use crate::operators::join_table::JoinTable;
use crate::vector::radix::{LAST_LEVEL, PARTITIONS, RadixPartitioner, rows_of};
use crate::vector::value::{Type, Vector};

/// Memory of a join table while it is built, as a multiple of the bytes of its rows: rows read, rows concatenated,
/// index.
const MARGIN: usize = 4;

/// Partitions of a pass, and the one that is divided, where memory is to seem short.
const SHORT: usize = PARTITIONS / 3;

impl QueryState {
    /// Builds a join table of as many partitions as fit in memory, from partition `first` on. Returns the first
    /// partition of the next pass; `None` if that partition does not fit by itself, and can be divided.
    pub async fn load(
        &mut self,
        table: usize,
        partitioned: &PartitionedTable,
        first: usize,
    ) -> Result<Option<usize>> {
        let room = self.pass_bytes();
        let mut end = first + 1;
        let mut bytes = partitioned.memory(first);
        // With `Execution::max_rows_before_spill` set, passes are made small, and a partition is divided, as if memory were short.
        let is_short = self.execution.max_rows_before_spill.is_some();
        if is_short && first == SHORT && partitioned.level < LAST_LEVEL {
            return Ok(None);
        }
        let most = if is_short { first + SHORT } else { PARTITIONS };
        while end < PARTITIONS.min(most)
            && bytes + partitioned.memory(end) <= room
            && partitioned.divided(end).is_none()
        {
            bytes += partitioned.memory(end);
            end += 1;
        }
        loop {
            match self.load_parts(table, partitioned, first..end).await {
                Err(Error::Memory { .. }) if end - first > 1 => end = first + (end - first) / 2,
                Err(Error::Memory { .. }) if partitioned.level < LAST_LEVEL => {
                    self.forget(table);
                    return Ok(None);
                }
                done => return done.map(|()| Some(end)),
            }
            self.forget(table);
        }
    }

    /// About how many bytes of rows a join table of one pass may have.
    pub fn pass_bytes(&self) -> usize {
        let budget = &self.runtime.budget;
        let copies = self.instances.as_ref().map_or(1, |all| 1 + all.number());
        // Keeps a quarter of the memory for rows on their way.
        let room = (budget.limit() / 4 * 3).saturating_sub(budget.used()) as usize;
        room / (MARGIN * copies)
    }

    /// Divides partition `part`, which does not fit in memory by itself.
    pub fn divided(
        &self,
        partitioned: &PartitionedTable,
        part: usize,
    ) -> Result<Arc<PartitionedTable>> {
        let level = partitioned.level + 1;
        let types = partitioned.keys.iter().map(|key| &self.types[*key]);
        let types: Vec<&Type> = types.collect();
        let mut lists: Lists = vec![vec![]; PARTITIONS];
        let mut marked = vec![vec![]; PARTITIONS];
        let mut counts = vec![0u32; PARTITIONS];
        let (was_marked, mut first) = (partitioned.marked(part..part + 1), 0);
        for (number, some) in batches(&partitioned.lists[part]).enumerate() {
            self.stop.check()?;
            let blocks = some.iter();
            let blocks = blocks.map(|extent| self.spill.read(extent, &partitioned.vars));
            let blocks = blocks.collect::<Result<Vec<_>>>()?;
            let rows = joined(&blocks, &partitioned.vars)?;
            let parts = if types.is_empty() {
                // Without keys rows may be in any partition.
                vec![(number % PARTITIONS) as u8; rows.rows]
            } else {
                let keys = partitioned.keys.iter();
                let keys: Vec<&Vector> = keys.filter_map(|key| rows.columns.get(key)).collect();
                RadixPartitioner::default().of(&keys, &types, rows.rows, level)?
            };
            for (own, picks) in rows_of(&parts).iter().enumerate() {
                if picks.is_empty() {
                    continue;
                }
                let columns = rows.columns.values().map(|vector| vector.at(picks));
                let columns = columns.collect::<Result<Vec<_>>>()?;
                lists[own].push(self.spill.write(columns.iter(), picks.len())?);
                let places = (counts[own]..).zip(picks);
                let places = places.filter(|(_, row)| {
                    let row = first + **row;
                    was_marked.binary_search(&row).is_ok()
                });
                Vec::extend(&mut marked[own], places.map(|(place, _)| place));
                counts[own] += picks.len() as u32;
            }
            first += rows.rows as u32;
        }
        let parts = Arc::new(partitioned.below(part, lists, marked));
        partitioned.divide(part, Arc::clone(&parts));
        Ok(parts)
    }

    async fn load_parts(
        &mut self,
        table: usize,
        partitioned: &PartitionedTable,
        parts: Range<usize>,
    ) -> Result<()> {
        let extents = partitioned.lists[parts.clone()].iter().flatten();
        let extents: Vec<&Extent> = extents.collect();
        let bytes: usize = extents.iter().map(|extent| extent.memory).sum();
        let copies = self.instances.as_ref().map_or(1, |all| 1 + all.number());
        let held = Reservation::take(
            &self.runtime.budget,
            (bytes * copies) as u64,
            "one partition of a join",
        )?;
        self.held[table].push(held);
        // Rows are in memory twice while they are concatenated. A single partition must be loaded even if that is
        // not reserved.
        let both = Reservation::take(
            &self.runtime.budget,
            bytes as u64,
            "one partition of a join",
        );
        let both = match both {
            Err(_) if parts.len() == 1 => Reservation::default(),
            both => both?,
        };
        let blocks = extents
            .iter()
            .map(|extent| self.spill.read(extent, &partitioned.vars));
        let blocks = blocks.collect::<Result<Vec<_>>>()?;
        let stored = joined(&blocks, &partitioned.vars)?;
        drop((blocks, both));
        self.replicate(
            table,
            &partitioned.keys,
            stored,
            partitioned.marks,
            false,
            &[],
        )
        .await?;
        let mask = |part: usize| 1u64 << part;
        let loaded = parts.clone().map(mask).sum();
        let pass = partitioned.within.at(partitioned.level, loaded);
        let marked = partitioned.marked(parts);
        self.each_table(table, &mut |join_table| {
            // No other reference exists yet.
            let join_table = Arc::get_mut(join_table)?;
            join_table.pass = Some(pass);
            join_table.mark(&marked);
            Some(())
        })
    }

    /// Calls `f` with the join tables of stage `table`, of all instances.
    fn each_table(
        &mut self,
        table: usize,
        f: &mut dyn FnMut(&mut Arc<JoinTable>) -> Option<()>,
    ) -> Result<()> {
        let own = match &mut self.instances {
            Some(all) => {
                self.join_tables[table] = None;
                all.tables(table).map(f).collect::<Option<()>>()
            }
            None => self.join_tables[table].iter_mut().map(f).collect(),
        };
        own.ok_or_else(|| Error::internal("a join table in use"))?;
        if let Some(all) = &mut self.instances {
            self.join_tables[table] = all.tables(table).next().cloned();
        }
        Ok(())
    }
}

/// Extents that are divided at once: together they make larger ones, of which there are fewer to remember and to read.
fn batches(extents: &[Extent]) -> impl Iterator<Item = &[Extent]> {
    const BYTES: usize = 1 << 20;
    let mut rest = extents;
    std::iter::from_fn(move || {
        let (mut count, mut rows, mut bytes) = (0, 0, 0);
        for extent in rest {
            (rows, bytes) = (rows + extent.rows, bytes + extent.memory);
            if count > 0 && (rows > EXTENT_ROWS || bytes > BYTES) {
                break;
            }
            count += 1;
        }
        let (some, others) = rest.split_at(count);
        rest = others;
        (count > 0).then_some(some)
    })
}
