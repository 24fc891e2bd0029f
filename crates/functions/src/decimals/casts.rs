//! Casts of decimals of more than 38 digits, and to such, where NaN and the infinities are among them; and to decimals from
//! numbers that float, which have 15 digits then as in PostgreSQL, a `real` 6; the other way to the nearest number there is; and
//! from texts, which may have an exponent.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Decimal256Array, StringArray};
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{DataType, Decimal256Type, Float64Type, i256};
use datafusion_common::DataFusionError;
use datafusion_common::{Result, ScalarValue, plan_err};
use datafusion_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use messages::Error;
use messages::types::type_name;
use table::{NotFinite, decimal_text, only_numbers, with_not_finite};

use crate::arguments::{is_text, strings};
use crate::decimals::{decimals, digits, exponents, floats};
use crate::lists::types::is_special;

/// The name of the function that a cast from or to a decimal becomes where DataFusion's cast will not do. Statements cannot
/// write it.
pub const CAST: &str = "numeric cast";

/// Most digits of a decimal, which one without declared digits has: only that is infinite.
const MOST: u8 = 76;

/// Digits of decimals up to which each is the quotient of two whole numbers that are exact as doubles.
const EXACT: u8 = 15;

/// Whether a cast from one type to another is one of these: it may be one of what is no number, or Arrow's gives other digits.
pub(crate) fn concerns(from: &DataType, to: &DataType) -> bool {
    let is_read = || *from != DataType::Null && (is_text(from) || from.is_floating());
    let is_found = match (from, to) {
        (DataType::Decimal256(..), _) => true,
        (DataType::Decimal128(precision, _), to) => *precision > EXACT && to.is_floating(),
        (_, DataType::Decimal128(..) | DataType::Decimal256(..)) => is_read(),
        _ => false,
    };
    is_found && from != to && !is_special(to)
}

/// The type that `expr` is cast to, if it is a call of [`CAST`].
pub fn target(expr: &Expr) -> Option<&DataType> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let own = call.func.inner().downcast_ref::<DecimalCast>()?;
    Some(&own.to)
}

/// The cast of `value` to the type `to`, if it is to a decimal from a text or a number that floats, or from a decimal whose value
/// may be no number or whose digits Arrow's cast changes. A value that cannot be cast is an error if `strict`, otherwise NULL.
pub fn cast_of(value: &Expr, from: &DataType, to: &DataType, strict: bool) -> Option<Expr> {
    concerns(from, to).then(|| call(value.clone(), to, strict))
}

fn call(value: Expr, to: &DataType, strict: bool) -> Expr {
    let function = ScalarUDF::from(DecimalCast {
        to: to.clone(),
        strict,
        signature: Signature::any(1, Volatility::Immutable),
    });
    Arc::new(function).call(vec![value])
}

/// A value of type `from` whose cast to `to` loses digits, cast so by a function. The planner takes casts off what it compares
/// with a constant, and off this one it must not: 1.234 is not 1.23, but its cast to two digits is. None of other casts.
pub fn losing(value: &Expr, from: &DataType, to: &DataType, strict: bool) -> Option<Expr> {
    match (from, to) {
        (DataType::Decimal128(_, own), DataType::Decimal128(_, fewer)) if fewer < own => {
            Some(call(value.clone(), to, strict))
        }
        _ => None,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct DecimalCast {
    to: DataType,
    strict: bool,
    signature: Signature,
}

impl ScalarUDFImpl for DecimalCast {
    fn name(&self) -> &str {
        CAST
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.to.clone())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [arg] = &args.args[..] else {
            return plan_err!("a cast takes one value");
        };
        let constant = matches!(arg, ColumnarValue::Scalar(_));
        let values = arg.to_array(if constant { 1 } else { args.number_rows })?;
        let found = converted(&values, &self.to, self.strict)?;
        if constant {
            let found = ScalarValue::try_from_array(&found, 0)?;
            return Ok(ColumnarValue::Scalar(found));
        }
        Ok(ColumnarValue::Array(found))
    }
}

fn options(strict: bool) -> CastOptions<'static> {
    CastOptions {
        safe: !strict,
        ..CastOptions::default()
    }
}

/// Values as ones of another type, between types that `concerns` is true of, or a decimal as one of fewer digits.
///
/// # Errors
/// If `strict`, for a value that is none of the other type.
pub fn converted(values: &ArrayRef, to: &DataType, strict: bool) -> Result<ArrayRef> {
    match values.data_type() {
        from if from == to => Ok(Arc::clone(values)),
        DataType::Decimal128(..) if to.is_floating() => floats::of_decimals(values, to),
        DataType::Decimal128(..) => numbers(values, to, strict),
        from if digits(from).is_some() => of_decimals(values, to, strict),
        from if from.is_floating() => of_floats(values, to, strict),
        _ => of_texts(values, to, strict),
    }
}

