//! Continuous quantiles: `percentile_cont(fraction) within group (order by value)`, `quantile_cont(value, fraction)`.
//!
//! The quantile lies between the two values whose places surround it, at `low + (high - low) * part`, in doubles, as in
//! PostgreSQL: DataFusion's own rounds `part` to six digits, and leaves reals as they are.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use crate::functions::quantiles::fraction;

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
            fraction: fraction(&args)?,
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
        self.values.extend(values.iter().flatten());
    }
}

/// PostgreSQL's order of doubles: NaN equals itself and is greater than others.
fn compared(left: &f64, right: &f64) -> Ordering {
    let by_nan = || left.is_nan().cmp(&right.is_nan());
    left.partial_cmp(right).unwrap_or_else(by_nan)
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
            let same = |own: &f64| compared(own, &gone).is_eq();
            if let Some(at) = self.values.iter().position(same) {
                self.values.swap_remove(at);
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.values.sort_unstable_by(compared);
        let mut distinct = Vec::new();
        let mut values = &self.values;
        if self.distinct {
            distinct.clone_from(values);
            distinct.dedup_by(|left, right| compared(left, right).is_eq());
            values = &distinct;
        }
        let (Some(fraction), Some(last)) = (self.fraction, values.len().checked_sub(1)) else {
            return Ok(ScalarValue::Float64(None));
        };
        let at = |place: usize| {
            let place = place.min(last);
            values[if self.descending { last - place } else { place }]
        };
        let place = fraction * last as f64;
        let (low, high) = (place.floor() as usize, place.ceil() as usize);
        let (from, to) = (at(low), at(high));
        let found = if low == high {
            from
        } else {
            from + (to - from) * (place - low as f64)
        };
        Ok(ScalarValue::Float64(Some(found)))
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
