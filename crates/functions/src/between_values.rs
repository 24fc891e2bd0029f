//! Continuous quantiles: `percentile_cont(fraction) within group (order by value)`, `quantile_cont(value, fraction)`.
//!
//! The quantile lies between the two values whose places surround it, at `low + (high - low) * part`, in doubles, as in
//! PostgreSQL: DataFusion's own rounds `part` to six digits, and leaves reals as they are.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion_expr::utils::format_state_name;
use datafusion_expr::{Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility};

use crate::quantiles::fraction;

/// The aggregate function.
pub(super) fn quantile() -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Between {
        signature: Signature::user_defined(Volatility::Immutable),
        aliases: vec!["quantile_cont".to_string()],
    }))
}

/// The value below which a given fraction of all values would lie.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Between {
    signature: Signature,
    aliases: Vec<String>,
}

impl AggregateUDFImpl for Between {
    fn name(&self) -> &str {
        "percentile_cont"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        let is_number = |of: &DataType| of.is_numeric() || of.is_null();
        match types {
            [value, fraction] if is_number(value) && is_number(fraction) => {
                Ok(vec![DataType::Float64, DataType::Float64])
            }
            [_, _] => plan_err!(
                "function percentile_cont(...) does not exist for these types: it takes numbers"
            ),
            _ => plan_err!("percentile_cont takes a value and a fraction from 0 to 1"),
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Float64)
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = Field::new_list_field(DataType::Float64, true);
        Ok(vec![Arc::new(Field::new(
            format_state_name(args.name, "values"),
            DataType::List(Arc::new(value)),
            true,
        ))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let first = args.order_bys.first();
        Ok(Box::new(Numbers {
            fraction: fraction(args.exprs)?,
            descending: first.is_some_and(|order| order.options.descending),
            distinct: args.is_distinct,
            values: Vec::new(),
        }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// The values of a group.
#[derive(Debug)]
struct Numbers {
    /// NULL gives NULL.
    fraction: Option<f64>,
    descending: bool,
    distinct: bool,
    values: Vec<f64>,
}

impl Numbers {
    fn take(&mut self, values: &ArrayRef) {
        let values = values.as_primitive::<Float64Type>();
        if values.null_count() == 0 {
            self.values
                .extend(values.values().iter().copied().map(normal));
        } else {
            self.values.extend(values.iter().flatten().map(normal));
        }
    }
}

/// The quantile of numbers, which is selected among them: a sort would take ten times as long.
fn quantile_of(numbers: &mut [f64], fraction: f64, descending: bool) -> Option<f64> {
    let last = numbers.len().checked_sub(1)?;
    let place = fraction * last as f64;
    let low = (place.floor() as usize).min(last);
    let high = (place.ceil() as usize).min(last);
    let least = if descending { last - high } else { low };
    let (_, found, greater) = numbers.select_nth_unstable_by(least, f64::total_cmp);
    let found = *found;
    if low == high {
        return Some(found);
    }
    let next = greater.iter().copied().min_by(f64::total_cmp);
    let next = next.unwrap_or(found);
    Some(between((found, next), fraction, numbers.len(), descending))
}

/// The quantile between two neighbours of `count` values, the lesser one first. Not between two places it is the first.
pub(super) fn between(
    (least, greatest): (f64, f64),
    fraction: f64,
    count: usize,
    descending: bool,
) -> f64 {
    let place = fraction * count.saturating_sub(1) as f64;
    let part = place - place.floor();
    let (from, to) = if descending {
        (greatest, least)
    } else {
        (least, greatest)
    };
    if part == 0.0 {
        return from;
    }
    from + (to - from) * part
}

/// The number without the sign of a NaN, so that its total order is PostgreSQL's: NaN is greater than others.
pub(super) fn normal(number: f64) -> f64 {
    if number.is_nan() {
        number.abs()
    } else {
        number
    }
}

impl Accumulator for Numbers {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(&values[0]);
        Ok(())
    }

    fn supports_retract_batch(&self) -> bool {
        true
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        for gone in values[0].as_primitive::<Float64Type>().iter().flatten() {
            let gone = normal(gone);
            let same = |own: &f64| own.total_cmp(&gone).is_eq();
            if let Some(at) = self.values.iter().position(same) {
                self.values.swap_remove(at);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        let Some(fraction) = self.fraction else {
            return Ok(ScalarValue::Float64(None));
        };
        let found = if self.distinct {
            // What leaves a frame may be there once more.
            let mut distinct = self.values.clone();
            distinct.sort_unstable_by(f64::total_cmp);
            distinct.dedup_by(|own, before| own == before || own.is_nan() && before.is_nan());
            quantile_of(&mut distinct, fraction, self.descending)
        } else {
            quantile_of(&mut self.values, fraction, self.descending)
        };
        Ok(ScalarValue::Float64(found))
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.values.capacity() * size_of::<f64>()
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let each = self
            .values
            .iter()
            .map(|own| ScalarValue::Float64(Some(*own)));
        let values = ScalarValue::new_list_nullable(&each.collect::<Vec<_>>(), &DataType::Float64);
        Ok(vec![ScalarValue::List(values)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.take(&values);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use fastrand::Rng;

    use super::quantile_of;

    /// The quantile of numbers that are sorted.
    fn of_sorted(mut numbers: Vec<f64>, fraction: f64, descending: bool) -> Option<f64> {
        numbers.sort_by(f64::total_cmp);
        if descending {
            numbers.reverse();
        }
        let place = fraction * numbers.len().checked_sub(1)? as f64;
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        let (from, to) = (numbers[low], numbers[high]);
        let is_one = low == high;
        Some(if is_one {
            from
        } else {
            from + (to - from) * (place - low as f64)
        })
    }

    #[test]
    fn quantiles_that_are_selected_are_those_of_a_sort() {
        let mut rng = Rng::with_seed(5);
        for _ in 0..2_000 {
            let number = |rng: &mut Rng| match rng.u8(0..40) {
                0 => f64::NAN,
                1 => f64::NEG_INFINITY,
                _ => f64::from(rng.i8(-50..50)) / 8.0,
            };
            let count = rng.usize(0..50);
            let mut numbers: Vec<f64> = (0..count).map(|_| number(&mut rng)).collect();
            let fraction = [0.0, 0.5, 1.0, rng.f64()][rng.usize(0..4)];
            let descending = rng.bool();
            let wanted = of_sorted(numbers.clone(), fraction, descending);
            // Also of numbers that are in parts in their order.
            for _ in 0..2 {
                let found = quantile_of(&mut numbers, fraction, descending);
                let bits =
                    |number: Option<f64>| number.filter(|own| !own.is_nan()).map(f64::to_bits);
                let is_nan = |number: Option<f64>| number.map(f64::is_nan);
                assert_eq!(bits(found), bits(wanted), "{fraction} of {numbers:?}");
                assert_eq!(is_nan(found), is_nan(wanted), "{fraction} of {numbers:?}");
            }
        }
    }
}
