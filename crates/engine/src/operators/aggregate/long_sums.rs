//! SUM of numbers so large that 128 bits may not hold a partial sum, though they may hold the whole.

use arrow::datatypes::i256;

use crate::error::{Error, Result};
use crate::operators::aggregate::accumulator::{
    AccumulatedValues, Accumulator, cells_of, other_state, pairs, same,
};
use crate::vector::value::{Kind, Values, Vector};

/// Sums in 256 bits, which no sum of as many numbers as there can be leaves. NULLs are ignored.
#[derive(Debug, Default)]
pub(crate) struct LongSum {
    cells: Vec<i256>,
}

impl Accumulator for LongSum {
    fn fresh(&self) -> Result<Box<dyn Accumulator>> {
        Ok(Box::new(LongSum::default()))
    }

    fn resize(&mut self, groups: usize) {
        self.cells.resize(groups, i256::ZERO);
    }

    fn add(&mut self, groups: Option<&[u32]>, _rows: usize, arg: Option<&Vector>) -> Result<()> {
        let vector = arg.ok_or_else(|| Error::internal("a sum without argument"))?;
        let Values::Wide(values) = &vector.values else {
            return Err(Error::internal("a sum of another kind of values"));
        };
        for (row, value) in values.iter().enumerate() {
            if vector.valid.as_ref().is_none_or(|valid| valid[row]) {
                let cell = &mut self.cells[groups.map_or(0, |groups| groups[row] as usize)];
                *cell = cell.wrapping_add(i256::from_i128(*value));
            }
        }
        Ok(())
    }

    fn merge(&mut self, other: &dyn Accumulator, from: &[u32], to: &[u32]) -> Result<()> {
        let other: &LongSum = same(other)?;
        for (from, to) in pairs(from, to) {
            self.cells[to] = self.cells[to].wrapping_add(other.cells[from]);
        }
        Ok(())
    }

    fn hand_over(&mut self, some: &[u32]) -> Result<Box<dyn Accumulator>> {
        let cells = cells_of(&self.cells, some);
        Ok(Box::new(LongSum { cells }))
    }

    fn kinds(&self) -> Vec<Kind> {
        vec![Kind::Wide, Kind::Wide]
    }

    fn state(&self, some: &[u32]) -> Result<Vec<Vector>> {
        let parts = some
            .iter()
            .map(|group| self.cells[*group as usize].to_parts());
        let (low, high) = parts.map(|(low, high)| (low as i128, high)).unzip();
        Ok(vec![
            Vector::new(Values::Wide(low)),
            Vector::new(Values::Wide(high)),
        ])
    }

    fn of_state(&self, state: Vec<Vector>) -> Result<Box<dyn Accumulator>> {
        let mut state = state.into_iter().map(|vector| vector.values);
        let (Some(Values::Wide(low)), Some(Values::Wide(high))) = (state.next(), state.next())
        else {
            return Err(other_state());
        };
        let cells = low.into_iter().zip(high);
        let cells = cells.map(|(low, high)| i256::from_parts(low as u128, high));
        Ok(Box::new(LongSum {
            cells: cells.collect(),
        }))
    }

    fn memory(&self) -> usize {
        size_of::<i256>() * self.cells.capacity()
    }

    fn found(&self) -> AccumulatedValues<'_> {
        AccumulatedValues::Long(&self.cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logical::relation::Function;
    use crate::operators::aggregate::result::result;
    use crate::vector::value::Type;
    use arrow::datatypes::DataType;

    #[test]
    fn only_the_whole_sum_must_fit() {
        let most = 10i128.pow(38) - 1;
        let mut sum = LongSum::default();
        sum.resize(2);
        let values = vec![most, most, most, -most, -most, 5, -7];
        let valid = Some(vec![true, true, true, true, true, false, true]);
        let vector = Vector {
            values: Values::Wide(values),
            valid,
        };
        sum.add(Some(&[0, 0, 1, 0, 0, 0, 0]), 7, Some(&vector))
            .unwrap();
        let spilled = sum.state(&[0, 1]).unwrap();
        let mut all = LongSum::default();
        all.resize(2);
        all.merge(sum.of_state(spilled).unwrap().as_ref(), &[0, 1], &[0, 1])
            .unwrap();
        let ty = Type::of(&DataType::Decimal128(38, 0), true).unwrap();
        let of = |all: &LongSum, function, groups: &[u32], counts: &[i64]| {
            result(function, all, Some(counts), groups, &ty, 0).map(|vector| vector.values)
        };
        let Values::Wide(sums) = of(&all, Function::Sum, &[0, 1], &[5, 1]).unwrap() else {
            panic!("another kind")
        };
        assert_eq!(sums, [-7, most]);
        let Values::Wide(averages) = of(&all, Function::Avg, &[0, 1], &[5, 1]).unwrap() else {
            panic!("another kind")
        };
        assert_eq!(averages, [-1, most]);
        // A sum that does not fit is an error, its average is not.
        all.merge(
            &LongSum {
                cells: vec![i256::from_i128(most)],
            },
            &[0],
            &[1],
        )
        .unwrap();
        assert!(of(&all, Function::Sum, &[1], &[5, 2]).is_err());
        let Values::Wide(averages) = of(&all, Function::Avg, &[1], &[5, 2]).unwrap() else {
            panic!("another kind")
        };
        assert_eq!(averages, [most]);
    }
}