fn of_decimals(values: &ArrayRef, to: &DataType, strict: bool) -> Result<ArrayRef> {
    if is_text(to) && *to != DataType::Null {
        return Ok(cast(&written(values), to)?);
    }
    if to.is_floating() {
        return floats::of_decimals(values, to);
    }
    let Some(own) = decimals(values) else {
        return numbers(values, to, strict);
    };
    let found = numbers(&(Arc::new(only_numbers(own)) as ArrayRef), to, strict)?;
    match to {
        DataType::Decimal256(..) => {
            let with = with_not_finite(found.as_primitive::<Decimal256Type>(), own);
            bounded(with, strict)
        }
        to if strict => match (0..own.len()).find_map(|row| odd(own, row)) {
            Some(own) => Err(refused(own, to)),
            None => Ok(found),
        },
        _ => Ok(found),
    }
}

/// The texts of decimals.
fn written(values: &ArrayRef) -> StringArray {
    let own = values.as_primitive::<Decimal256Type>();
    let (precision, scale) = (own.precision(), own.scale());
    let text = |value| decimal_text(value, precision, scale);
    own.iter().map(|value| value.map(text)).collect()
}

/// What a value is that is no number.
fn odd(values: &Decimal256Array, row: usize) -> Option<NotFinite> {
    let value = values.is_valid(row).then(|| values.value(row));
    value.and_then(NotFinite::of)
}

/// Why there is no such value of a type.
fn refused(own: NotFinite, to: &DataType) -> DataFusionError {
    let called = match own {
        NotFinite::NaN => "NaN",
        _ => "infinity",
    };
    if to.is_integer() {
        let message = format!("cannot convert {called} to {}", title(to));
        return Error::coded("0A000", message).into();
    }
    Error::unsupported(format!(
        "{} is not supported for type {}: use a numeric of 39 digits or more, such as numeric(50,10), or double precision",
        own.text(),
        type_name(to)
    ))
    .into()
}

fn title(to: &DataType) -> String {
    match to {
        DataType::Int16 => "smallint".into(),
        DataType::Int32 => "integer".into(),
        DataType::Int64 => "bigint".into(),
        to => type_name(to),
    }
}

/// Numbers, which become whole ones by rounding.
fn numbers(values: &ArrayRef, to: &DataType, strict: bool) -> Result<ArrayRef> {
    let options = options(strict);
    let rounded = match values.data_type() {
        DataType::Decimal256(precision, scale) if to.is_integer() && *scale > 0 => {
            // One more digit: 9.5 becomes 10.
            let whole = i16::from(*precision) - i16::from(*scale) + 1;
            let whole = DataType::Decimal256(whole.clamp(1, MOST.into()) as u8, 0);
            cast_with_options(values, &whole, &options)?
        }
        _ => Arc::clone(values),
    };
    Ok(cast_with_options(&rounded, to, &options)?)
}

/// Why there is no infinity of a type with these digits.
fn infinite(to: &DataType) -> DataFusionError {
    let (precision, scale) = match to {
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            (*precision, *scale)
        }
        _ => (MOST, 0),
    };
    Error::from(table::Error::Infinite { precision, scale }).into()
}

/// Decimals, of which none is infinite where the type has declared digits.
fn bounded(values: Decimal256Array, strict: bool) -> Result<ArrayRef> {
    let precision = values.precision();
    let is_infinite = |row: usize| odd(&values, row).is_some_and(|own| own != NotFinite::NaN);
    if precision == MOST || !(0..values.len()).any(is_infinite) {
        return Ok(Arc::new(values));
    }
    if strict {
        return Err(infinite(values.data_type()));
    }
    let of = |row: usize| {
        let is_there = values.is_valid(row) && !is_infinite(row);
        is_there.then(|| values.value(row))
    };
    let found: Decimal256Array = (0..values.len()).map(of).collect();
    Ok(Arc::new(found.with_data_type(values.data_type().clone())))
}

/// `numbers`, decimals, with what `of` finds at their places.
fn put(
    numbers: &ArrayRef,
    strict: bool,
    of: impl Fn(usize) -> Option<NotFinite>,
) -> Result<ArrayRef> {
    let own = numbers.as_primitive::<Decimal256Type>();
    let value = |row: usize| -> Option<i256> {
        match of(row) {
            Some(odd) => Some(odd.value()),
            None => own.is_valid(row).then(|| own.value(row)),
        }
    };
    let found: Decimal256Array = (0..own.len()).map(value).collect();
    bounded(found.with_data_type(own.data_type().clone()), strict)
}

