//! Decimals from numbers that float and the other way. Arrow multiplies by a power of ten in binary: 1234567890.5 has other digits
//! then.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Decimal128Array, Decimal256Array, Float32Array, Float64Array,
};
use arrow::compute::cast;
use arrow::datatypes::{
    DataType, Decimal128Type, Decimal256Type, DecimalType, Float32Type, Float64Type, i256,
};
use arrow::error::ArrowError;
use datafusion_common::{Result, exec_err, internal_err};
use table::decimal_text;

/// Digits of a double, and of a `real`, that count, as in PostgreSQL.
const DOUBLE: usize = 15;
const REAL: usize = 6;

/// The greatest whole number up to which each is a double, too.
const EXACT: i128 = 1 << 53;

/// The greatest power of ten that is a double.
const EXACT_POWER: i8 = 22;

/// Numbers that float as decimals; NULL for what is no number.
///
/// # Errors
/// If `strict`, for a number with too many digits.
pub(super) fn to_decimals(values: &ArrayRef, to: &DataType, strict: bool) -> Result<ArrayRef> {
    let mut digits = Digits::default();
    let unscaled: Vec<Option<Found>> = match values.data_type() {
        DataType::Float64 => {
            let values = values.as_primitive::<Float64Type>();
            let found = values.iter().map(|value| digits.of_double(value?, to));
            found.collect()
        }
        _ => {
            let values = cast(values, &DataType::Float32)?;
            let values = values.as_primitive::<Float32Type>();
            let found = values.iter().map(|value| digits.of_real(value?, to));
            found.collect()
        }
    };
    fn each<T: DecimalType>(
        found: Vec<Option<Found>>,
        (precision, scale): (u8, i8),
        strict: bool,
        narrow: impl Fn(i256) -> Option<T::Native>,
    ) -> Result<Vec<Option<T::Native>>, ArrowError> {
        let one = |found: Option<Found>| {
            let Some(found) = found else {
                return Ok(None);
            };
            let Some(value) = found.unscaled.and_then(&narrow) else {
                let name = T::PREFIX;
                return Err(ArrowError::CastError(format!(
                    "Cannot cast to {name}({precision}, {scale}). Overflowing on {:?}",
                    found.number
                )));
            };
            T::validate_decimal_precision(value, precision, scale)?;
            Ok(Some(value))
        };
        let each = found.into_iter().map(|found| match one(found) {
            Err(_) if !strict => Ok(None),
            found => found,
        });
        each.collect()
    }
    match to {
        DataType::Decimal128(precision, scale) => {
            let of = (*precision, *scale);
            let found = each::<Decimal128Type>(unscaled, of, strict, i256::to_i128)?;
            let found = Decimal128Array::from(found);
            Ok(Arc::new(found.with_data_type(to.clone())))
        }
        DataType::Decimal256(precision, scale) => {
            let of = (*precision, *scale);
            let found = each::<Decimal256Type>(unscaled, of, strict, Some)?;
            let found = Decimal256Array::from(found);
            Ok(Arc::new(found.with_data_type(to.clone())))
        }
        other => internal_err!("{other} is no type of decimals"),
    }
}

/// A number that floats, and its digits as a decimal; none if they are more than a decimal has.
struct Found {
    number: f64,
    unscaled: Option<i256>,
}

/// The digits of numbers that float, written to one text after the other.
#[derive(Default)]
struct Digits {
    text: String,
}

impl Digits {
    fn of_double(&mut self, value: f64, to: &DataType) -> Option<Found> {
        self.text.clear();
        // The text of a number cannot fail to be written.
        let _ = write!(self.text, "{value:.*e}", DOUBLE - 1);
        self.found(value, to)
    }

    fn of_real(&mut self, value: f32, to: &DataType) -> Option<Found> {
        self.text.clear();
        let _ = write!(self.text, "{value:.*e}", REAL - 1);
        self.found(value.into(), to)
    }

    fn found(&self, number: f64, to: &DataType) -> Option<Found> {
        if !number.is_finite() {
            return None;
        }
        let scale = match to {
            DataType::Decimal128(_, scale) | DataType::Decimal256(_, scale) => *scale,
            _ => 0,
        };
        Some(Found {
            number,
            unscaled: unscaled(&self.text, scale),
        })
    }
}

/// The number `d.ddde7` as a decimal with so many digits behind the point, rounded half away from zero.
fn unscaled(text: &str, scale: i8) -> Option<i256> {
    let (digits, exponent) = text.split_once('e')?;
    let exponent: i32 = exponent.parse().ok()?;
    let behind = digits.split_once('.').map_or(0, |(_, behind)| behind.len());
    let whole: i64 = digits.replace('.', "").parse().ok()?;
    let shift = exponent - i32::try_from(behind).ok()? + i32::from(scale);
    if shift >= 0 {
        if whole == 0 {
            return Some(i256::ZERO);
        }
        let factor = i256::from_i128(10).checked_pow(shift.unsigned_abs())?;
        return i256::from_i128(whole.into()).checked_mul(factor);
    }
    // Of at most 17 digits none is left.
    let Some(divisor) = 10i64.checked_pow(shift.unsigned_abs()) else {
        return Some(i256::ZERO);
    };
    let (found, rest) = (whole / divisor, whole % divisor);
    let is_up = rest.abs() >= divisor - rest.abs();
    let found = if is_up { found + whole.signum() } else { found };
    Some(i256::from_i128(found.into()))
}

