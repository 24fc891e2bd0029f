//! Finishing a stage of window functions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::execute::finish::sort::SORTING;
use crate::execute::query_state::QueryState;
use crate::execute::sink::{RowSink, SinkFactory, SinkState};
use crate::memory::reservation::{Reservation, SLACK};
use crate::memory::spill::{EXTENT_ROWS, Extent, Lists, joined};
use crate::operators::external_sort::Merging;
use crate::operators::window::Windows;
use crate::operators::window::streamed::Streamed;
use crate::physical::program::Sink;
use crate::vector::builder::RowsBuilder;
use crate::vector::rows::Materialized;
use crate::vector::value::{Var, Vector};

/// Bytes per row while functions are computed: a frame, and sums.
const COMPUTING: usize = 48;

/// Rows of spilled runs that are read before functions are computed of the partitions among them.
const CHUNK_ROWS: usize = 32 * algebra::VECTOR_ROWS;

impl QueryState {
    /// Sorts the rows of all workers by partitions and order, and computes the functions. Spilled runs are merged, and
    /// the functions computed of some partitions after the others.
    pub(crate) async fn finish_window(
        &mut self,
        number: usize,
        factory: &SinkFactory,
        sinks: Vec<SinkState>,
    ) -> Result<()> {
        let Sink::Window { order, parts, .. } = &factory.sink else {
            return Err(Error::internal("a window of another sink"));
        };
        let windows = Arc::new(Windows {
            types: self.types.clone(),
            order: order.clone(),
            parts: parts.clone(),
            aggregates: Arc::clone(&self.aggregates),
            budget: Arc::clone(&self.runtime.budget),
            stop: self.stop.clone(),
        });
        let sinks = sinks.into_iter().map(SinkState::row_sink);
        let sinks = sinks.collect::<Result<Vec<_>>>()?;
        let rows: usize = sinks.iter().map(|sink| sink.rows.rows).sum();
        let over_limit = factory.may_spill && rows > self.room();
        if !over_limit && sinks.iter().all(|sink| sink.spilled.is_empty()) {
            let bytes: usize = sinks.iter().map(|sink| sink.rows.memory()).sum();
            let budget = &self.runtime.budget;
            let results = (bytes + rows * windows.width()) as u64;
            let held = Reservation::take(budget, results, "a window").and_then(|held| {
                let sorting = (rows * SORTING) as u64;
                Ok((held, Reservation::take(budget, sorting, "a window")?))
            });
            match held {
                Err(Error::Memory { .. }) if factory.may_spill => {}
                held => {
                    let (held, sorting) = held?;
                    let rows = sinks.into_iter().map(|sink| sink.rows).collect();
                    let stored = self.windows_in_memory(&windows, factory, rows).await?;
                    drop(sorting);
                    self.rows[number] = Some(Arc::new(stored));
                    self.held[number].push(held);
                    return Ok(());
                }
            }
        }
        let results = self.windows_of_runs(&windows, factory, sinks)?;
        self.note_spilled(number, "rows of a window");
        self.set_spilled(number, factory.result_vars(), results);
        Ok(())
    }

    /// The rows that the stage gives, of rows that do not fit in memory.
    fn windows_of_runs(
        &self,
        windows: &Windows,
        factory: &SinkFactory,
        sinks: Vec<RowSink>,
    ) -> Result<Vec<Extent>> {
        let mut runs: Lists = vec![];
        for mut sink in sinks {
            factory.spill_rows(&mut sink)?;
            runs.extend(sink.spilled);
        }
        let extents = if windows.order.is_empty() {
            runs.into_iter().flatten().collect()
        } else {
            let merging = Merging {
                spill: &self.spill,
                types: &self.types,
                vars: &factory.vars,
                keys: &windows.order,
                stop: &self.stop,
            };
            merging.merge(runs, 0, None)?
        };
        self.windows_of_spilled(windows, factory, extents)
    }

    /// The rows that the stage gives, of rows that fit in memory.
    async fn windows_in_memory(
        &self,
        windows: &Arc<Windows>,
        factory: &SinkFactory,
        mut parts: Vec<RowsBuilder>,
    ) -> Result<Materialized> {
        // Rows are in memory twice while they are concatenated, and again while they are sorted.
        let both = parts.iter_mut().map(|rows| std::mem::take(&mut rows.held));
        let both: Vec<Reservation> = both.collect();
        let (columns, rows) = self.concat(parts).await?;
        let mut stored = Materialized { columns, rows };
        if !windows.order.is_empty() {
            let picks = self.sorted(&stored, &windows.order).await?;
            stored = self.gathered(stored, picks).await?;
        }
        let stored = Arc::new(stored);
        let results = self.computed(windows, &stored).await?;
        let rows = stored.rows;
        let columns = match Arc::try_unwrap(stored) {
            Ok(stored) => stored.columns,
            Err(shared) => shared.columns.clone(),
        };
        drop(both);
        Ok(Materialized {
            columns: result(factory, columns, windows, results)?,
            rows,
        })
    }

