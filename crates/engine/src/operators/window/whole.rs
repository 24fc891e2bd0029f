//! Values of window functions that take a look at the whole of a partition, of which a chunk of sorted rows may have only a part.
//!
//! The partitions that lie within a chunk are computed of it. Of one that goes on behind it, the rows that follow are read ahead
//! once, for their number and for the totals of the functions, which then hold for all chunks that have a part of it.

use std::ops::Range;

use crate::error::{Error, Result};
use crate::logical::relation::Function;
use crate::logical::window::{
    FrameBounds, FrameEdge, FrameUnits, WindowFold, WindowFunction, WindowPart,
};
use crate::operators::window::Windows;
use crate::operators::window::carried::{Carried, follow, partition_end, whole_at};
use crate::operators::window::ranks::{ntile, whole};
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Values, Vector};

/// Hands the rows from the last one of a chunk on to a function, in blocks that each begin with that row, until it returns false
/// or there are none left.
pub(crate) type Ahead<'a> =
    dyn FnMut(&mut dyn FnMut(&Materialized) -> Result<bool>) -> Result<()> + 'a;

/// A share of the rows of the partition.
#[derive(Clone, Copy)]
pub(super) enum Share {
    PercentRank,
    CumeDist,
    Ntile(u64),
}

impl Share {
    /// The function whose value at a row, among the rows of the partition from any on, says where the row is.
    fn place(self) -> WindowFunction {
        match self {
            Share::PercentRank => WindowFunction::Rank,
            Share::CumeDist => WindowFunction::Aggregate(
                Function::Count,
                FrameBounds::new(FrameUnits::Range, FrameEdge::First, FrameEdge::Current),
            ),
            Share::Ntile(_) => WindowFunction::RowNumber,
        }
    }

    /// The values at the rows with these places, counted from the row behind `before`, in a partition of `rows` rows.
    fn values(self, places: &Vector, before: i64, rows: i64, ty: &Type) -> Vector {
        let places = (0..places.len()).map(|row| whole_at(&places.values, row) as i64 + before);
        let share = |of: i64| move |part: i64| part as f64 / of as f64;
        match self {
            Share::PercentRank => {
                let ranks = places.map(|rank| rank - 1).map(share((rows - 1).max(1)));
                Vector::new(Values::Float(ranks.collect()))
            }
            Share::CumeDist => Vector::new(Values::Float(places.map(share(rows)).collect())),
            Share::Ntile(buckets) => {
                let bucket = |number: i64| ntile(number as u64, rows as u64, buckets) as i64;
                whole(places.map(bucket).collect(), ty)
            }
        }
    }
}

/// The functions of a part that take a look at whole partitions.
#[derive(Default)]
pub(super) struct Whole {
    /// Those whose value is the same for all rows, with how the values of two parts of the rows are put together.
    totals: Vec<(WindowFold, Carried)>,
    /// Those of a row's place among all.
    shares: Vec<(WindowFold, Share)>,
    /// The partition that the last chunk ended in, if it went on.
    open: Option<Open>,
}

/// What is known of all of a partition.
struct Open {
    rows: i64,
    totals: Vec<Vector>,
}

/// The rows `from..end` of sorted rows, of which those before were computed already.
pub(super) struct Computing<'c> {
    pub rows: &'c Materialized,
    pub from: usize,
    pub end: usize,
    /// How many of the first belong to the partition of the row before `from`.
    pub on: usize,
    /// How many rows that partition had.
    pub before: i64,
    /// The first row of the last partition.
    pub last: usize,
}

impl Whole {
    /// Adds a function with one value for all rows of a partition. Returns its place among the values.
    pub fn total(&mut self, fold: WindowFold, how: Carried) -> usize {
        self.totals.push((fold, how));
        self.totals.len() - 1
    }

    /// Adds a function of a row's place among all. Returns its place among the shares.
    pub fn share(&mut self, fold: WindowFold, share: Share) -> usize {
        self.shares.push((fold, share));
        self.shares.len() - 1
    }

    /// Whether rows that are peers must be in one chunk.
    pub fn needs_peers(&self) -> bool {
        let mut shares = self.shares.iter();
        shares.any(|(fold, _)| fold.function.needs_peers())
    }

