//! The end of a stage that gathers rows.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::execute::query_state::QueryState;
use crate::execute::sink::{RowSink, SinkFactory, SinkState};
use crate::memory::reservation::Reservation;
use crate::memory::spill::{Extent, Lists};
use crate::operators::external_sort::Merging;
use crate::operators::sort::sorted;
use crate::physical::program::Sink;
use crate::vector::builder::RowsBuilder;
use crate::vector::rows::Materialized;

impl QueryState {
    /// Puts the rows of all workers together, in order.
    pub(crate) fn gathered(
        &mut self,
        number: usize,
        sinks: &SinkFactory,
        ends: Vec<SinkState>,
    ) -> Result<()> {
        let ends = ends.into_iter().map(SinkState::gathered);
        let mut ends = ends.collect::<Result<Vec<_>>>()?;
        let rows: usize = ends.iter().map(|end| end.rows.rows).sum();
        let crowded = sinks.may_spill && rows > self.room();
        if !crowded && ends.iter().all(|end| end.away.is_empty()) {
            let bytes: usize = ends.iter().map(|end| end.rows.memory()).sum();
            match Reservation::take(&self.runtime.budget, bytes as u64, "a sort") {
                Err(Error::Memory { .. }) if sinks.may_spill => {}
                held => return self.in_memory(number, sinks, ends, held?),
            }
        }
        let mut runs: Lists = vec![];
        for mut end in ends.drain(..) {
            sinks.spill_rows(&mut end)?;
            runs.extend(end.away);
        }
        let Sink::Rows {
            order, skip, fetch, ..
        } = &sinks.sink
        else {
            return Err(Error::internal("rows of another sink"));
        };
        let extents = match order.is_empty() {
            true => self.cut(sinks, runs.into_iter().flatten(), *skip, *fetch)?,
            false => {
                let merging = Merging {
                    spill: &self.spill,
                    types: &self.types,
                    vars: &sinks.vars,
                    keys: order,
                    stop: &self.stop,
                };
                merging.merge(runs, *skip, *fetch)?
            }
        };
        self.note_spilled(number, "rows");
        self.file(number, sinks.given(), extents);
        Ok(())
    }

    fn in_memory(
        &mut self,
        number: usize,
        sinks: &SinkFactory,
        mut ends: Vec<RowSink>,
        held: Reservation,
    ) -> Result<()> {
        // All rows are there twice while they are put together, and again while they are put in order.
        let both: Vec<Reservation> = ends
            .iter_mut()
            .map(|end| std::mem::take(&mut end.rows.held))
            .collect();
        let Sink::Rows {
            order, skip, fetch, ..
        } = &sinks.sink
        else {
            return Err(Error::internal("rows of another sink"));
        };
        let rows = ends.into_iter().map(|end| end.rows).collect();
        let (columns, rows) = RowsBuilder::concat(rows)?;
        let stored = Materialized { columns, rows };
        let stored = sorted(stored, &self.types, order, *skip, *fetch)?;
        drop(both);
        self.rows[number] = Some(Arc::new(stored));
        self.held[number].push(held);
        Ok(())
    }

    /// The rows of `extents` without the first `skip`, at most `fetch`.
    fn cut(
        &self,
        sinks: &SinkFactory,
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
                let all = self.spill.get(&extent, &sinks.vars)?;
                let picks: Vec<u32> = own.map(|row| row as u32).collect();
                let some = all.columns.values().map(|vector| vector.at(&picks));
                let some = some.collect::<Result<Vec<_>>>()?;
                kept.push(self.spill.put(some.iter(), picks.len())?);
            }
        }
        Ok(kept)
    }
}