    /// The results of all functions, part by part.
    async fn computed(
        &self,
        windows: &Arc<Windows>,
        stored: &Arc<Materialized>,
    ) -> Result<Vec<Vector>> {
        let mut results = Vec::new();
        for number in 0..windows.parts.len() {
            results.extend(self.computed_part(windows, number, stored).await?);
        }
        Ok(results)
    }

    /// The results of the functions of a part, for runs of partitions by different workers.
    async fn computed_part(
        &self,
        windows: &Arc<Windows>,
        number: usize,
        stored: &Arc<Materialized>,
    ) -> Result<Vec<Vector>> {
        let part = &windows.parts[number];
        let size = self.task_rows(stored.rows);
        let cuts = windows.cuts(stored, part.partition, size)?;
        if cuts.len() <= 2 {
            return windows.compute(part, stored);
        }
        let runs = cuts.windows(2).map(|ends| {
            let run = ends[0]..ends[1];
            let (windows, stored) = (windows.clone(), stored.clone());
            async move {
                let part = &windows.parts[number];
                let mut columns = BTreeMap::new();
                for var in part.reads(&windows.order) {
                    if let Some(vector) = stored.columns.get(&var) {
                        columns.insert(var, vector.run(run.clone()));
                    }
                }
                let rows = run.len();
                windows.compute(part, &Materialized { columns, rows })
            }
        });
        let runs = self.spread(runs.collect()).await?;
        let mut results = Vec::with_capacity(part.functions.len());
        for (place, fold) in part.functions.iter().enumerate() {
            let own: Vec<&Vector> = runs.iter().map(|run| &run[place]).collect();
            let all: Vec<_> = own.iter().map(|own| 0..own.len()).enumerate().collect();
            results.push(Vector::runs(self.types[fold.var].kind, &own, &all)?);
        }
        Ok(results)
    }

    /// The rows that the stage gives, of sorted rows that were spilled: of as many partitions at a time as a chunk has,
    /// or of one.
    fn windows_of_spilled(
        &self,
        windows: &Windows,
        factory: &SinkFactory,
        extents: Vec<Extent>,
    ) -> Result<Vec<Extent>> {
        if let Some(streamed) = Streamed::of(windows) {
            return self.windows_streamed(streamed, windows, factory, extents);
        }
        let mut results = Vec::new();
        let mut chunk = Chunk::default();
        let mut held = Reservation::default();
        let mut extents = extents.into_iter().peekable();
        while let Some(extent) = extents.next() {
            self.stop.check()?;
            self.read_more(&mut chunk, &mut held, &extent, (windows, factory))?;
            let last = extents.peek().is_none();
            if last || chunk.rows >= chunk.wanted.max(self.chunk_rows(&chunk)) {
                self.finish_partitions_of(&mut chunk, windows, factory, last, &mut results)?;
            }
        }
        Ok(results)
    }

    /// The same where functions need no more than some rows around a chunk, however large a partition is.
    fn windows_streamed(
        &self,
        mut streamed: Streamed,
        windows: &Windows,
        factory: &SinkFactory,
        extents: Vec<Extent>,
    ) -> Result<Vec<Extent>> {
        let mut results = Vec::new();
        let mut chunk = Chunk::default();
        let mut held = Reservation::default();
        // Rows at the beginning of the chunk whose results are there.
        let mut from = 0;
        for (number, extent) in extents.iter().enumerate() {
            self.stop.check()?;
            self.read_more(&mut chunk, &mut held, extent, (windows, factory))?;
            let behind = &extents[number + 1..];
            let last = behind.is_empty();
            let wanted = chunk.wanted.max(self.chunk_rows(&chunk));
            if !last && chunk.rows < from + wanted + streamed.behind {
                continue;
            }
            let rows = joined(&std::mem::take(&mut chunk.blocks), &factory.vars)?;
            let end = streamed.end(&rows, from, last)?;
            if end == from {
                // All of it is peers, of which there may be many more.
                chunk.wanted = 2 * rows.rows;
                chunk.blocks.push(rows);
                continue;
            }
            let own = streamed.compute(&rows, (from, end), &mut |each| {
                self.read_behind(&rows, end, behind, factory, each)
            })?;
            let columns = result(factory, rows.part(from..end).columns, windows, own)?;
            self.put(&columns, end - from, &mut results)?;
            let first = end.saturating_sub(streamed.before);
            from = end - first;
            chunk = Chunk {
                bytes: chunk.bytes / rows.rows.max(1) * (rows.rows - first),
                rows: rows.rows - first,
                wanted: 0,
                blocks: vec![rows.part(first..rows.rows)],
            };
        }
        Ok(results)
    }

