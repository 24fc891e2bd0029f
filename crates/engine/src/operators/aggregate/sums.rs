//! COUNT, SUM, and the sums for AVG.

use std::fmt;

use algebra::fold;

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, cells_of, grow, other_state, overflow, pairs, same,
};
use crate::vector::value::{Kind, Values, Vector};

/// The number of values that are not NULL, or of rows if there is no argument; or the total of such numbers.
#[derive(Debug, Default)]
pub(crate) struct Count {
    counts: Vec<i64>,
    /// Whether the values are counts of parts of the rows. A join can have more rows than 64 bits count.
    of_counts: bool,
}

impl Count {
    /// The total of the counts of each group; 0 without any.
    pub(crate) fn total() -> Count {
        Count {
            counts: Vec::new(),
            of_counts: true,
        }
    }
}

/// Adds counts of parts, those that are `valid`, to the totals of their groups.
fn total(
    groups: Option<&[u32]>,
    counts: &[i64],
    valid: Option<&[bool]>,
    totals: &mut [i64],
) -> Result<()> {
    for (row, count) in counts.iter().enumerate() {
        if valid.is_none_or(|valid| valid[row]) {
            let group = groups.map_or(0, |groups| groups[row] as usize);
            add_to(&mut totals[group], *count)?;
        }
    }
    Ok(())
}

fn add_to(total: &mut i64, count: i64) -> Result<()> {
    *total = total.checked_add(count).ok_or_else(|| Error::Overflow {
        what: "the number of rows of a join".into(),
    })?;
    Ok(())
}

impl Accumulator for Count {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Count {
            counts: Vec::new(),
            of_counts: self.of_counts,
        }))
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.counts, groups, |n| vec![0; n], 0);
    }

    fn add(&mut self, groups: Option<&[u32]>, rows: usize, arg: Option<&Vector>) -> Result<()> {
        let valid = arg.and_then(|vector| vector.valid.as_deref());
        if !self.of_counts {
            fold::count(groups, rows, valid, &mut self.counts);
            return Ok(());
        }
        match arg.map(|vector| &vector.values) {
            Some(Values::Int(counts)) => total(groups, counts, valid, &mut self.counts),
            _ => Err(Error::internal("a total without counts")),
        }
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &Count = same(other)?;
        for (from, to) in pairs(from, to) {
            add_to(&mut self.counts[to], other.counts[from])?;
        }
        Ok(())
    }

    fn hand_over(&mut self, some: &[u32]) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Count {
            counts: cells_of(&self.counts, some),
            of_counts: self.of_counts,
        }))
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Int]
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let counts = some.iter().map(|group| self.counts[*group as usize]);
        Ok(vec![Vector::new(Values::Int(counts.collect()))])
    }

    fn of_state(&self, mut state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        match state.pop().map(|vector| vector.values) {
            Some(Values::Int(counts)) => Ok(Box::new(Count {
                counts,
                of_counts: self.of_counts,
            })),
            _ => Err(other_state()),
        }
    }

    fn memory(&self) -> usize {
        8 * self.counts.capacity()
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::Counts
    }

    fn counts(&self) -> Option<&[i64]> {
        Some(&self.counts)
    }
}

/// Sums in cells of type `C`. NULLs are ignored.
#[derive(Debug, Default)]
pub(crate) struct Sum<C> {
    cells: Vec<C>,
}

/// A number that sums are accumulated in.
pub(crate) trait SumCell: Copy + Default + fmt::Debug + Send + Sync + 'static {
    const KIND: Kind;

    /// The sum of no values, which changes no value that is added to it.
    const NONE: Self;

    /// This many sums of no values; of integers in zeroed memory that is not touched.
    fn none(groups: usize) -> Vec<Self>;

    /// Adds each value to the cell of its group.
    fn add(groups: Option<&[u32]>, vector: &Vector, cells: &mut [Self]) -> Result<()>;

    /// The sum of two cells; `None` on overflow.
    fn plus(self, other: Self) -> Option<Self>;

    fn values(cells: Vec<Self>) -> Values;

    fn of_values(values: Values) -> Option<Vec<Self>>;

    fn found(cells: &[Self]) -> AccumulatedValues<'_>;
}

fn other_values() -> Error {
    Error::internal("a sum of another kind of values")
}

impl SumCell for i64 {
    const KIND: Kind = Kind::Int;
    const NONE: i64 = 0;

