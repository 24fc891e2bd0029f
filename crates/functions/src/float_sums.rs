//! Sums of floats, as PostgreSQL begins them: with the first value. DataFusion begins with zero, to which -0 adds nothing that is seen.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Float64Array, Float64Builder};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{Accumulator, EmitTo, GroupsAccumulator};

/// What changes no float that is added to it, zeros of both signs included.
const NONE: f64 = -0.0;

/// The sums of groups, and whether each has a value.
#[derive(Debug, Default)]
pub(super) struct FloatSums {
    sums: Vec<f64>,
    seen: Vec<bool>,
}

/// The only sum.
#[derive(Debug, Default)]
pub(super) struct FloatSum(Option<f64>);

fn floats(values: &[ArrayRef]) -> Result<Float64Array> {
    let [values] = values else {
        return internal_err!("a sum of {} values", values.len());
    };
    let values = cast(values, &DataType::Float64)?;
    Ok(values.as_primitive::<Float64Type>().clone())
}

impl Accumulator for FloatSum {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        let values = floats(values)?;
        if values.null_count() < values.len() {
            let own = values.iter().flatten().fold(NONE, |sum, value| sum + value);
            self.0 = Some(self.0.unwrap_or(NONE) + own);
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        Ok(ScalarValue::Float64(self.0))
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        self.update_batch(states)
    }
}

impl GroupsAccumulator for FloatSums {
    fn update_batch(
        &mut self,
        values: &[ArrayRef],
        groups: &[usize],
        filter: Option<&BooleanArray>,
        total: usize,
    ) -> Result<()> {
        let values = floats(values)?;
        self.sums.resize(total, NONE);
        self.seen.resize(total, false);
        for (row, (value, group)) in values.iter().zip(groups).enumerate() {
            let counts = filter.is_none_or(|own| own.is_valid(row) && own.value(row));
            if let Some(value) = value.filter(|_| counts) {
                self.sums[*group] += value;
                self.seen[*group] = true;
            }
        }
        Ok(())
    }

    fn evaluate(&mut self, emit: EmitTo) -> Result<ArrayRef> {
        let (sums, seen) = (
            emit.take_needed(&mut self.sums),
            emit.take_needed(&mut self.seen),
        );
        let mut all = Float64Builder::with_capacity(sums.len());
        for (sum, seen) in sums.into_iter().zip(seen) {
            all.append_option(seen.then_some(sum));
        }
        Ok(Arc::new(all.finish()))
    }

    fn state(&mut self, emit: EmitTo) -> Result<Vec<ArrayRef>> {
        Ok(vec![self.evaluate(emit)?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef], groups: &[usize], total: usize) -> Result<()> {
        self.update_batch(states, groups, None, total)
    }

    fn convert_to_state(
        &self,
        values: &[ArrayRef],
        filter: Option<&BooleanArray>,
    ) -> Result<Vec<ArrayRef>> {
        let own = floats(values)?;
        let own = own.iter().enumerate().map(|(row, value)| {
            let counts = filter.is_none_or(|own| own.is_valid(row) && own.value(row));
            value.filter(|_| counts)
        });
        Ok(vec![Arc::new(own.collect::<Float64Array>())])
    }

    fn size(&self) -> usize {
        size_of_val(self) + 8 * self.sums.capacity() + self.seen.capacity()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(all: &[Option<f64>]) -> Vec<ArrayRef> {
        vec![Arc::new(Float64Array::from(all.to_vec()))]
    }

    #[test]
    fn a_sum_of_negative_zeros_is_one() {
        let mut sum = FloatSum::default();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Float64(None));
        sum.update_batch(&values(&[None])).unwrap();
        assert_eq!(sum.evaluate().unwrap(), ScalarValue::Float64(None));
        sum.update_batch(&values(&[Some(-0.0), None, Some(-0.0)]))
            .unwrap();
        let zero = |sum: ScalarValue| match sum {
            ScalarValue::Float64(Some(sum)) => sum.to_bits(),
            other => panic!("{other:?}"),
        };
        assert_eq!(zero(sum.evaluate().unwrap()), (-0.0f64).to_bits());
        sum.merge_batch(&values(&[Some(0.0)])).unwrap();
        assert_eq!(zero(sum.evaluate().unwrap()), 0);

        let mut sums = FloatSums::default();
        let own = values(&[Some(-0.0), Some(1.5), Some(-0.0), Some(0.0), None]);
        sums.update_batch(&own, &[0, 1, 0, 2, 3], None, 4).unwrap();
        let found = sums.evaluate(EmitTo::All).unwrap();
        let found = found.as_primitive::<Float64Type>();
        assert_eq!(found.value(0).to_bits(), (-0.0f64).to_bits());
        assert_eq!((found.value(1), found.value(2).to_bits()), (1.5, 0));
        assert!(found.is_null(3));
    }
}