    /// Hands what follows on the rows before `end` to `each`, a block at a time, each with the last of those rows before it: the rest of `rows`, and the extents `behind`.
    fn read_behind(
        &self,
        rows: &Materialized,
        end: usize,
        behind: &[Extent],
        factory: &SinkFactory,
        each: &mut dyn FnMut(&Materialized) -> Result<bool>,
    ) -> Result<()> {
        let mut goes_on = each(&rows.part(end - 1..rows.rows))?;
        let last = rows.part(end - 1..end);
        for extent in behind {
            if !goes_on {
                break;
            }
            self.stop.check()?;
            let block = self.spill.read(extent, &factory.vars)?;
            goes_on = each(&joined(&[last.part(0..1), block], &factory.vars)?)?;
        }
        Ok(())
    }

    /// Reads `extent` into `chunk`, if there is memory for it and for what is computed of it.
    fn read_more(
        &self,
        chunk: &mut Chunk,
        held: &mut Reservation,
        extent: &Extent,
        (windows, factory): (&Windows, &SinkFactory),
    ) -> Result<()> {
        chunk.rows += extent.rows;
        chunk.bytes += extent.memory;
        // The rows, once more as one block, and the results with what is needed to compute them.
        let needed = 2 * chunk.bytes + chunk.rows * (windows.width() + COMPUTING);
        match held.cover(&self.runtime.budget, needed, "a partition of a window") {
            Err(Error::Memory { .. }) if needed <= SLACK => {}
            held => held?,
        }
        chunk.blocks.push(self.spill.read(extent, &factory.vars)?);
        Ok(())
    }

    /// How many rows a chunk should have.
    fn chunk_rows(&self, chunk: &Chunk) -> usize {
        let row = (chunk.bytes / chunk.rows.max(1)).max(1);
        let room = usize::try_from(self.runtime.budget.limit() / 16).unwrap_or(usize::MAX);
        CHUNK_ROWS.min(self.room()).min(room / row)
    }

    /// Computes the functions of the partitions in `chunk`, of which it keeps the one that may go on.
    fn finish_partitions_of(
        &self,
        chunk: &mut Chunk,
        windows: &Windows,
        factory: &SinkFactory,
        last: bool,
        results: &mut Vec<Extent>,
    ) -> Result<()> {
        let rows = joined(&std::mem::take(&mut chunk.blocks), &factory.vars)?;
        let end = if last {
            rows.rows
        } else {
            windows.last_partition(&rows)?
        };
        if end == 0 {
            // All of it is one partition, of which there may be much more.
            chunk.wanted = 2 * rows.rows;
            chunk.blocks.push(rows);
            return Ok(());
        }
        let whole = rows.part(0..end);
        let own = windows.compute_all(&whole)?;
        let columns = result(factory, whole.columns, windows, own)?;
        self.put(&columns, end, results)?;
        let left = rows.rows - end;
        *chunk = Chunk {
            bytes: chunk.bytes / rows.rows.max(1) * left,
            rows: left,
            wanted: 0,
            blocks: vec![rows.part(end..rows.rows)],
        };
        Ok(())
    }

    /// Spills rows of the result.
    fn put(
        &self,
        columns: &BTreeMap<Var, Vector>,
        rows: usize,
        extents: &mut Vec<Extent>,
    ) -> Result<()> {
        for start in (0..rows).step_by(EXTENT_ROWS) {
            let run = start..rows.min(start + EXTENT_ROWS);
            let own = columns.values().map(|vector| vector.run(run.clone()));
            let own: Vec<Vector> = own.collect();
            extents.push(self.spill.write(own.iter(), run.len())?);
        }
        Ok(())
    }
}

/// Sorted rows of which functions are not computed yet.
#[derive(Default)]
struct Chunk {
    blocks: Vec<Materialized>,
    rows: usize,
    bytes: usize,
    /// How many rows it must have before another partition can be looked for.
    wanted: usize,
}

/// The columns of the result: those that are kept, and those of the functions.
fn result(
    factory: &SinkFactory,
    mut columns: BTreeMap<Var, Vector>,
    windows: &Windows,
    results: Vec<Vector>,
) -> Result<BTreeMap<Var, Vector>> {
    let Sink::Window { kept, .. } = &factory.sink else {
        return Err(Error::internal("a window of another sink"));
    };
    columns.retain(|var, _| kept.contains(var));
    columns.extend(windows.functions().map(|fold| fold.var).zip(results));
    Ok(columns)
}
