//! Values of [a row that is written](crate::bind::row_values), as the statement says them and as its columns have them, and
//! numbers read for them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float32Array, StringViewArray};
use arrow::datatypes::{DataType, Date32Type, Decimal128Type, Float64Type};

use crate::functions::decimals::casts;

/// The greatest whole number up to which each is a float, too.
const EXACT: u64 = 1 << 53;

/// The greatest up to which each is a real.
const EXACT_REAL: u64 = 1 << 24;

/// Most digits of a number of which a float has each.
const FLOAT_DIGITS: usize = 15;

/// Most digits of a constant that the planner reads as they are.
const CONSTANT_DIGITS: usize = 38;

/// A value of the row as the statement says it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum RowValue {
    Null,
    Boolean(bool),
    Whole(i64),
    Text(String),
    /// A number as it is written, with a sign or without, and with a point or without.
    Digits(String),
    Bytes(Vec<u8>),
    /// `array[1, 2]`.
    Array(Vec<RowValue>),
    /// A value that is cast to a type: `'{}'::jsonb`, `date '2020-02-29'`.
    Typed(Box<RowValue>, DataType),
    /// The parameter in this place, from 0 on.
    Parameter(usize),
}

/// A value of the row as its column has it.
#[derive(Clone, Debug)]
pub(crate) enum Cell<'a> {
    Null,
    Boolean(bool),
    /// For a column of whole numbers, in its range.
    Whole(i64),
    Float(f64),
    Text(&'a str),
    /// A decimal without its point, with as many digits behind it as the column has.
    Scaled(i128),
    /// A day, by its number from the beginning of 1970 on.
    Day(i32),
    /// An array of one, of the type of the column.
    One(ArrayRef),
    /// The next number of this sequence, which whoever takes the row asks for.
    Next(&'a str),
}

/// A whole number for a column of type `own`; none if it is not in its range.
pub(crate) fn whole<'a>(number: i64, own: &DataType) -> Option<Cell<'a>> {
    match own {
        DataType::Float64 if number.unsigned_abs() <= EXACT => Some(Cell::Float(number as f64)),
        DataType::Float32 if number.unsigned_abs() <= EXACT_REAL => real(number as f64),
        DataType::Decimal256(..) => of_digits(&number.to_string(), own),
        DataType::Decimal128(precision, scale) => {
            let ten = 10_i128.checked_pow(u32::try_from(*scale).ok()?)?;
            scaled(ten.checked_mul(number.into())?, *precision)
        }
        own => is_within(number, own).then_some(Cell::Whole(number)),
    }
}

/// Whether a column of whole numbers of this type has the number.
pub(crate) fn is_within(number: i64, own: &DataType) -> bool {
    match own {
        DataType::Int8 => i8::try_from(number).is_ok(),
        DataType::Int16 => i16::try_from(number).is_ok(),
        DataType::Int32 => i32::try_from(number).is_ok(),
        DataType::Int64 => true,
        _ => false,
    }
}

/// A decimal without its point; none if it has more digits than `precision` says.
pub(crate) fn scaled<'a>(number: i128, precision: u8) -> Option<Cell<'a>> {
    let least_beyond = 10_u128.checked_pow(precision.into())?;
    (number.unsigned_abs() < least_beyond).then_some(Cell::Scaled(number))
}

/// Whether a number is written with digits alone, a point between some, and a minus before them.
pub(crate) fn is_digits(text: &str) -> bool {
    let unsigned = text.strip_prefix('-').unwrap_or(text);
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, "0"));
    let plain = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    plain(whole) && plain(fraction)
}

/// A finite float that is written in digits, a point, an exponent and signs.
pub(crate) fn float(text: &str) -> Option<f64> {
    let plain = |byte: u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
    if !text.bytes().all(plain) {
        return None;
    }
    let number: f64 = text.parse().ok()?;
    // What is too large for a float, or too small, is an error.
    let is_zero = matches!(text, "0" | "0.0" | "-0" | "-0.0");
    (number.is_finite() && (number != 0.0 || is_zero)).then_some(number)
}

/// A number in digits, with a point or without, for a column of type `own`: one that has each of them.
pub(crate) fn of_digits<'a>(text: &str, own: &DataType) -> Option<Cell<'a>> {
    match own {
        DataType::Float64 | DataType::Float32 if text.len() > FLOAT_DIGITS => None,
        DataType::Float64 => double(text).map(Cell::Float),
        DataType::Float32 => {
            let (single, double): (f32, f64) = (text.parse().ok()?, double(text)?);
            // Whether it becomes a double before.
            (single.to_bits() == (double as f32).to_bits())
                .then(|| real(double))
                .flatten()
        }
        DataType::Decimal128(precision, scale) => {
            let digits = unscaled(text, *scale)?;
            scaled(digits.parse().ok()?, *precision)
        }
        DataType::Decimal256(_, scale) if text.len() <= CONSTANT_DIGITS => {
            unscaled(text, *scale)?;
            let texts: ArrayRef = Arc::new(StringViewArray::from_iter_values([text]));
            of_array(&casts::converted(&texts, own, true).ok()?, own)
        }
        _ => None,
    }
}

/// The double of few digits, or of a number with an exponent.
fn double(text: &str) -> Option<f64> {
    if is_digits(text) {
        return text.parse().ok();
    }
    float(text)
}

/// The digits of a number without its point, with as many behind that as `scale` says; none if it has more, which are rounded.
fn unscaled(text: &str, scale: i8) -> Option<String> {
    if !is_digits(text) {
        return None;
    }
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let more = usize::try_from(scale).ok()?.checked_sub(fraction.len())?;
    Some(format!("{whole}{fraction}{}", "0".repeat(more)))
}

/// A double for a column of reals; none if it is out of their range.
pub(crate) fn real<'a>(number: f64) -> Option<Cell<'a>> {
    let own = number as f32;
    let is_kept = own.is_finite() && (own != 0.0 || number == 0.0);
    is_kept.then(|| Cell::One(Arc::new(Float32Array::from(vec![own]))))
}

/// The value of an array of one, which is of the type `own` of a column; none of one that is not, and of texts.
pub(crate) fn of_array<'a>(value: &ArrayRef, own: &DataType) -> Option<Cell<'a>> {
    if value.len() != 1 || value.data_type() != own {
        return None;
    }
    Some(match own {
        _ if value.is_null(0) => Cell::Null,
        DataType::Boolean => Cell::Boolean(value.as_boolean().value(0)),
        DataType::Float64 => Cell::Float(value.as_primitive::<Float64Type>().value(0)),
        DataType::Date32 => Cell::Day(value.as_primitive::<Date32Type>().value(0)),
        DataType::Decimal128(..) => Cell::Scaled(value.as_primitive::<Decimal128Type>().value(0)),
        DataType::Utf8View => return None,
        own if own.is_integer() => return None,
        _ => Cell::One(Arc::clone(value)),
    })
}
