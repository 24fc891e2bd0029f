//! The totals of counts: what parts of the rows counted, together.

use algebra::fold;

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, grow, other_state, pairs, same,
};
use crate::vector::value::{Kind, Values, Vector};

/// The total of the counts of each group; 0 without any.
#[derive(Debug, Default)]
pub(crate) struct CountTotal {
    counts: Vec<i64>,
}

impl Accumulator for CountTotal {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(CountTotal::default()))
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.counts, groups, |n| vec![0; n], 0);
    }

    /// No total is more than the number of all rows, so it fits 64 bits.
    fn add(&mut self, groups: Option<&[u32]>, _rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(|| Error::internal("a total without counts"))?;
        let Values::Int(counts) = &vector.values else {
            return Err(Error::internal("counts of another kind"));
        };
        fold::sum_i64_small(groups, counts, vector.valid.as_deref(), &mut self.counts);
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &CountTotal = same(other)?;
        pairs(from, to).for_each(|(from, to)| self.counts[to] += other.counts[from]);
        Ok(())
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
            Some(Values::Int(counts)) => Ok(Box::new(CountTotal { counts })),
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
