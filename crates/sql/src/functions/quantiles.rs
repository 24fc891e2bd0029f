//! Discrete quantiles: `quantile_disc(value, fraction)`, `percentile_disc(fraction) within group (order by value)`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch, RecordBatchOptions};
use arrow::datatypes::{DataType, Field, FieldRef, Float64Type, Schema};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{AccumulatorArgs, StateFieldsArgs};
use datafusion::logical_expr::utils::format_state_name;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, Signature, Volatility,
};

use crate::error::Error;
use crate::functions::aggregates::compared;

pub(super) fn all() -> Vec<Arc<AggregateUDF>> {
    vec![Arc::new(AggregateUDF::from(Quantile {
        signature: Signature::user_defined(Volatility::Immutable),
        aliases: vec!["percentile_disc".to_string()],
    }))]
}

/// The least value that is not exceeded by at least a given fraction of all values.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Quantile {
    signature: Signature,
    aliases: Vec<String>,
}

impl AggregateUDFImpl for Quantile {
    fn name(&self) -> &str {
        "quantile_disc"
    }

    fn aliases(&self) -> &[String] {
        &self.aliases
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, types: &[DataType]) -> Result<Vec<DataType>> {
        match types {
            [value, fraction] if fraction.is_numeric() || fraction.is_null() => {
                Ok(vec![value.clone(), DataType::Float64])
            }
            _ => plan_err!("a discrete quantile takes a value and a fraction from 0 to 1"),
        }
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        match types {
            [value, _] => Ok(value.clone()),
            _ => plan_err!("a discrete quantile takes a value and a fraction from 0 to 1"),
        }
    }

    fn state_fields(&self, args: StateFieldsArgs) -> Result<Vec<FieldRef>> {
        let value = Field::new_list_field(args.return_type().clone(), true);
        Ok(vec![Arc::new(Field::new(
            format_state_name(args.name, "values"),
            DataType::List(Arc::new(value)),
            true,
        ))])
    }

    fn accumulator(&self, args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        let descending = args
            .order_bys
            .first()
            .is_some_and(|order| order.options.descending);
        Ok(Box::new(Values {
            fraction: fraction(&args)?,
            descending,
            distinct: args.is_distinct,
            of: args.return_type().clone(),
            values: Vec::new(),
            bytes: 0,
        }))
    }

    fn supports_within_group_clause(&self) -> bool {
        true
    }
}

/// The constant fraction of a call; none if it is NULL.
pub(super) fn fraction(args: &AccumulatorArgs) -> Result<Option<f64>> {
    let options = RecordBatchOptions::new().with_row_count(Some(1));
    let row = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), vec![], &options)?;
    let value = match args.exprs.get(1).map(|expr| expr.evaluate(&row)) {
        Some(Ok(value)) => value.into_array(1)?,
        _ => return plan_err!("the fraction of a quantile must be a constant"),
    };
    let value = value.as_primitive_opt::<Float64Type>();
    match value.map(|v| v.iter().next().flatten()) {
        Some(None) => Ok(None),
        Some(Some(fraction)) if (0.0..=1.0).contains(&fraction) => Ok(Some(fraction)),
        Some(Some(fraction)) => {
            let message = format!("percentile value {fraction} is not between 0 and 1");
            Err(Error::coded("22003", message).into())
        }
        None => plan_err!("the fraction of a quantile must be a number"),
    }
}

#[derive(Debug)]
struct Values {
    /// NULL gives NULL.
    fraction: Option<f64>,
    descending: bool,
    distinct: bool,
    of: DataType,
    values: Vec<ScalarValue>,
    /// Memory of the values.
    bytes: usize,
}

impl Values {
    fn take(&mut self, values: &ArrayRef) -> Result<()> {
        self.values.reserve(values.len());
        for row in 0..values.len() {
            if !values.is_null(row) {
                let value = ScalarValue::try_from_array(values, row)?;
                self.bytes += value.size();
                self.values.push(value);
            }
        }
        Ok(())
    }
}

impl Accumulator for Values {
    fn update_batch(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.take(&values[0])
    }

    fn evaluate(&mut self) -> Result<ScalarValue> {
        self.values.sort_unstable_by(compared);
        if self.distinct {
            self.values.dedup();
        }
        if self.descending {
            self.values.reverse();
        }
        let Some(fraction) = self.fraction else {
            return ScalarValue::try_from(&self.of);
        };
        let rank = (fraction * self.values.len() as f64).ceil() as usize;
        match self.values.get(rank.saturating_sub(1)) {
            Some(value) => Ok(value.clone()),
            None => ScalarValue::try_from(&self.of),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.bytes
    }

    fn state(&mut self) -> Result<Vec<ScalarValue>> {
        let values = ScalarValue::new_list_nullable(&self.values, &self.of);
        Ok(vec![ScalarValue::List(values)])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> Result<()> {
        for values in states[0].as_list::<i32>().iter().flatten() {
            self.take(&values)?;
        }
        Ok(())
    }
}
