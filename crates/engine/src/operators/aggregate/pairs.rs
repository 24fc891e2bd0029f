//! Functions of pairs of numbers: for each group its [sums](PairSums).

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, grow, other_state, pairs, same,
};
use crate::operators::aggregate::pair_sums::{PARTS, PairSums};
use crate::vector::batch::Batch;
use crate::vector::value::{Kind, Values, Var, Vector};

/// The sums of the pairs of each group.
#[derive(Debug)]
pub(crate) struct Pairs {
    x: Var,
    y: Var,
    sums: Vec<PairSums>,
}

impl Pairs {
    /// Of these vectors.
    pub fn new(x: Var, y: Var) -> Pairs {
        Pairs { x, y, sums: vec![] }
    }
}

fn floats(vector: &Vector) -> Result<&[f64]> {
    match &vector.values {
        Values::Float(values) => Ok(values),
        _ => Err(Error::internal("pairs of another kind of values")),
    }
}

impl Accumulator for Pairs {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Pairs::new(self.x, self.y)))
    }

    fn resize(&mut self, groups: usize) {
        let none = |groups| vec![PairSums::default(); groups];
        grow(&mut self.sums, groups, none, PairSums::default());
    }

    fn add(&mut self, _: Option<&[u32]>, _: usize, _: Option<&Vector>) -> Result<()> {
        Err(Error::internal("one value of a pair"))
    }

    fn add_rows(&mut self, groups: Option<&[u32]>, batch: &Batch) -> Result<()> {
        let (x, y) = (batch.get(self.x)?, batch.get(self.y)?);
        let values = floats(x)?.iter().zip(floats(y)?);
        let is_valid = |vector: &Vector, row: usize| {
            let valid = vector.valid.as_ref();
            valid.is_none_or(|valid| valid[row])
        };
        match groups {
            _ if x.valid.is_some() || y.valid.is_some() => {
                for (row, (own_x, own_y)) in values.enumerate() {
                    if is_valid(x, row) && is_valid(y, row) {
                        let group = groups.map_or(0, |groups| groups[row] as usize);
                        self.sums[group].add(*own_x, *own_y)?;
                    }
                }
            }
            Some(groups) => {
                for ((own_x, own_y), group) in values.zip(groups) {
                    self.sums[*group as usize].add(*own_x, *own_y)?;
                }
            }
            None => {
                // Kept out of memory while it grows.
                let mut sums = self.sums.first().copied().unwrap_or_default();
                for (own_x, own_y) in values {
                    sums.add(*own_x, *own_y)?;
                }
                if let Some(own) = self.sums.first_mut() {
                    *own = sums;
                }
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &Pairs = same(other)?;
        for (from, to) in pairs(from, to) {
            self.sums[to].merge(&other.sums[from])?;
        }
        Ok(())
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Float; PARTS]
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let part = |part: usize| {
            let sums = some.iter().map(|group| &self.sums[*group as usize]);
            Vector::new(Values::Float(sums.map(|sums| sums.parts()[part]).collect()))
        };
        Ok((0..PARTS).map(part).collect())
    }

    fn of_state(&self, state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let columns = state.iter().map(floats).collect::<Result<Vec<_>>>()?;
        let columns = <[&[f64]; PARTS]>::try_from(columns).map_err(|_| other_state())?;
        let rows = columns.iter().map(|column| column.len()).min();
        let of_row = |row: usize| PairSums::of_parts(columns.map(|column| column[row]));
        Ok(Box::new(Pairs {
            sums: (0..rows.unwrap_or(0)).map(of_row).collect(),
            ..Pairs::new(self.x, self.y)
        }))
    }

    fn memory(&self) -> usize {
        size_of::<PairSums>() * self.sums.capacity()
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::Pairs(&self.sums)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::relation::PairFunction;

    fn batch(x: &[f64], y: &[Option<f64>]) -> Batch {
        let mut batch = Batch::new(2);
        batch.restart(x.len());
        batch.set(0, Vector::new(Values::Float(x.to_vec())));
        let values = y.iter().map(|y| y.unwrap_or_default()).collect();
        batch.set(
            1,
            Vector {
                values: Values::Float(values),
                valid: Some(y.iter().map(Option::is_some).collect()),
            },
        );
        batch
    }

    #[test]
    fn columns_without_nulls_give_what_others_do() {
        let x: Vec<f64> = (0..50).map(|n| f64::from(n * n % 13) / 3.0).collect();
        let y: Vec<f64> = (0..50).map(|n| f64::from(n * 7 % 11) - 1e6).collect();
        let groups: Vec<u32> = (0..50).map(|n| n % 3).collect();
        let some: Vec<Option<f64>> = y.iter().copied().map(Some).collect();
        let valid = batch(&x, &some);
        let mut known = batch(&x, &some);
        known.set(1, Vector::new(Values::Float(y)));
        for groups in [None, Some(&groups[..])] {
            let of = |batch: &Batch| {
                let mut all = Pairs::new(0, 1);
                all.resize(3);
                all.add_rows(groups, batch).unwrap();
                all.add_rows(groups, batch).unwrap();
                all.sums
            };
            assert_eq!(of(&known), of(&valid));
            assert_eq!(of(&known)[0].count() == 100, groups.is_none());
        }
    }

    #[test]
    fn pairs_with_a_null_are_none_and_states_come_back() {
        let mut all = Pairs::new(0, 1);
        all.resize(2);
        let own = batch(
            &[1.0, 2.0, 3.0, 9.0],
            &[Some(2.0), Some(4.0), Some(6.0), None],
        );
        all.add_rows(Some(&[1, 1, 1, 0]), &own).unwrap();
        assert_eq!(all.sums[0].count(), 0);
        assert_eq!(all.sums[1].count(), 3);
        let read = all.of_state(all.state(&[1, 0]).unwrap()).unwrap();
        all.merge(read.as_ref(), &[0, 1], &[0, 1]).unwrap();
        assert_eq!(all.sums[0].value(PairFunction::Slope), Some(2.0));
        assert_eq!(all.sums[0].value(PairFunction::Correlation), Some(1.0));
        assert_eq!(all.sums[1].count(), 3);
    }
}
