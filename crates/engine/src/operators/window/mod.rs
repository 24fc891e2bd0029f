//! Window functions, computed of rows that are sorted by their partition keys and then by their order.

mod aggregates;
mod cells;
mod extremes;
mod ranks;
mod shape;
pub(crate) mod sort;
mod values;

use std::sync::Arc;

use crate::cancel::Stop;
use crate::error::{Result, missing};
use crate::logical::relation::{Function, Key, WindowFold, WindowFunction};
use crate::operators::window::cells::Cells;
use crate::operators::window::shape::Shape;
use crate::vector::rows::Materialized;
use crate::vector::value::{Type, Var, Vector};

/// What window functions are computed, and over which partitions.
pub(crate) struct Windows {
    pub types: Arc<[Type]>,
    /// How many of the first keys of `order` are those of partitions.
    pub partition: usize,
    pub order: Vec<Key>,
    pub functions: Vec<WindowFold>,
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

    /// The vectors that the functions and their partitions need of each row.
    pub fn needs(&self) -> impl Iterator<Item = Var> + '_ {
        let args = self.functions.iter().filter_map(|fold| fold.arg);
        self.order.iter().map(|key| key.var).chain(args)
    }

    /// Bytes of the results for one row.
    pub fn width(&self) -> usize {
        let functions = self.functions.iter();
        functions.map(|fold| self.types[fold.var].width() + 1).sum()
    }

    /// The first row from `from` on with which a partition begins; the number of rows if there is none.
    pub fn next_partition(&self, rows: &Materialized, from: usize) -> Result<usize> {
        let keys = self.keys(rows, &self.order[..self.partition])?;
        let begins = |row: &usize| *row == 0 || keys.iter().any(|key| !key.same(row - 1, *row));
        Ok((from..rows.rows).find(begins).unwrap_or(rows.rows))
    }

    /// The first row of the last partition.
    pub fn last_partition(&self, rows: &Materialized) -> Result<usize> {
        let keys = self.keys(rows, &self.order[..self.partition])?;
        let begins = |row: &usize| keys.iter().any(|key| !key.same(row - 1, *row));
        Ok((1..rows.rows).rev().find(begins).unwrap_or(0))
    }

    /// The results of the functions, in their order, for sorted rows that are whole partitions.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::Error::Overflow) if a sum does not fit its type;
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub fn compute(&self, rows: &Materialized) -> Result<Vec<Vector>> {
        let (partition, order) = self.order.split_at(self.partition);
        let partition = self.keys(rows, partition)?;
        let order = self.keys(rows, order)?;
        let shape = Shape::of(rows.rows, &partition, &order);
        drop((partition, order));
        let all = self.functions.iter();
        all.map(|fold| {
            self.stop.check()?;
            self.function(fold, rows, &shape)
        })
        .collect()
    }

    fn function(&self, fold: &WindowFold, rows: &Materialized, shape: &Shape) -> Result<Vector> {
        let ty = &self.types[fold.var];
        let arg = || self.column(rows, fold.arg.ok_or_else(missing)?);
        match &fold.function {
            WindowFunction::RowNumber => Ok(ranks::whole(ranks::row_numbers(shape), ty)),
            WindowFunction::Rank => Ok(ranks::whole(ranks::ranks(shape), ty)),
            WindowFunction::DenseRank => Ok(ranks::whole(ranks::dense_ranks(shape), ty)),
            WindowFunction::Ntile(buckets) => Ok(ranks::whole(ranks::ntiles(shape, *buckets), ty)),
            WindowFunction::PercentRank => Ok(ranks::percent_ranks(shape)),
            WindowFunction::CumeDist => Ok(ranks::cume_dists(shape)),
            WindowFunction::Shift { rows, default } => {
                values::shifted(arg()?, ty.kind, *rows, default, shape)
            }
            WindowFunction::FirstValue(frame) => {
                values::picked(arg()?, *frame, shape, |rows| rows.next())
            }
            WindowFunction::LastValue(frame) => {
                values::picked(arg()?, *frame, shape, |rows| rows.next_back())
            }
            WindowFunction::NthValue(frame, nth) => {
                let skipped = usize::try_from(nth.saturating_sub(1)).unwrap_or(usize::MAX);
                values::picked(arg()?, *frame, shape, |rows| rows.nth(skipped))
            }
            WindowFunction::Aggregate(Function::Count, frame) => {
                let arg = fold.arg.map(|_| arg()).transpose()?;
                let counts = aggregates::counts(arg, *frame, shape);
                Ok(ranks::whole(counts, ty))
            }
            WindowFunction::Aggregate(function @ (Function::Min | Function::Max), frame) => {
                let (arg, least) = (arg()?, *function == Function::Min);
                let of = &self.types[fold.arg.ok_or_else(missing)?];
                extremes::extremes(arg, of, least, *frame, shape)
            }
            WindowFunction::Aggregate(function, frame) => {
                let of = &self.types[fold.arg.ok_or_else(missing)?];
                aggregates::sums(*function, arg()?, of, ty, *frame, shape)
            }
        }
    }
}
