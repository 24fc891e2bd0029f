//! `round`, `trunc`, `ceil` and `floor`: of decimals they have the [digits](rounded) that PostgreSQL's have.
//!
//! Of numbers that float `round(x)` goes to the even neighbour, as in PostgreSQL. With a number of places, which PostgreSQL takes only of decimals, they
//! look at the 15 digits that such a number has as a decimal, a `real` 6: DataFusion's multiply by a power of ten, which is infinite
//! for many places, and may be another number than it looks.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, Float64Array};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Float32Type, Float64Type, Int32Type};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};

use crate::decimals::rounded::{self, Way};

/// The functions.
pub(super) const NAMES: [&str; 4] = ["ceil", "floor", "round", "trunc"];

/// DataFusion's function of that name, `inner`, but for decimals and numbers that float.
pub(super) fn rounding(inner: &Arc<ScalarUDF>) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Rounding {
        inner: Arc::clone(inner),
    }))
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Rounding {
    inner: Arc<ScalarUDF>,
}

impl ScalarUDFImpl for Rounding {
    fn name(&self) -> &str {
        self.inner.name()
    }

    fn aliases(&self) -> &[String] {
        self.inner.aliases()
    }

    fn signature(&self) -> &Signature {
        self.inner.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.inner.inner().return_type(types)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let places = match args.scalar_arguments.get(1) {
            None => Some(0),
            Some(Some(places)) => match places.cast_to(&DataType::Int64)? {
                ScalarValue::Int64(places) => places,
                _ => None,
            },
            Some(None) => None,
        };
        let own = args.arg_fields.first().map(|field| field.data_type());
        match own.and_then(|own| rounded::result(own, places)) {
            Some(found) => {
                let is_null = args.arg_fields.iter().any(|field| field.is_nullable());
                Ok(Arc::new(Field::new(self.name(), found, is_null)))
            }
            None => self.inner.return_field_from_args(args),
        }
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let to = args.return_field.data_type();
        if let (Some(way), Some(first)) = (Way::of(self.name()), args.args.first())
            && first.data_type().is_decimal()
            && to.is_decimal()
        {
            return over_arrays(&args, |arrays, _| match arrays {
                [value, others @ ..] => rounded::rounded(value, others.first(), way, to),
                [] => internal_err!("{} takes a number", self.name()),
            });
        }
        if !matches!(self.name(), "round" | "trunc") {
            return self.inner.invoke_with_args(args);
        }
        let floats = match args.args.as_slice() {
            [value, ..] => matches!(value.data_type(), DataType::Float32 | DataType::Float64),
            [] => false,
        };
        if !floats
            || !matches!(
                args.return_field.data_type(),
                DataType::Float32 | DataType::Float64
            )
        {
            return self.inner.invoke_with_args(args);
        }
        over_arrays(&args, |arrays, rows| {
            let found = self.rounded(arrays, rows)?;
            Ok(cast(&found, args.return_field.data_type())?)
        })
    }
}

/// What `run` makes of arrays of the arguments, which have one row if all are constants.
fn over_arrays(
    args: &ScalarFunctionArgs,
    run: impl FnOnce(&[ArrayRef], usize) -> Result<ArrayRef>,
) -> Result<ColumnarValue> {
    let is_constant = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
    let constant = args.args.iter().all(is_constant);
    let rows = if constant { 1 } else { args.number_rows };
    let arrays = args.args.iter().map(|arg| arg.to_array(rows));
    let arrays = arrays.collect::<Result<Vec<ArrayRef>>>()?;
    let found = run(&arrays, rows)?;
    Ok(if constant {
        ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
    } else {
        ColumnarValue::Array(found)
    })
}

impl Rounding {
    fn rounded(&self, args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
        let rounds = self.name() == "round";
        let Some(places) = args.get(1) else {
            let whole = |value: f64| {
                if rounds {
                    value.round_ties_even()
                } else {
                    value.trunc()
                }
            };
            let values = cast(&args[0], &DataType::Float64)?;
            let found: Float64Array = values.as_primitive::<Float64Type>().unary(whole);
            return Ok(Arc::new(found));
        };
        let places = cast(places, &DataType::Int32)?;
        let places = places.as_primitive::<Int32Type>();
        if let Some(reals) = args[0].as_primitive_opt::<Float32Type>() {
            let of = |row: usize| {
                let is_there = reals.is_valid(row) && places.is_valid(row);
                is_there.then(|| {
                    let value = reals.value(row);
                    at_place(&format!("{value:.5e}"), places.value(row), rounds).unwrap_or(value)
                })
            };
            return Ok(Arc::new((0..rows).map(of).collect::<Float32Array>()));
        }
        let doubles = args[0].as_primitive::<Float64Type>();
        let of = |row: usize| {
            let is_there = doubles.is_valid(row) && places.is_valid(row);
            is_there.then(|| {
                let value = doubles.value(row);
                at_place(&format!("{value:.14e}"), places.value(row), rounds).unwrap_or(value)
            })
        };
        Ok(Arc::new((0..rows).map(of).collect::<Float64Array>()))
    }
}

/// The number `d.ddde7` with so many digits behind the point, rounded half away from zero or cut; `None` if it stays.
fn at_place<T: std::str::FromStr>(text: &str, places: i32, rounds: bool) -> Option<T> {
    // NaN and the infinities have no exponent.
    let (digits, exponent) = text.split_once('e')?;
    let exponent: i64 = exponent.parse().ok()?;
    let behind = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    let whole: i64 = digits.replace('.', "").parse().ok()?;
    // The number is `whole`, moved by so many digits.
    let moved = exponent - i64::try_from(behind).ok()?;
    let beyond = -moved - i64::from(places);
    if beyond <= 0 || whole == 0 {
        return None;
    }
    let sign = if digits.starts_with('-') { "-" } else { "" };
    let divisor = u32::try_from(beyond).ok();
    let divisor = divisor.and_then(|beyond| 10i64.checked_pow(beyond));
    let found = match divisor {
        Some(divisor) => {
            let (own, rest) = (whole.abs() / divisor, whole.abs() % divisor);
            own + i64::from(rounds && rest >= divisor - rest)
        }
        None => 0,
    };
    format!("{sign}{found}e{}", moved + beyond).parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_those_of_the_decimal() {
        let of = |value: f64, places, rounds| {
            at_place(&format!("{value:.14e}"), places, rounds).unwrap_or(value)
        };
        for (value, places, rounded, cut) in [
            (2.675, 2, 2.68, 2.67),
            (-2.675, 2, -2.68, -2.67),
            (0.29, 2, 0.29, 0.29),
            (1234.567, -2, 1200.0, 1200.0),
            (1250.0, -2, 1300.0, 1200.0),
            (0.5, 0, 1.0, 0.0),
            (1.5, 1000, 1.5, 1.5),
            (1e300, 400, 1e300, 1e300),
            (1.5, -1000, 0.0, 0.0),
            (1e-300, 2, 0.0, 0.0),
            (f64::INFINITY, 2, f64::INFINITY, f64::INFINITY),
            (0.0, 2, 0.0, 0.0),
        ] {
            assert_eq!(of(value, places, true), rounded, "round({value}, {places})");
            assert_eq!(of(value, places, false), cut, "trunc({value}, {places})");
        }
        assert!(of(f64::NAN, 2, true).is_nan());
        let third: Option<f32> = at_place("3.33333e-1", 2, true);
        assert_eq!(third, Some(0.33));
    }
}
