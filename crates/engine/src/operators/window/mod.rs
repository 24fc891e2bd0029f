//! Window functions, computed of rows that are sorted by their partition keys and then by their order.

mod aggregates;
mod called;
mod carried;
mod cells;
mod distances;
mod extremes;
mod frames;
mod ranks;
mod shape;
pub(crate) mod sort;
pub(crate) mod streamed;
mod summaries;
mod values;
mod whole;

use std::sync::Arc;

use memory::Budget;

use crate::cancel::Stop;
use crate::error::{Result, missing};
use crate::logical::aggregate_call::AggregateCall;
use crate::logical::relation::{Function, Key};
use crate::logical::window::{FrameBounds, WindowFold, WindowFunction, WindowPart};
use crate::operators::window::cells::Cells;
use crate::operators::window::distances::SortedKey;
use crate::operators::window::frames::Frames;
use crate::operators::window::shape::Shape;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Var, Vector};

/// What window functions are computed, and over which rows.
pub(crate) struct Windows {
    pub types: Arc<[Type]>,
    /// The keys by which the rows are sorted.
    pub order: Vec<Key>,
    pub parts: Vec<WindowPart>,
    /// The aggregate functions that the engine has no accumulator for.
    pub aggregates: Arc<[Arc<dyn AggregateCall>]>,
    /// From which their results are reserved while they are made.
    pub budget: Arc<Budget>,
    pub stop: Stop,
}

