//! Variances and standard deviations.
//!
//! The mean and the sum of squared differences from it are kept up to date with each value (Welford, 1962), and those of
//! two parts are merged (Chan, Golub and LeVeque, 1979): a difference of two large sums would lose all digits where values
//! lie close together and far from zero.

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, grow, other_state, pairs, same,
};
use crate::vector::value::{Kind, Values, Vector};

/// For each group the number of its values, their mean, and the sum of the squares of their differences from it.
#[derive(Debug, Default)]
pub(crate) struct Deviations {
    counts: Vec<i64>,
    means: Vec<f64>,
    squares: Vec<f64>,
}

impl Deviations {
    fn value(&mut self, group: usize, value: f64) {
        let before = value - self.means[group];
        self.counts[group] += 1;
        self.means[group] += before / self.counts[group] as f64;
        self.squares[group] += before * (value - self.means[group]);
    }
}

impl Accumulator for Deviations {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Deviations::default()))
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.counts, groups, |n| vec![0; n], 0);
        grow(&mut self.means, groups, |n| vec![0.0; n], 0.0);
        grow(&mut self.squares, groups, |n| vec![0.0; n], 0.0);
    }

    fn add(&mut self, groups: Option<&[u32]>, _rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(|| Error::internal("a variance without argument"))?;
        let Values::Float(values) = &vector.values else {
            return Err(Error::internal("a variance of another kind of values"));
        };
        for (row, value) in values.iter().enumerate() {
            if vector.valid.as_ref().is_none_or(|valid| valid[row]) {
                self.value(groups.map_or(0, |groups| groups[row] as usize), *value);
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &Deviations = same(other)?;
        for (from, to) in pairs(from, to).filter(|(from, _)| other.counts[*from] > 0) {
            if self.counts[to] == 0 {
                self.counts[to] = other.counts[from];
                self.means[to] = other.means[from];
                self.squares[to] = other.squares[from];
                continue;
            }
            let (own, theirs) = (self.counts[to] as f64, other.counts[from] as f64);
            let apart = other.means[from] - self.means[to];
            self.counts[to] += other.counts[from];
            self.means[to] += apart * (theirs / (own + theirs));
            self.squares[to] += other.squares[from] + apart * apart * own * theirs / (own + theirs);
        }
        Ok(())
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Int, Kind::Float, Kind::Float]
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let counts = some.iter().map(|group| self.counts[*group as usize]);
        let means = some.iter().map(|group| self.means[*group as usize]);
        let squares = some.iter().map(|group| self.squares[*group as usize]);
        Ok(vec![
            Vector::new(Values::Int(counts.collect())),
            Vector::new(Values::Float(means.collect())),
            Vector::new(Values::Float(squares.collect())),
        ])
    }

    fn of_state(&self, state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let mut state = state.into_iter().map(|vector| vector.values);
        match (state.next(), state.next(), state.next()) {
            (
                Some(Values::Int(counts)),
                Some(Values::Float(means)),
                Some(Values::Float(squares)),
            ) => Ok(Box::new(Deviations {
                counts,
                means,
                squares,
            })),
            _ => Err(other_state()),
        }
    }

    fn memory(&self) -> usize {
        8 * (self.counts.capacity() + self.means.capacity() + self.squares.capacity())
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::Deviations(&self.counts, &self.squares)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::relation::Function;
    use crate::operators::aggregate::result::result;
    use crate::vector::value::Type;
    use arrow::datatypes::DataType;

    fn of(values: &[f64]) -> Deviations {
        let mut made = Deviations::default();
        made.resize(1);
        let values = Vector::new(Values::Float(values.to_vec()));
        made.add(None, values.len(), Some(&values)).unwrap();
        made
    }

    fn found(function: Function, of: &Deviations) -> Option<f64> {
        let ty = Type::of(&DataType::Float64, true).unwrap();
        let found = result(function, of, None, &[0], &ty, 0).unwrap();
        let Values::Float(values) = &found.values else {
            panic!("{found:?}")
        };
        found
            .valid
            .is_none_or(|valid| valid[0])
            .then_some(values[0])
    }

    #[test]
    fn samples_have_a_degree_of_freedom_less() {
        let all = of(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]);
        assert_eq!(found(Function::VarPop, &all), Some(4.0));
        assert_eq!(found(Function::StddevPop, &all), Some(2.0));
        assert_eq!(found(Function::VarSamp, &all), Some(32.0 / 7.0));
        assert_eq!(
            found(Function::StddevSamp, &all),
            Some((32.0f64 / 7.0).sqrt())
        );
        let one = of(&[3.0]);
        assert_eq!(found(Function::VarPop, &one), Some(0.0));
        assert_eq!(found(Function::VarSamp, &one), None);
        assert_eq!(found(Function::StddevPop, &of(&[])), None);
        // An infinite value is infinitely far from the mean, or not at all.
        assert!(found(Function::VarPop, &of(&[f64::INFINITY])).is_some_and(f64::is_nan));
    }

    #[test]
    fn parts_are_merged_where_values_lie_far_from_zero() {
        let near =
            |from: i32, to: i32| -> Vec<f64> { (from..to).map(|n| 1e9 + f64::from(n)).collect() };
        let mut all = of(&[]);
        for part in [near(0, 10), vec![], near(10, 11), near(11, 1_000)] {
            let part = of(&part);
            let spilled = part.state(&[0]).unwrap();
            let read = part.of_state(spilled).unwrap();
            all.merge(read.as_ref(), &[0], &[0]).unwrap();
        }
        // That of the numbers from 0 to 999.
        let wanted = (1_000.0 * 1_000.0 - 1.0) / 12.0;
        let variance = found(Function::VarPop, &all).unwrap();
        assert!((variance / wanted - 1.0).abs() < 1e-9, "{variance}");
    }
}
