//! Functions of one decimal whose value for NaN and the infinities follows from that alone: `abs`, `round` and the like.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal256Array};
use arrow::datatypes::{DataType, Decimal256Type, FieldRef, i256};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use table::{NotFinite, only_numbers};

use crate::decimals::{decimals, digits};

/// The functions: those that round leave what is no number as it is.
const FUNCTIONS: [&str; 5] = ["abs", "ceil", "floor", "round", "trunc"];

/// The function `inner`, of a decimal of more than 38 digits, for what is no number, too; `None` if it is none of these.
pub fn passing(inner: &Arc<ScalarUDF>) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.contains(&inner.name()).then(|| {
        Arc::new(ScalarUDF::from(Through {
            inner: Arc::clone(inner),
        }))
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Through {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Through {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.inner.return_field_from_args(args)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(first) = args.args.first() else {
            return internal_err!("{} takes a number", self.name());
        };
        let first = match first {
            ColumnarValue::Array(values) => Arc::clone(values),
            ColumnarValue::Scalar(value) => value.to_array()?,
        };
        if decimals(&first).is_none() || digits(args.return_field.data_type()).is_none() {
            return self.inner.invoke_with_args(args);
        }
        let constant = args
            .args
            .iter()
            .all(|arg| matches!(arg, ColumnarValue::Scalar(_)));
        let rows = if constant { 1 } else { args.number_rows };
        let values = args.args[0].to_array(rows)?;
        let values = values.as_primitive::<Decimal256Type>();
        let others = args.args[1..].iter().map(|arg| arg.to_array(rows));
        let others = others.collect::<Result<Vec<ArrayRef>>>()?;
        args.args[0] = ColumnarValue::Array(Arc::new(only_numbers(values)));
        args.number_rows = rows;
        let found = self.inner.invoke_with_args(args)?.to_array(rows)?;
        let found = put(self.inner.name(), values, &others, &found);
        Ok(if constant {
            ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
        } else {
            ColumnarValue::Array(found)
        })
    }
}

/// `found` with the function's values for what is no number in `values`.
fn put(
    function: &str,
    values: &Decimal256Array,
    others: &[ArrayRef],
    found: &ArrayRef,
) -> ArrayRef {
    let numbers = found.as_primitive::<Decimal256Type>();
    let of = |row: usize| -> Option<i256> {
        let odd = values.is_valid(row).then(|| values.value(row));
        match odd.and_then(NotFinite::of) {
            Some(_) if others.iter().any(|other| other.is_null(row)) => None,
            Some(NotFinite::NegativeInfinity) if function == "abs" => {
                Some(NotFinite::Infinity.value())
            }
            Some(own) => Some(own.value()),
            None => numbers.is_valid(row).then(|| numbers.value(row)),
        }
    };
    let made: Decimal256Array = (0..values.len()).map(of).collect();
    Arc::new(made.with_data_type(numbers.data_type().clone()))
}
