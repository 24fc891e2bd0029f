//! `to_char` of numbers, and `to_number`.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal128Array, StringArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal128Type, Float64Type};
use datafusion_common::{Result, plan_err};
use messages::Error;

use crate::arguments::{is_text, strings};
use crate::number_pattern::NumberPattern;
use crate::number_reading::read;
use crate::number_writing::write;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        "to_number",
        |types| match types {
            [text, pattern] if is_text(text) && is_text(pattern) => Ok(vec![DataType::Utf8; 2]),
            _ => plan_err!("to_number takes a text and a pattern such as '999D99'"),
        },
        |_| Ok(NUMBER),
        to_number,
    )]
}

/// The type of numbers without a type of their own, and its places behind the point.
const NUMBER: DataType = DataType::Decimal128(38, PLACES as i8);
const PLACES: usize = 10;

/// The types that `to_char` takes for a number of type `number` and a pattern.
pub(super) fn types(number: &DataType) -> Vec<DataType> {
    let own = match number {
        DataType::Int8 | DataType::Int16 | DataType::Int32 => DataType::Int32,
        DataType::Decimal128(..) | DataType::Float32 | DataType::Float64 => number.clone(),
        DataType::Float16 => DataType::Float32,
        DataType::Decimal256(_, scale) => DataType::Decimal128(38, *scale),
        _ => DataType::Decimal128(38, 0),
    };
    vec![own, DataType::Utf8]
}

fn wrong(message: String) -> datafusion_common::DataFusionError {
    if message.contains("not supported") {
        Error::unsupported(message).into()
    } else if message.contains("overflow") {
        Error::coded("22003", message).into()
    } else {
        Error::coded("42601", message).into()
    }
}

/// A number as `to_char` takes it.
#[derive(Clone, Copy, Debug)]
enum Number {
    /// Digits, and how many of them are behind the point.
    Exact(i128, usize),
    /// A number with so many digits that count.
    Float(f64, usize),
}

/// The texts of numbers by patterns.
///
/// # Errors
/// For patterns that are none, and for what is infinite or not a number.
pub(super) fn to_char(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let patterns = strings(&args[1])?;
    let exponents_by_float = *args[0].data_type() == DataType::Int32;
    let digits = if *args[0].data_type() == DataType::Float32 {
        6
    } else {
        15
    };
    let exact = match args[0].data_type() {
        DataType::Decimal128(..) => Some(args[0].clone()),
        DataType::Int32 => Some(cast(&args[0], &DataType::Decimal128(38, 0))?),
        _ => None,
    };
    let floats = cast(&args[0], &DataType::Float64)?;
    let floats = floats.as_primitive::<Float64Type>();
    let mut known: HashMap<&str, NumberPattern> = HashMap::new();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if args[0].is_null(row) || patterns.is_null(row) {
            found.push(None);
            continue;
        }
        let text = patterns.value(row);
        if !known.contains_key(text) {
            known.insert(text, NumberPattern::parse(text).map_err(wrong)?);
        }
        let pattern = &known[text];
        let number = match &exact {
            Some(exact) if !(pattern.has_exponent() && exponents_by_float) => {
                let exact = exact.as_primitive::<Decimal128Type>();
                Number::Exact(exact.value(row), exact.scale().max(0) as usize)
            }
            _ => Number::Float(floats.value(row), digits),
        };
        found.push(Some(written(number, pattern)?));
    }
    Ok(Arc::new(StringArray::from(found)))
}

fn written(number: Number, pattern: &NumberPattern) -> Result<String> {
    if let Number::Float(value, _) = number
        && !value.is_finite()
    {
        return Err(Error::unsupported("to_char of NaN and Infinity is not supported").into());
    }
    if pattern.is_roman() {
        let whole = match number {
            Number::Exact(value, scale) => rounded(value, scale as i32),
            Number::Float(value, _) => format!("{:.0}", value.round_ties_even()),
        };
        return write(pattern, &whole).map_err(wrong);
    }
    let places = pattern.places();
    if pattern.has_exponent() {
        return Ok(match number {
            Number::Exact(value, scale) => exact_exponent(value, scale, places),
            Number::Float(value, _) => {
                let text = format!("{value:.places$e}");
                let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
                exponential(digits, exponent.parse().unwrap_or(0))
            }
        });
    }
    let digits = match number {
        Number::Exact(value, scale) => {
            let fewer = scale as i32 - pattern.tens() as i32 - places as i32;
            pointed(&rounded(value, fewer), places)
        }
        Number::Float(value, most) => {
            let value = value * 10f64.powi(pattern.tens() as i32);
            let before = format!("{:.0}", value.abs()).len();
            let places = places.min(most.saturating_sub(before));
            format!("{value:.places$}")
        }
    };
    write(pattern, &digits).map_err(wrong)
}