    fn none(groups: usize) -> Vec<i64> {
        vec![0; groups]
    }

    /// Only used for values so small that no sum overflows.
    fn add(groups: Option<&[u32]>, vector: &Vector, cells: &mut [i64]) -> Result<()> {
        let Values::Int(values) = &vector.values else {
            return Err(other_values());
        };
        fold::sum_i64_small(groups, values, vector.valid.as_deref(), cells);
        Ok(())
    }

    fn plus(self, other: i64) -> Option<i64> {
        Some(self + other)
    }

    fn values(cells: Vec<i64>) -> Values {
        Values::Int(cells)
    }

    fn of_values(values: Values) -> Option<Vec<i64>> {
        match values {
            Values::Int(cells) => Some(cells),
            _ => None,
        }
    }

    fn found(cells: &[i64]) -> AccumulatedValues<'_> {
        AccumulatedValues::Int(cells)
    }
}

impl SumCell for i128 {
    const KIND: Kind = Kind::Wide;
    const NONE: i128 = 0;

    fn none(groups: usize) -> Vec<i128> {
        vec![0; groups]
    }

    fn add(groups: Option<&[u32]>, vector: &Vector, cells: &mut [i128]) -> Result<()> {
        let valid = vector.valid.as_deref();
        match &vector.values {
            Values::Int(values) => fold::sum_i64(groups, values, valid, cells),
            Values::Wide(values) => {
                fold::sum_i128(groups, values, valid, cells).map_err(|_| overflow())?
            }
            _ => return Err(other_values()),
        }
        Ok(())
    }

    fn plus(self, other: i128) -> Option<i128> {
        self.checked_add(other)
    }

    fn values(cells: Vec<i128>) -> Values {
        Values::Wide(cells)
    }

    fn of_values(values: Values) -> Option<Vec<i128>> {
        match values {
            Values::Wide(cells) => Some(cells),
            _ => None,
        }
    }

    fn found(cells: &[i128]) -> AccumulatedValues<'_> {
        AccumulatedValues::Wide(cells)
    }
}

impl SumCell for f64 {
    const KIND: Kind = Kind::Float;
    /// As in PostgreSQL the sum of values that are all -0 is -0, which 0 would change.
    const NONE: f64 = -0.0;

    fn none(groups: usize) -> Vec<f64> {
        vec![Self::NONE; groups]
    }

    fn add(groups: Option<&[u32]>, vector: &Vector, cells: &mut [f64]) -> Result<()> {
        let Values::Float(values) = &vector.values else {
            return Err(other_values());
        };
        fold::sum_f64(groups, values, vector.valid.as_deref(), cells);
        Ok(())
    }

    fn plus(self, other: f64) -> Option<f64> {
        Some(self + other)
    }

    fn values(cells: Vec<f64>) -> Values {
        Values::Float(cells)
    }

    fn of_values(values: Values) -> Option<Vec<f64>> {
        match values {
            Values::Float(cells) => Some(cells),
            _ => None,
        }
    }

    fn found(cells: &[f64]) -> AccumulatedValues<'_> {
        AccumulatedValues::Float(cells)
    }
}

impl<C: SumCell> Accumulator for Sum<C> {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Sum::<C>::default()))
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.cells, groups, C::none, C::NONE);
    }

    fn add(&mut self, groups: Option<&[u32]>, _rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(|| Error::internal("a sum without argument"))?;
        C::add(groups, vector, &mut self.cells)
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &Sum<C> = same(other)?;
        for (from, to) in pairs(from, to) {
            let sum = self.cells[to].plus(other.cells[from]);
            self.cells[to] = sum.ok_or_else(overflow)?;
        }
        Ok(())
    }

    fn hand_over(&mut self, some: &[u32]) -> Result<Box<dyn Accumulator>> {
        let cells = cells_of(&self.cells, some);
        Ok(Box::new(Sum { cells }))
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![C::KIND]
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let cells = some.iter().map(|group| self.cells[*group as usize]);
        Ok(vec![Vector::new(C::values(cells.collect()))])
    }

    fn of_state(&self, mut state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let cells = state.pop().and_then(|vector| C::of_values(vector.values));
        let cells = cells.ok_or_else(other_state)?;
        Ok(Box::new(Sum { cells }))
    }

    fn memory(&self) -> usize {
        size_of::<C>() * self.cells.capacity()
    }

    fn found(&self) -> AccumulatedValues<'_> {
        C::found(&self.cells)
    }
}
