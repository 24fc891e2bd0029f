//! The end of a stage that gathers rows.

use std::sync::Arc;

use super::Run;
use super::answer::sorted;
use super::away::{Gathered, Lists};
use super::merge::Merging;
use super::passes::joined;
use super::sink::{End, Shape};
use crate::column::Collected;
use crate::error::{Error, Result};
use crate::held::Held;
use crate::plan::Sink;
use crate::source::{Filed, Stored};
use crate::spill::Extent;

impl Run {
    /// Puts the rows of all workers together, in order.
    pub(super) fn gathered(&mut self, number: usize, shape: &Shape, ends: Vec<End>) -> Result<()> {
        let ends = ends.into_iter().map(End::gathered);
        let mut ends = ends.collect::<Result<Vec<_>>>()?;
        let rows: usize = ends.iter().map(|end| end.rows.rows).sum();
        let crowded = shape.may_spill && rows > self.room();
        if !crowded && ends.iter().all(|end| end.away.is_empty()) {
            let bytes: usize = ends.iter().map(|end| end.rows.memory()).sum();
            match Held::take(&self.runtime.budget, bytes as u64, "a sort") {
                Err(Error::Memory { .. }) if shape.may_spill => {}
                held => return self.in_memory(number, shape, ends, held?),
            }
        }
        let mut runs: Lists = vec![];
        for mut end in ends.drain(..) {
            shape.put_rows(&mut end)?;
            runs.extend(end.away);
        }
        let Sink::Rows {
            order, skip, fetch, ..
        } = &shape.sink
        else {
            return Err(Error::internal("rows of another sink"));
        };
        let extents = match order.is_empty() {
            true => self.cut(shape, runs.into_iter().flatten(), *skip, *fetch)?,
            false => {
                let merging = Merging {
                    spill: &self.spill,
                    types: &self.types,
                    vars: &shape.vars,
                    keys: order,
                    stop: &self.stop,
                };
                merging.merge(runs, *skip, *fetch)?
            }
        };
        self.note_spilled(number, "rows");
        self.file(number, shape, extents);
        Ok(())
    }

    fn in_memory(
        &mut self,
        number: usize,
        shape: &Shape,
        mut ends: Vec<Gathered>,
        held: Held,
    ) -> Result<()> {
        // All rows are there twice while they are put together, and again while they are put in order.
        let both: Vec<Held> = ends
            .iter_mut()
            .map(|end| std::mem::take(&mut end.rows.held))
            .collect();
        let Sink::Rows {
            order, skip, fetch, ..
        } = &shape.sink
        else {
            return Err(Error::internal("rows of another sink"));
        };
        let rows = ends.into_iter().map(|end| end.rows).collect();
        let (columns, rows) = Collected::concat(rows)?;
        let stored = Stored { columns, rows };
        let stored = sorted(stored, &self.types, order, *skip, *fetch)?;
        drop(both);
        self.rows[number] = Some(Arc::new(stored));
        self.held[number].push(held);
        Ok(())
    }

    /// The rows of `extents` without the first `skip`, at most `fetch`.
    fn cut(
        &self,
        shape: &Shape,
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
                let all = self.spill.get(&extent, &shape.vars)?;
                let picks: Vec<u32> = own.map(|row| row as u32).collect();
                let some = all.columns.values().map(|vector| vector.at(&picks));
                let some = some.collect::<Result<Vec<_>>>()?;
                kept.push(self.spill.put(some.iter(), picks.len())?);
            }
        }
        Ok(kept)
    }

    /// `extents` are the rows of stage `number`.
    pub(super) fn file(&mut self, number: usize, shape: &Shape, extents: Vec<Extent>) {
        self.filed[number] = Some(Arc::new(Filed {
            spill: self.spill.clone(),
            rows: extents.iter().map(|extent| extent.rows).sum(),
            extents,
            vars: shape.given(),
        }));
    }

    /// The rows of a stage, of which there are few.
    pub(super) fn few(&self, number: usize) -> Result<Option<Arc<Stored>>> {
        match &self.filed[number] {
            None => Ok(self.rows[number].clone()),
            Some(filed) => {
                let blocks = filed.extents.iter().map(|extent| filed.get(extent));
                let blocks = blocks.collect::<Result<Vec<_>>>()?;
                Ok(Some(Arc::new(joined(&blocks, &filed.vars)?)))
            }
        }
    }
}