fn of_floats(values: &ArrayRef, to: &DataType, strict: bool) -> Result<ArrayRef> {
    let own = cast(values, &DataType::Float64)?;
    let floats = own.as_primitive::<Float64Type>();
    let numbers = floats::to_decimals(values, to, strict)?;
    if floats.iter().flatten().all(f64::is_finite) {
        return Ok(numbers);
    }
    if digits(to).is_none() {
        let mut all = floats.iter().flatten();
        return match all.find_map(NotFinite::of_float).filter(|_| strict) {
            Some(NotFinite::NaN) => Err(refused(NotFinite::NaN, to)),
            Some(_) => Err(infinite(to)),
            None => Ok(numbers),
        };
    }
    put(&numbers, strict, |row| {
        let value = floats.is_valid(row).then(|| floats.value(row));
        value.and_then(NotFinite::of_float)
    })
}

fn of_texts(values: &ArrayRef, to: &DataType, strict: bool) -> Result<ArrayRef> {
    let texts = strings(values)?;
    if digits(to).is_none() {
        let plain: ArrayRef = Arc::new(exponents::without(&texts));
        return Ok(cast_with_options(&plain, to, &options(strict))?);
    }
    let odd: Vec<Option<NotFinite>> = texts
        .iter()
        .map(|text| text.and_then(NotFinite::read))
        .collect();
    if odd.iter().all(Option::is_none) {
        let plain: ArrayRef = Arc::new(exponents::without(&texts));
        return Ok(cast_with_options(&plain, to, &options(strict))?);
    }
    let numbers: StringArray = texts
        .iter()
        .zip(&odd)
        .map(|(text, odd)| text.filter(|_| odd.is_none()))
        .collect();
    let numbers = cast_with_options(&exponents::without(&numbers), to, &options(strict))?;
    put(&numbers, strict, |row| odd[row])
}

#[cfg(test)]
mod tests {
    use super::*;

    const BARE: DataType = DataType::Decimal256(76, 10);

    fn cast_texts(texts: &[&str], to: &DataType) -> Result<ArrayRef> {
        let texts: ArrayRef = Arc::new(StringArray::from(texts.to_vec()));
        converted(&texts, to, true)
    }

    fn texts(values: &ArrayRef) -> Vec<String> {
        let texts = converted(values, &DataType::Utf8, true).unwrap();
        let texts = texts.as_string::<i32>();
        texts.iter().map(|text| text.unwrap().to_string()).collect()
    }

    #[test]
    fn texts_and_floats_become_what_is_no_number_and_back() {
        let all = cast_texts(&["1.5", " nan", "-inf", "Infinity "], &BARE).unwrap();
        assert_eq!(
            texts(&all),
            ["1.5000000000", "NaN", "-Infinity", "Infinity"]
        );
        let floats = converted(&all, &DataType::Float64, true).unwrap();
        assert_eq!(
            texts(&converted(&floats, &BARE, true).unwrap()),
            texts(&all)
        );
        let floats = floats.as_primitive::<Float64Type>();
        assert!(floats.value(1).is_nan() && floats.value(2) == f64::NEG_INFINITY);
        let wider = converted(&all, &DataType::Decimal256(76, 20), true).unwrap();
        assert_eq!(texts(&wider)[3], "Infinity");
    }

    #[test]
    fn declared_digits_hold_nan_and_no_infinity() {
        let declared = DataType::Decimal256(50, 2);
        assert_eq!(texts(&cast_texts(&["NaN"], &declared).unwrap()), ["NaN"]);
        let refused = cast_texts(&["inf"], &declared).unwrap_err().to_string();
        assert!(
            refused.contains("cannot hold an infinite value"),
            "{refused}"
        );
        let all = cast_texts(&["inf", "NaN"], &BARE).unwrap();
        assert!(converted(&all, &declared, true).is_err());
        let found = converted(&all, &declared, false).unwrap();
        assert!(found.is_null(0) && found.is_valid(1));
    }

    #[test]
    fn other_types_have_none() {
        for (text, to, wanted) in [
            ("NaN", DataType::Int32, "cannot convert NaN to integer"),
            ("-inf", DataType::Int64, "cannot convert infinity to bigint"),
            (
                "NaN",
                DataType::Decimal128(38, 10),
                "NaN is not supported for type",
            ),
        ] {
            let value = cast_texts(&[text, "1"], &BARE).unwrap();
            let refused = converted(&value, &to, true).unwrap_err().to_string();
            assert!(refused.contains(wanted), "{refused}");
            let found = converted(&value, &to, false).unwrap();
            assert!(found.is_null(0) && found.is_valid(1));
        }
        assert!(!concerns(&DataType::Null, &BARE));
        assert!(!concerns(&DataType::Decimal128(38, 2), &BARE));
        assert!(!concerns(&DataType::Decimal128(15, 2), &DataType::Float64));
    }
}
