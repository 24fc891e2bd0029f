//! Variances and standard deviations.
//!
//! The sum and the sum of squared differences from the mean are kept up to date with each value (Youngs and Cramer, 1971), and
//! those of two parts are merged (Chan, Golub and LeVeque, 1979): a difference of two large sums would lose all digits where
//! values lie close together and far from zero. Numbers that are finite, but whose sums are not, are an error, as in PostgreSQL.

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, cells_of, grow, other_state, overflow, pairs, same,
};
use crate::vector::value::{Kind, Values, Vector};

/// For each group the number of its values, their sum, and the sum of the squares of their differences from the mean.
#[derive(Debug, Default)]
pub(crate) struct Deviations {
    counts: Vec<i64>,
    sums: Vec<f64>,
    squares: Vec<f64>,
}

impl Deviations {
    /// Adds a value; false if it and all before it are finite, but a sum is not.
    fn value(&mut self, group: usize, value: f64) -> bool {
        let before = self.counts[group] as f64;
        let (sum, count) = (self.sums[group], before + 1.0);
        self.counts[group] += 1;
        self.sums[group] += value;
        if before == 0.0 {
            if !value.is_finite() {
                self.squares[group] = f64::NAN;
            }
            return true;
        }
        let apart = value * count - self.sums[group];
        self.squares[group] += apart * apart / (count * before);
        if self.sums[group].is_infinite() || self.squares[group].is_infinite() {
            // What is infinitely far from the mean is no number.
            self.squares[group] = f64::NAN;
            return sum.is_infinite() || value.is_infinite();
        }
        true
    }
}

impl Accumulator for Deviations {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Deviations::default()))
    }

    fn resize(&mut self, groups: usize) {
        grow(&mut self.counts, groups, |n| vec![0; n], 0);
        grow(&mut self.sums, groups, |n| vec![0.0; n], 0.0);
        grow(&mut self.squares, groups, |n| vec![0.0; n], 0.0);
    }

    fn add(&mut self, groups: Option<&[u32]>, _rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(|| Error::internal("a variance without argument"))?;
        let Values::Float(values) = &vector.values else {
            return Err(Error::internal("a variance of another kind of values"));
        };
        let mut fits = true;
        for (row, value) in values.iter().enumerate() {
            if vector.valid.as_ref().is_none_or(|valid| valid[row]) {
                fits &= self.value(groups.map_or(0, |groups| groups[row] as usize), *value);
            }
        }
        if fits { Ok(()) } else { Err(overflow()) }
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &Deviations = same(other)?;
        for (from, to) in pairs(from, to).filter(|(from, _)| other.counts[*from] > 0) {
            if self.counts[to] == 0 {
                self.counts[to] = other.counts[from];
                self.sums[to] = other.sums[from];
                self.squares[to] = other.squares[from];
                continue;
            }
            let (own, theirs) = (self.counts[to] as f64, other.counts[from] as f64);
            let finite = |deviations: &Deviations, group: usize| {
                deviations.sums[group].is_finite() && !deviations.squares[group].is_infinite()
            };
            let fit = finite(self, to) && finite(other, from);
            let apart = self.sums[to] / own - other.sums[from] / theirs;
            self.counts[to] += other.counts[from];
            self.sums[to] += other.sums[from];
            self.squares[to] += other.squares[from] + own * theirs * apart * apart / (own + theirs);
            if fit && !finite(self, to) {
                return Err(overflow());
            }
        }
        Ok(())
    }

    fn hand_over(&mut self, some: &[u32]) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(Deviations {
            counts: cells_of(&self.counts, some),
            sums: cells_of(&self.sums, some),
            squares: cells_of(&self.squares, some),
        }))
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Int, Kind::Float, Kind::Float]
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let counts = some.iter().map(|group| self.counts[*group as usize]);
        let sums = some.iter().map(|group| self.sums[*group as usize]);
        let squares = some.iter().map(|group| self.squares[*group as usize]);
        Ok(vec![
            Vector::new(Values::Int(counts.collect())),
            Vector::new(Values::Float(sums.collect())),
            Vector::new(Values::Float(squares.collect())),
        ])
    }

    fn of_state(&self, state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let mut state = state.into_iter().map(|vector| vector.values);
        match (state.next(), state.next(), state.next()) {
            (
                Some(Values::Int(counts)),
                Some(Values::Float(sums)),
                Some(Values::Float(squares)),
            ) => Ok(Box::new(Deviations {
                counts,
                sums,
                squares,
            })),
            _ => Err(other_state()),
        }
    }

    fn memory(&self) -> usize {
        8 * (self.counts.capacity() + self.sums.capacity() + self.squares.capacity())
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
    fn what_does_not_fit_is_an_error() {
        let add = |values: &[f64]| {
            let mut made = Deviations::default();
            made.resize(1);
            let values = Vector::new(Values::Float(values.to_vec()));
            made.add(None, values.len(), Some(&values)).map(|()| made)
        };
        for values in [
            [1e308, -1e308],
            [1e308, 1e308],
            [1e154, 3e154],
            [1e200, 2e200],
        ] {
            assert!(
                matches!(add(&values), Err(Error::Overflow { .. })),
                "{values:?}"
            );
            let (mut one, other) = (of(&values[..1]), of(&values[1..]));
            let merged = one.merge(&other, &[0], &[0]);
            assert!(matches!(merged, Err(Error::Overflow { .. })), "{values:?}");
        }
        for values in [
            [f64::INFINITY, 1.0],
            [1.0, f64::NEG_INFINITY],
            [f64::NAN, 1e308],
        ] {
            let all = add(&values).unwrap();
            assert!(
                found(Function::VarPop, &all).is_some_and(f64::is_nan),
                "{values:?}"
            );
        }
        assert_eq!(found(Function::StddevSamp, &of(&[1e200, 1e200])), Some(0.0));
        let near = of(&[1e154, 1.1e154]);
        assert_eq!(
            found(Function::VarPop, &near),
            Some(2.499_999_999_999_993_4e305)
        );
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