/// `value` without its last `fewer` digits, rounded half away from zero; with zeros behind it if they are to become more.
fn rounded(value: i128, fewer: i32) -> String {
    if fewer <= 0 {
        let zeros = if value == 0 {
            0
        } else {
            fewer.unsigned_abs() as usize
        };
        return format!("{value}{}", "0".repeat(zeros));
    }
    let Some(divisor) = 10i128.checked_pow(fewer.unsigned_abs()) else {
        return "0".into();
    };
    let (quotient, rest) = (value / divisor, value % divisor);
    let up = rest.unsigned_abs() >= divisor.unsigned_abs() - rest.unsigned_abs();
    (quotient + if up { value.signum() } else { 0 }).to_string()
}

/// Digits with a point before the last `places` of them.
fn pointed(digits: &str, places: usize) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", digits),
    };
    if places == 0 {
        return format!("{sign}{digits}");
    }
    let digits = format!("{digits:0>width$}", width = places + 1);
    let (whole, rest) = digits.split_at(digits.len() - places);
    format!("{sign}{whole}.{rest}")
}

/// A number with one digit before the point, so many behind it, and an exponent.
fn exact_exponent(value: i128, scale: usize, places: usize) -> String {
    let length = value.unsigned_abs().to_string().len() as i32;
    let mut exponent = if value == 0 {
        0
    } else {
        length - 1 - scale as i32
    };
    let mut digits = rounded(value, length - 1 - places as i32);
    if digits.trim_start_matches('-').len() as i32 > places as i32 + 1 && value != 0 {
        // 9.99 has become 10.0.
        digits.pop();
        exponent += 1;
    }
    if value == 0 {
        digits = "0".repeat(places + 1);
    }
    exponential(&pointed(&digits, places), exponent)
}

/// `d.ddde+07`, behind a blank where it is not negative.
fn exponential(digits: &str, exponent: i32) -> String {
    let blank = if digits.starts_with('-') { "" } else { " " };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{blank}{digits}e{sign}{:02}", exponent.abs())
}

/// Numbers from texts by patterns.
fn to_number(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (texts, patterns) = (strings(&args[0])?, strings(&args[1])?);
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if texts.is_null(row) || patterns.is_null(row) {
            found.push(None);
            continue;
        }
        let pattern = NumberPattern::parse(patterns.value(row)).map_err(wrong)?;
        let text = texts.value(row);
        let number = read(&pattern, text).map_err(wrong)?;
        found.push(Some(decimal(&number, pattern.tens())?));
    }
    let found = Decimal128Array::from(found).with_precision_and_scale(38, PLACES as i8)?;
    Ok(Arc::new(found))
}

/// The digits of `number`, divided by `tens` tens, with [`PLACES`] behind the point.
fn decimal(number: &str, tens: usize) -> Result<i128> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, number),
    };
    let (whole, rest) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && rest.is_empty() {
        let message = format!("invalid input syntax for type numeric: \"{number}\"");
        return Err(Error::coded("22P02", message).into());
    }
    let behind = rest.len() + tens;
    let all = format!("{whole}{rest}");
    let value = match PLACES.checked_sub(behind) {
        Some(more) => format!("{all}{}", "0".repeat(more)).parse::<i128>().ok(),
        None => None,
    };
    match value.filter(|value| *value < 10i128.pow(38)) {
        Some(value) => Ok(sign * value),
        None => Err(Error::coded(
            "22003",
            format!(
                "the number {number} is out of range: to_number gives decimal(38,{PLACES}), with {PLACES} digits behind the point"
            ),
        )
        .into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_rounded_and_get_exponents() {
        let text = |number, pattern: &str| {
            let pattern = NumberPattern::parse(pattern).unwrap();
            written(number, &pattern).unwrap()
        };
        assert_eq!(text(Number::Exact(1249, 3), "9.9"), " 1.2");
        assert_eq!(text(Number::Exact(-1250, 3), "9.9"), "-1.3");
        assert_eq!(text(Number::Exact(12_345, 3), "99V999"), " 12345");
        assert_eq!(text(Number::Exact(4_859, 4), "9.99EEEE"), " 4.86e-01");
        assert_eq!(text(Number::Exact(9_999, 0), "9.99EEEE"), " 1.00e+04");
        assert_eq!(text(Number::Exact(0, 0), "9.99EEEE"), " 0.00e+00");
        assert_eq!(text(Number::Float(0.0004859, 15), "9.99EEEE"), " 4.86e-04");
        assert_eq!(text(Number::Float(-12.454, 15), "99D99"), "-12.45");
        assert_eq!(text(Number::Exact(-1, 3), "9.9"), "  .0");
        assert_eq!(decimal("-12345", 2).unwrap(), -1_234_500_000_000);
        assert!(decimal("", 0).is_err());
    }
}