/// Decimals as the nearest numbers that float; NaN and the infinities stay.
///
/// # Errors
/// For a number that is too great.
pub(super) fn of_decimals(values: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    match to {
        DataType::Float64 => {
            let found = each(values, |float| float)?;
            Ok(Arc::new(Float64Array::from(found)))
        }
        _ => {
            let found = each(values, |float| float as f32)?;
            Ok(cast(&Float32Array::from(found), to)?)
        }
    }
}

/// A number as `T` for each decimal; `of` makes one of a double that is exact.
fn each<T: FromStr + Copy + Into<f64>>(
    values: &ArrayRef,
    of: impl Fn(f64) -> T,
) -> Result<Vec<Option<T>>> {
    let (precision, scale) = match values.data_type() {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            (*precision, *scale)
        }
        other => return internal_err!("{other} is no type of decimals"),
    };
    let power = (0..=EXACT_POWER).contains(&scale);
    let power = power.then(|| 10f64.powi(scale.into()));
    let quick = |value: i128| match power {
        Some(power) if (-EXACT..=EXACT).contains(&value) => Some(of(value as f64 / power)),
        _ => None,
    };
    let slow = |value: i256| -> Result<T> {
        let text = decimal_text(value, precision, scale);
        let Ok(found) = text.parse::<T>() else {
            return internal_err!("{text} is a number");
        };
        let number: f64 = found.into();
        if number.is_infinite() && text.ends_with(|end: char| end.is_ascii_digit()) {
            return exec_err!("value out of range: overflow");
        }
        Ok(found)
    };
    if let Some(own) = values.as_primitive_opt::<Decimal128Type>() {
        let one = |value: i128| match quick(value) {
            Some(found) => Ok(found),
            None => slow(i256::from_i128(value)),
        };
        return own.iter().map(|value| value.map(one).transpose()).collect();
    }
    let own = values.as_primitive::<Decimal256Type>();
    let one = |value: i256| match value.to_i128().and_then(quick) {
        Some(found) => Ok(found),
        None => slow(value),
    };
    own.iter().map(|value| value.map(one).transpose()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decimals(values: ArrayRef, scale: i8) -> Vec<String> {
        let to = DataType::Decimal128(38, scale);
        let found = to_decimals(&values, &to, true).unwrap();
        let found = found.as_primitive::<Decimal128Type>();
        (0..found.len())
            .map(|row| found.value_as_string(row))
            .collect()
    }

    #[test]
    fn doubles_have_15_digits_and_reals_6() {
        let doubles: ArrayRef = Arc::new(Float64Array::from(vec![
            1_234_567_890.5,
            -1_234_567_890.5,
            1.234_567_890_123_456_8,
            123_456_789_012_345.5,
            1.5e-7,
            1e20,
            0.0,
            1e-300,
        ]));
        assert_eq!(
            decimals(Arc::clone(&doubles), 10),
            [
                "1234567890.5000000000",
                "-1234567890.5000000000",
                "1.2345678901",
                "123456789012346.0000000000",
                "0.0000001500",
                "100000000000000000000.0000000000",
                "0.0000000000",
                "0.0000000000",
            ]
        );
        let reals: ArrayRef = Arc::new(Float32Array::from(vec![0.1, 16_777_217.0]));
        assert_eq!(decimals(reals, 2), ["0.10", "16777200.00"]);
        let halves: ArrayRef = Arc::new(Float64Array::from(vec![2.675, 1.005, -2.5, 0.04]));
        assert_eq!(
            decimals(Arc::clone(&halves), 2),
            ["2.68", "1.01", "-2.50", "0.04"]
        );
        assert_eq!(decimals(halves, 0), ["3", "1", "-3", "0"]);
        let narrow = DataType::Decimal128(5, 2);
        assert!(to_decimals(&doubles, &narrow, true).is_err());
        let found = to_decimals(&doubles, &narrow, false).unwrap();
        assert!(found.is_null(0) && found.is_valid(2));
    }

    #[test]
    fn decimals_become_the_nearest_double() {
        let values = vec![3i128, 12_345_678_901_234_567_890, -1, 0];
        for scale in [0, 1, 15, 30] {
            let to = DataType::Decimal128(38, scale);
            let own = Decimal128Array::from(values.clone()).with_data_type(to);
            let wanted: Vec<f64> = (0..values.len())
                .map(|row| own.value_as_string(row).parse().unwrap())
                .collect();
            let found = of_decimals(&(Arc::new(own) as ArrayRef), &DataType::Float64).unwrap();
            assert_eq!(found.as_primitive::<Float64Type>().values(), &wanted[..]);
        }
    }
}
