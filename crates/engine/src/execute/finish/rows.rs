//! Finishing a stage that collects rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::execute::finish::sort::SORTING;
use crate::execute::query_state::QueryState;
use crate::execute::sink::{RowSink, SinkFactory, SinkState};
use crate::logical::relation::Key;
use crate::memory::reservation::Reservation;
use crate::memory::spill::{Extent, Lists};
use crate::operators::external_sort::Merging;
use crate::operators::sort::sorted;
use crate::physical::program::Sink;
use crate::vector::builder::RowsBuilder;
use crate::vector::rows::Materialized;
use crate::vector::value::{Var, Vector};

/// Rows of which keys are compared where they are.
const FEW: usize = 256;

/// Rows from which on workers share in putting columns together.
const MANY: usize = 1 << 16;

impl QueryState {
    /// Collects the rows of all workers, sorted and limited as the sink asks. Merges spilled runs if they did not
    /// fit in memory.
    pub(crate) async fn finish_rows(
        &mut self,
        number: usize,
        factory: &SinkFactory,
        sinks: Vec<SinkState>,
    ) -> Result<()> {
        let sinks = sinks.into_iter().map(SinkState::row_sink);
        let mut sinks = sinks.collect::<Result<Vec<_>>>()?;
        let rows: usize = sinks.iter().map(|sink| sink.rows.rows).sum();
        let over_limit = factory.may_spill && rows > self.room();
        if !over_limit && sinks.iter().all(|sink| sink.spilled.is_empty()) {
            let bytes: usize = sinks.iter().map(|sink| sink.rows.memory()).sum();
            match Reservation::take(&self.runtime.budget, bytes as u64, "a sort") {
                Err(Error::Memory { .. }) if factory.may_spill => {}
                held => return self.in_memory(number, factory, sinks, held?).await,
            }
        }
        let mut runs: Lists = vec![];
        for mut sink in sinks.drain(..) {
            factory.spill_rows(&mut sink)?;
            runs.extend(sink.spilled);
        }
        let Sink::Rows {
            order, skip, fetch, ..
        } = &factory.sink
        else {
            return Err(Error::internal("rows of another sink"));
        };
        let extents = if order.is_empty() {
            self.cut(factory, runs.into_iter().flatten(), *skip, *fetch)?
        } else {
            let merging = Merging {
                spill: &self.spill,
                types: &self.types,
                vars: &factory.vars,
                keys: order,
                stop: &self.stop,
            };
            merging.merge(runs, *skip, *fetch)?
        };
        self.note_spilled(number, "rows");
        self.set_spilled(number, factory.result_vars(), extents);
        Ok(())
    }

    async fn in_memory(
        &mut self,
        number: usize,
        factory: &SinkFactory,
        mut sinks: Vec<RowSink>,
        held: Reservation,
    ) -> Result<()> {
        // Rows are in memory twice while they are concatenated, and again while they are sorted.
        let both: Vec<Reservation> = sinks
            .iter_mut()
            .map(|sink| std::mem::take(&mut sink.rows.held))
            .collect();
        let Sink::Rows {
            order, skip, fetch, ..
        } = &factory.sink
        else {
            return Err(Error::internal("rows of another sink"));
        };
        let rows = sinks.into_iter().map(|sink| sink.rows).collect();
        let (columns, rows) = self.concat(rows).await?;
        let stored = Materialized { columns, rows };
        let stored = self.in_order(stored, order, *skip, *fetch).await?;
        drop(both);
        self.rows[number] = Some(Arc::new(stored));
        self.held[number].push(held);
        Ok(())
    }

    /// The rows of `parts` behind each other, as [`RowsBuilder::concat`] puts them; the columns of many beside each other.
    pub(super) async fn concat(
        &self,
        parts: Vec<RowsBuilder>,
    ) -> Result<(BTreeMap<Var, Vector>, usize)> {
        let rows = parts.iter().map(|part| part.rows).sum();
        if rows < MANY {
            return RowsBuilder::concat(parts);
        }
        let (vars, columns): (Vec<Var>, Vec<_>) = RowsBuilder::by_column(parts).into_iter().unzip();
        let columns = columns
            .into_iter()
            .map(|parts| async move { parts.concat() });
        let columns = self.spread(columns.collect()).await?;
        Ok((vars.into_iter().zip(columns).collect(), rows))
    }

    /// The rows sorted by `keys`, without the first `skip` and at most `fetch`: by keys that are packed into numbers, and by all
    /// workers if that is worth while, unless few rows are asked for or there is no memory for it.
    async fn in_order(
        &self,
        stored: Materialized,
        keys: &[Key],
        skip: usize,
        fetch: Option<usize>,
    ) -> Result<Materialized> {
        let end = fetch.map_or(stored.rows, |n| stored.rows.min(skip.saturating_add(n)));
        // A few rows are found without sorting all.
        if !keys.is_empty() && stored.rows > FEW && end >= stored.rows / 4 {
            let bytes = (stored.rows * SORTING) as u64;
            match Reservation::take(&self.runtime.budget, bytes, "a sort") {
                Err(Error::Memory { .. }) => {}
                held => {
                    let _held = held?;
                    let mut picks = self.sorted(&stored, keys).await?;
                    picks.truncate(end);
                    picks.drain(..skip.min(end));
                    return self.gathered(stored, picks).await;
                }
            }
        }
        sorted(stored, &self.types, keys, skip, fetch)
    }

    /// Drops the first `skip` rows of `extents` and keeps at most `fetch`.
    fn cut(
        &self,
        factory: &SinkFactory,
        extents: impl Iterator<Item = Extent>,
        skip: usize,
        fetch: Option<usize>,
    ) -> Result<Vec<Extent>> {
        let end = fetch.map_or(usize::MAX, |n| skip.saturating_add(n));
        let (mut kept, mut first) = (vec![], 0);
        for extent in extents {
            let own = skip.max(first)..end.min(first + extent.rows);
            let own = own.start - first..own.end.max(own.start) - first;
            first += extent.rows;
            if own == (0..extent.rows) {
                kept.push(extent);
            } else if !own.is_empty() {
                let all = self.spill.read(&extent, &factory.vars)?;
                let picks: Vec<u32> = own.map(|row| row as u32).collect();
                let some = all.columns.values().map(|vector| vector.at(&picks));
                let some = some.collect::<Result<Vec<_>>>()?;
                kept.push(self.spill.write(some.iter(), picks.len())?);
            }
        }
        Ok(kept)
    }
}