    /// The values of all functions for a chunk of rows of `part`: those with one value for a partition, and those of places.
    pub fn compute(
        &mut self,
        windows: &Windows,
        part: &WindowPart,
        chunk: &Computing<'_>,
        ahead: &mut Ahead<'_>,
    ) -> Result<(Vec<Vector>, Vec<Vector>)> {
        if self.totals.is_empty() && self.shares.is_empty() {
            return Ok((vec![], vec![]));
        }
        let own = chunk.rows.part(chunk.from..chunk.end);
        let of = |functions| WindowPart {
            functions,
            ..part.clone()
        };
        let totals = of(self.totals.iter().map(|(fold, _)| fold.clone()).collect());
        let mut found = windows.compute(&totals, &own)?;
        let shares = of(self.shares.iter().map(|(fold, _)| fold.clone()).collect());
        let mut of_places = windows.compute(&shares, &own)?;
        let placed = |(fold, share): &(WindowFold, Share)| WindowFold {
            function: share.place(),
            arg: None,
            ..fold.clone()
        };
        let places = of(self.shares.iter().map(placed).collect());
        // What is cut at either end of the chunk.
        let (first, last) = (0..chunk.on, chunk.last - chunk.from..own.rows);
        if chunk.on > 0 {
            let open = self.open.as_ref().ok_or_else(unknown)?;
            let places = windows.compute(&places, &own.part(first.clone()))?;
            self.put(open, windows, &mut found, first.clone())?;
            self.place(open, windows, &mut of_places, first, &places, chunk.before)?;
        }
        let is_another = chunk.on < own.rows;
        if is_another {
            self.open = self.read_ahead(windows, &totals, (&found, last.len()), ahead)?;
        }
        if let (true, Some(open)) = (is_another, &self.open) {
            let places = windows.compute(&places, &own.part(last.clone()))?;
            self.put(open, windows, &mut found, last.clone())?;
            self.place(open, windows, &mut of_places, last, &places, 0)?;
        }
        Ok((found, of_places))
    }

    /// What is known of the partition of the last row, of which the chunk has `rows` rows, and the totals of these at the end of
    /// `found`; `None` if it does not go on.
    fn read_ahead(
        &self,
        windows: &Windows,
        totals: &WindowPart,
        (found, rows): (&[Vector], usize),
        ahead: &mut Ahead<'_>,
    ) -> Result<Option<Open>> {
        let mut open = Open {
            rows: rows as i64,
            totals: vec![],
        };
        for all in found {
            open.totals.push(all.run(all.len() - 1..all.len()));
        }
        let mut goes_on = false;
        ahead(&mut |block| {
            windows.stop.check()?;
            let keys = windows.keys(block, &windows.order[..totals.partition])?;
            let same = |a: usize, b: usize| keys.iter().all(|key| key.same(a, b));
            let end = partition_end(0, block.rows, &same);
            if end > 1 {
                goes_on = true;
                let more = windows.compute(totals, &block.part(1..end))?;
                for (number, all) in more.iter().enumerate() {
                    let (fold, how) = &self.totals[number];
                    let (mut one, ty) = (all.run(0..1), &windows.types[fold.var]);
                    follow(*how, (&mut one, ty), &open.totals[number], (1, 0))?;
                    open.totals[number] = one;
                }
                open.rows += end as i64 - 1;
            }
            Ok(end == block.rows)
        })?;
        Ok(goes_on.then_some(open))
    }

    /// Sets the totals of the rows `run`, which are of the partition `open`.
    fn put(
        &self,
        open: &Open,
        windows: &Windows,
        found: &mut [Vector],
        run: Range<usize>,
    ) -> Result<()> {
        for (number, (fold, _)) in self.totals.iter().enumerate() {
            let all = open.totals[number].at(&vec![0; run.len()])?;
            replace(&mut found[number], &windows.types[fold.var], &run, &all)?;
        }
        Ok(())
    }

    /// Sets the shares of the rows `run` with these places, counted from the row behind the first `before` of the partition `open`.
    fn place(
        &self,
        open: &Open,
        windows: &Windows,
        found: &mut [Vector],
        run: Range<usize>,
        places: &[Vector],
        before: i64,
    ) -> Result<()> {
        for (number, (fold, share)) in self.shares.iter().enumerate() {
            let ty = &windows.types[fold.var];
            let values = share.values(&places[number], before, open.rows, ty);
            replace(&mut found[number], ty, &run, &values)?;
        }
        Ok(())
    }
}

/// Puts `values` in the place of the rows `run` of `all`.
fn replace(all: &mut Vector, ty: &Type, run: &Range<usize>, values: &Vector) -> Result<()> {
    let runs = [
        (0, 0..run.start),
        (1, 0..run.len()),
        (0, run.end..all.len()),
    ];
    let parts = [&*all, values];
    let replaced = Vector::runs(ty.kind, &parts, &runs)?;
    *all = replaced;
    Ok(())
}

fn unknown() -> Error {
    Error::internal("a partition that goes on and was not read ahead")
}