impl Windows {
    fn column<'r>(&self, rows: &'r Materialized, var: Var) -> Result<&'r Vector> {
        rows.columns.get(&var).ok_or_else(missing)
    }

    fn keys<'r>(&'r self, rows: &'r Materialized, keys: &[Key]) -> Result<Vec<Cells<'r>>> {
        let cells = |key: &Key| Cells::of(self.column(rows, key.var)?, &self.types[key.var]);
        keys.iter().map(cells).collect()
    }

    /// The functions, part by part.
    pub fn functions(&self) -> impl Iterator<Item = &WindowFold> {
        self.parts.iter().flat_map(|part| &part.functions)
    }

    /// Bytes of the results for one row.
    pub fn width(&self) -> usize {
        let functions = self.functions();
        functions.map(|fold| self.types[fold.var].width() + 1).sum()
    }

    /// How many keys all partitions have: rows that differ in one of them are in different partitions of each function.
    pub fn common_partition(&self) -> usize {
        let parts = self.parts.iter();
        parts.map(|part| part.partition).min().unwrap_or(0)
    }

    /// Where partitions of so many keys begin, for tasks of about `size` rows each; and the number of rows.
    pub fn cuts(&self, rows: &Materialized, partition: usize, size: usize) -> Result<Vec<usize>> {
        let keys = self.keys(rows, &self.order[..partition])?;
        let mut cuts = vec![0];
        for from in (size..rows.rows).step_by(size.max(1)) {
            if cuts.last().is_some_and(|last| *last < from) {
                // Rows are sorted: those of the partition that the row before belongs to come first.
                let (mut low, mut high) = (from, rows.rows);
                while low < high {
                    let middle = low.midpoint(high);
                    if keys.iter().all(|key| key.same(from - 1, middle)) {
                        low = middle + 1;
                    } else {
                        high = middle;
                    }
                }
                cuts.push(low);
            }
        }
        cuts.push(rows.rows);
        cuts.dedup();
        Ok(cuts)
    }

    /// The first row of the last partition that all functions have.
    pub fn last_partition(&self, rows: &Materialized) -> Result<usize> {
        let keys = self.keys(rows, &self.order[..self.common_partition()])?;
        let (mut low, mut high) = (0, rows.rows.saturating_sub(1));
        while low < high {
            let middle = low.midpoint(high);
            if keys.iter().all(|key| key.same(middle, rows.rows - 1)) {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        Ok(low)
    }

    /// The results of all functions, in their order, for sorted rows that are whole partitions.
    ///
    /// # Errors
    /// Those of [`Windows::compute`].
    pub fn compute_all(&self, rows: &Materialized) -> Result<Vec<Vector>> {
        let mut all = Vec::new();
        for part in &self.parts {
            all.extend(self.compute(part, rows)?);
        }
        Ok(all)
    }

    /// The results of the functions of a part, in their order, for sorted rows that are whole partitions.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a sum does not fit its type;
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn compute(&self, part: &WindowPart, rows: &Materialized) -> Result<Vec<Vector>> {
        if part.functions.is_empty() {
            return Ok(vec![]);
        }
        let (partition, order) = self.order.split_at(part.partition);
        let order = &order[..part.order];
        let vectors = |keys: &[Key]| -> Result<Vec<&Vector>> {
            let keys = keys.iter();
            keys.map(|key| self.column(rows, key.var)).collect()
        };
        let mut functions = part.functions.iter();
        let peers = functions.any(|fold| fold.function.needs_peers());
        let peers = peers.then(|| vectors(order)).transpose()?;
        let partition = vectors(partition)?;
        let shape = Shape::of(rows.rows, &partition, peers.as_deref(), &self.stop)?;
        let mut results: Vec<Option<Vector>> = vec![None; part.functions.len()];
        // Functions over the same frames are computed together, so that these are found once.
        for (place, fold) in part.functions.iter().enumerate() {
            if results[place].is_some() {
                continue;
            }
            let Some(bounds) = fold.function.frame() else {
                results[place] = Some(self.unframed(fold, rows, &shape)?);
                continue;
            };
            let key = self.sorted_key(order, rows)?;
            let frames = Frames::of(&bounds, &shape, key.as_ref())?;
            for (result, fold) in results.iter_mut().zip(&part.functions).skip(place) {
                if result.is_none() && fold.function.frame() == Some(bounds) {
                    self.stop.check()?;
                    *result = Some(self.framed(fold, rows, &bounds, &frames, &shape)?);
                }
            }
        }
        results
            .into_iter()
            .map(|own| own.ok_or_else(missing))
            .collect()
    }

    /// The key from which frames have distances, if there is a single one.
    fn sorted_key<'r>(
        &'r self,
        order: &[Key],
        rows: &'r Materialized,
    ) -> Result<Option<SortedKey<'r>>> {
        let [key] = order else {
            return Ok(None);
        };
        Ok(Some(SortedKey {
            vector: self.column(rows, key.var)?,
            ty: &self.types[key.var],
            descending: key.descending,
            nulls_first: key.nulls_first,
        }))
    }

    /// The results of a function that depends on no frame.
    fn unframed(&self, fold: &WindowFold, rows: &Materialized, shape: &Shape) -> Result<Vector> {
        let ty = &self.types[fold.var];
        self.stop.check()?;
        match &fold.function {
            WindowFunction::RowNumber => Ok(ranks::whole(ranks::row_numbers(shape), ty)),
            WindowFunction::Rank => Ok(ranks::whole(ranks::ranks(shape), ty)),
            WindowFunction::DenseRank => Ok(ranks::whole(ranks::dense_ranks(shape), ty)),
            WindowFunction::Ntile(buckets) => Ok(ranks::whole(ranks::ntiles(shape, *buckets), ty)),
            WindowFunction::PercentRank => Ok(ranks::percent_ranks(shape)),
            WindowFunction::CumeDist => Ok(ranks::cume_dists(shape)),
            WindowFunction::Shift {
                rows: by,
                default,
                ignore_nulls,
            } => {
                let arg = self.column(rows, fold.arg.ok_or_else(missing)?)?;
                values::shifted(arg, ty.kind, *by, (default, *ignore_nulls), shape)
            }
            WindowFunction::Value { .. } | WindowFunction::Aggregate(..) => Err(missing()),
        }
    }

    /// The results of a function of frames.
    fn framed(
        &self,
        fold: &WindowFold,
        rows: &Materialized,
        bounds: &FrameBounds,
        frames: &Frames,
        shape: &Shape,
    ) -> Result<Vector> {
        let ty = &self.types[fold.var];
        let arg = match fold.arg {
            Some(arg) => Some((self.column(rows, arg)?, &self.types[arg])),
            None => None,
        };
        match (&fold.function, arg) {
            (WindowFunction::Aggregate(Function::Count, _), arg) => {
                let counts = aggregates::counts(arg.map(|(arg, _)| arg), frames, shape)?;
                Ok(ranks::whole(counts, ty))
            }
            (
                WindowFunction::Value {
                    row, ignore_nulls, ..
                },
                Some((arg, _)),
            ) => values::picked(arg, *row, *ignore_nulls, frames, shape),
            (
                WindowFunction::Aggregate(function @ (Function::Min | Function::Max), _),
                Some((arg, of)),
            ) => {
                let least = *function == Function::Min;
                extremes::extremes(arg, of, least, bounds, frames, shape)
            }
            (WindowFunction::Aggregate(Function::Call(number), _), Some((arg, of))) => {
                let call = self.aggregates.get(*number).ok_or_else(missing)?;
                called::results((call.as_ref(), &self.budget), (arg, of), ty, frames, shape)
            }
            (WindowFunction::Aggregate(function, _), Some((arg, of))) => {
                aggregates::sums(*function, arg, of, ty, frames, shape)
            }
            _ => Err(missing()),
        }
    }
}
