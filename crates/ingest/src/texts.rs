//! From values written as text, in CSV and JSON alike, to values of a type: exactly, or not at all.

use std::sync::Arc;

use arrow::array::timezone::Tz;
use arrow::array::{
    Array, ArrayRef, ArrowPrimitiveType, AsArray, BinaryViewBuilder, BooleanBuilder, ListArray,
    PrimitiveBuilder, StringViewArray, StructArray,
};
use arrow::compute::kernels::cast_utils::{Parser, parse_decimal, string_to_datetime};
use arrow::datatypes::*;
use arrow::error::ArrowError;
use table::{JsonKind, json_kind};

use crate::piece::cast_to;

/// Longer numbers are not read by Arrow's parser of decimals, which counts their digits in a byte.
const LONGEST: usize = 76;

/// The least number of digits of a whole number that a double may not have.
const DOUBLE_DIGITS: usize = 16;

/// A number as a decimal of 128 bits: digits behind the scale are rounded, half away from zero.
pub(crate) fn decimal128(value: &str, precision: u8, scale: i8) -> Option<i128> {
    if fits(value, scale) {
        return parse_decimal::<Decimal128Type>(value, precision, scale).ok();
    }
    rounded(value, precision, scale)?.to_i128()
}

/// A number as a decimal of 256 bits, as [`decimal128`].
pub(crate) fn decimal256(value: &str, precision: u8, scale: i8) -> Option<i256> {
    if fits(value, scale) {
        return parse_decimal::<Decimal256Type>(value, precision, scale).ok();
    }
    rounded(value, precision, scale)
}

/// Whether a number needs neither rounding nor an exponent.
fn fits(value: &str, scale: i8) -> bool {
    let fraction = value
        .split_once('.')
        .map_or(0, |(_, fraction)| fraction.len());
    value.len() <= LONGEST
        && i8::try_from(fraction).is_ok_and(|digits| digits <= scale.max(0))
        && scale >= 0
        && !value.contains(['e', 'E'])
}

/// A number with `scale` digits behind its point, as a whole number of these.
fn rounded(value: &str, precision: u8, scale: i8) -> Option<i256> {
    let (number, exponent) = match value.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().ok()?),
        None => (value, 0),
    };
    let (negative, number) = match number.strip_prefix('-') {
        Some(number) => (true, number),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
        return None;
    }
    let significant = digits.trim_start_matches('0');
    let zeros = digits.len() - significant.len();
    if significant.is_empty() {
        return Some(i256::ZERO);
    }
    let kept = whole.len() as i64 + i64::from(exponent) + i64::from(scale) - zeros as i64;
    let kept = match usize::try_from(kept) {
        Ok(kept) if kept > LONGEST => return None,
        Ok(kept) => kept,
        Err(_) => return Some(i256::ZERO),
    };
    let up = significant
        .as_bytes()
        .get(kept)
        .is_some_and(|digit| *digit >= b'5');
    let mut text: String = significant.chars().take(kept).collect();
    text.extend(std::iter::repeat_n(
        '0',
        kept.saturating_sub(significant.len()),
    ));
    let mut number = if text.is_empty() {
        i256::ZERO
    } else {
        i256::from_string(&text)?
    };
    if up {
        number = number.checked_add(i256::ONE)?;
    }
    let bound = i256::from_i128(10).checked_pow(u32::from(precision))?;
    if number >= bound {
        return None;
    }
    if negative {
        number.checked_neg()
    } else {
        Some(number)
    }
}

/// Whether a number of which a double is made comes back as it was written. Whole numbers of many digits may not: those
/// beyond 2^53 have neighbours that are the same double.
pub(crate) fn is_double(value: &str) -> bool {
    let digits = value.strip_prefix('-').unwrap_or(value);
    digits.len() < DOUBLE_DIGITS
        || !digits.bytes().all(|digit| digit.is_ascii_digit())
        || value
            .parse::<f64>()
            .is_ok_and(|number| number.to_string() == value)
}

/// Bytes as PostgreSQL writes them: `\x` and two digits for each, or characters, with `\\` and `\ooo` for some of them.
pub(crate) fn bytes_of(value: &str) -> Option<Vec<u8>> {
    if let Some(digits) = value.strip_prefix("\\x") {
        let digits: Vec<u8> = digits
            .bytes()
            .filter(|byte| !byte.is_ascii_whitespace())
            .collect();
        if !digits.len().is_multiple_of(2) {
            return None;
        }
        let digit = |byte: u8| {
            char::from(byte)
                .to_digit(16)
                .and_then(|d| u8::try_from(d).ok())
        };
        let byte = |pair: &[u8]| Some(digit(*pair.first()?)? << 4 | digit(*pair.get(1)?)?);
        return digits.chunks(2).map(byte).collect();
    }
    let mut bytes = Vec::with_capacity(value.len());
    let mut rest = value.as_bytes();
    loop {
        rest = match rest {
            [] => return Some(bytes),
            [b'\\', b'\\', rest @ ..] => {
                bytes.push(b'\\');
                rest
            }
            [
                b'\\',
                a @ b'0'..=b'3',
                b @ b'0'..=b'7',
                c @ b'0'..=b'7',
                rest @ ..,
            ] => {
                bytes.push((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'));
                rest
            }
            [b'\\', ..] => return None,
            [byte, rest @ ..] => {
                bytes.push(*byte);
                rest
            }
        };
    }
}

/// The offset from UTC that a moment is written with, if it has a time and an offset: `Z`, `+02:00`.
pub(crate) fn offset(value: &str) -> Option<&str> {
    let time = value.get(19..)?;
    let fraction = time.strip_prefix('.').unwrap_or(time);
    let offset = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
    (!offset.is_empty()).then_some(offset)
}

/// The time zone of instants, as types have it.
pub(crate) const UTC: &str = "+00:00";

/// The time zone of times that name none.
pub(crate) fn utc() -> Option<Tz> {
    UTC.parse().ok()
}

/// The name of a column's type in messages.
pub(crate) fn spoken(data_type: &DataType) -> String {
    match data_type {
        DataType::Boolean => "boolean".into(),
        DataType::Date32 | DataType::Date64 => "date".into(),
        DataType::Timestamp(_, None) => "timestamp".into(),
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone".into(),
        DataType::Time32(_) | DataType::Time64(_) => "time".into(),
        DataType::Decimal128(digits, scale) | DataType::Decimal256(digits, scale) => {
            format!("decimal({digits},{scale})")
        }
        number if number.is_integer() => match number.primitive_width() {
            Some(1) => "8-bit integer".into(),
            Some(2) => "16-bit integer".into(),
            Some(4) => "integer".into(),
            _ => "bigint".into(),
        },
        number if number.is_floating() => "number".into(),
        other => other.to_string(),
    }
}

/// A truth value.
pub(crate) fn boolean(value: &str) -> Option<bool> {
    let is = |known: &[&str]| known.iter().any(|word| value.eq_ignore_ascii_case(word));
    if is(&["true", "t", "yes", "y", "1", "on"]) {
        Some(true)
    } else if is(&["false", "f", "no", "n", "0", "off"]) {
        Some(false)
    } else {
        None
    }
}

/// A number with 32 bits. One that is too large is none.
pub(crate) fn float32(value: &str) -> Option<f32> {
    let number = value.parse::<f32>().ok()?;
    (!number.is_infinite() || is_infinity(value)).then_some(number)
}

/// A number with 64 bits. One that is too large is none.
pub(crate) fn float64(value: &str) -> Option<f64> {
    let number = value.parse::<f64>().ok()?;
    (!number.is_infinite() || is_infinity(value)).then_some(number)
}

/// Whether text that was parsed as an infinite number says so itself (`inf`), so that it is not a number too large
/// for its type.
#[inline]
fn is_infinity(value: &str) -> bool {
    !value.contains(|c: char| c.is_ascii_digit())
}

/// A date with year, month and day; an infinite one is the greatest count or its negative.
pub(crate) fn date(value: &str) -> Option<i32> {
    Date32Type::parse(value).or_else(|| infinite(value, i32::MAX))
}

/// An infinite date or timestamp: the greatest count, or its negative, as tables have them.
pub(crate) fn infinite<T: std::ops::Neg<Output = T>>(value: &str, greatest: T) -> Option<T> {
    let (name, past) = match value.strip_prefix('-') {
        Some(name) => (name, true),
        None => (value, false),
    };
    let known = name.eq_ignore_ascii_case("infinity");
    known.then_some(if past { -greatest } else { greatest })
}

/// How moments of a column are read.
pub(crate) struct Moments {
    unit: TimeUnit,
    /// The zone of moments that name none.
    zone: Tz,
    /// Whether values are instants.
    instants: bool,
    /// Whether the type was only found out: then values with an offset and values without do not mix.
    strict: bool,
}

impl Moments {
    /// None if there is no such zone.
    pub fn new(unit: TimeUnit, zone: Option<&str>, strict: bool) -> Option<Moments> {
        Some(Moments {
            unit,
            zone: match zone {
                Some(zone) => zone.parse().ok()?,
                None => utc()?,
            },
            instants: zone.is_some(),
            strict,
        })
    }

    /// A moment as a count of the unit. A timestamp without a zone is what is written before an offset, as in
    /// PostgreSQL.
    pub fn count(&self, value: &str) -> Option<i64> {
        let offset = offset(value);
        let is_day = offset.is_none() && value.len() == 10;
        if self.strict && offset.is_some() != self.instants && (self.instants || !is_day) {
            return infinite(value, i64::MAX);
        }
        let local = match offset {
            Some(offset) if !self.instants => value.get(..value.len() - offset.len())?,
            _ => value,
        };
        let Ok(time) = string_to_datetime(&self.zone, local.trim_end()) else {
            return infinite(value, i64::MAX);
        };
        match self.unit {
            TimeUnit::Second => Some(time.timestamp()),
            TimeUnit::Millisecond => Some(time.timestamp_millis()),
            TimeUnit::Microsecond => Some(time.timestamp_micros()),
            TimeUnit::Nanosecond => time.timestamp_nanos_opt(),
        }
    }
}

/// A whole number, also one that is written with a point or an exponent: `5`, `5.0`, `5e3`.
fn whole<T: std::str::FromStr + TryFrom<i128>>(value: &str) -> Option<T> {
    if let Ok(number) = value.parse() {
        return Some(number);
    }
    let (number, exponent) = match value.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<usize>().ok()?),
        None => (value, 0),
    };
    let fraction = number.split_once('.').map_or("", |(_, fraction)| fraction);
    // Digits that the exponent does not bring before the point.
    let behind = fraction.as_bytes().get(exponent..).unwrap_or_default();
    if behind.iter().any(|digit| *digit != b'0') {
        return None;
    }
    T::try_from(rounded(value, 38, 0)?.to_i128()?).ok()
}

/// Texts as values of another type, within lists and structs too. With `strict` the type was only found out, and numbers
/// keep all they are written with.
///
/// # Errors
/// If a text is no such value; it is named.
pub(crate) fn converted(
    array: &ArrayRef,
    wanted: &DataType,
    strict: bool,
) -> Result<ArrayRef, ArrowError> {
    if array.data_type() == wanted {
        return Ok(Arc::clone(array));
    }
    match (array.data_type(), wanted) {
        (DataType::List(_), DataType::List(item)) => {
            let list = array.as_list::<i32>();
            let values = converted(list.values(), item.data_type(), strict)?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(ListArray::try_new(
                Arc::clone(item),
                offsets,
                values,
                nulls,
            )?))
        }
        (DataType::Struct(own), DataType::Struct(fields)) if own.len() == fields.len() => {
            let array = array.as_struct();
            let columns = array.columns().iter().zip(fields);
            let columns = columns
                .map(|(column, field)| converted(column, field.data_type(), strict))
                .collect::<Result<Vec<_>, _>>()?;
            let nulls = array.nulls().cloned();
            Ok(Arc::new(StructArray::try_new_with_length(
                fields.clone(),
                columns,
                nulls,
                array.len(),
            )?))
        }
        // JSON, of which the text is all there is. What is `jsonb` has a form of its own.
        (DataType::Utf8View, DataType::Struct(fields))
            if json_kind(wanted) == Some(JsonKind::Text) =>
        {
            let nulls = array.nulls().cloned();
            let columns = vec![Arc::clone(array)];
            Ok(Arc::new(StructArray::try_new(
                fields.clone(),
                columns,
                nulls,
            )?))
        }
        (DataType::Utf8View, _) => of_texts(array.as_string_view(), wanted, strict),
        _ => cast_to(array, wanted),
    }
}

fn of_texts(
    texts: &StringViewArray,
    wanted: &DataType,
    strict: bool,
) -> Result<ArrayRef, ArrowError> {
    use DataType::*;
    macro_rules! numbers {
        ($type:ty, $parse:expr) => {{
            let array = primitive::<$type>(texts, wanted, $parse)?;
            Ok(Arc::new(array.with_data_type(wanted.clone())) as ArrayRef)
        }};
    }
    match wanted {
        Boolean => {
            let mut values = BooleanBuilder::with_capacity(texts.len());
            for text in texts {
                let known = |text: &str| {
                    let written = matches!(text, "true" | "false");
                    boolean(text).filter(|_| written || !strict)
                };
                let value = text.map(|text| known(text).ok_or_else(|| misfit(text, wanted)));
                values.append_option(value.transpose()?);
            }
            Ok(Arc::new(values.finish()))
        }
        Int8 => numbers!(Int8Type, whole),
        Int16 => numbers!(Int16Type, whole),
        Int32 => numbers!(Int32Type, whole),
        Int64 => numbers!(Int64Type, whole),
        UInt8 => numbers!(UInt8Type, whole),
        UInt16 => numbers!(UInt16Type, whole),
        UInt32 => numbers!(UInt32Type, whole),
        UInt64 => numbers!(UInt64Type, whole),
        Float32 => numbers!(Float32Type, float32),
        Float64 => numbers!(Float64Type, |value| float64(value)
            .filter(|_| !strict || is_double(value))),
        Decimal128(digits, scale) => {
            numbers!(Decimal128Type, |value| decimal128(value, *digits, *scale))
        }
        Decimal256(digits, scale) => {
            numbers!(Decimal256Type, |value| decimal256(value, *digits, *scale))
        }
        Date32 => numbers!(Date32Type, date),
        Timestamp(unit, zone) => {
            let moments = Moments::new(*unit, zone.as_deref(), strict)
                .ok_or_else(|| ArrowError::CastError("no such time zone".into()))?;
            let count = |value: &str| moments.count(value);
            match unit {
                TimeUnit::Second => numbers!(TimestampSecondType, count),
                TimeUnit::Millisecond => numbers!(TimestampMillisecondType, count),
                TimeUnit::Microsecond => numbers!(TimestampMicrosecondType, count),
                TimeUnit::Nanosecond => numbers!(TimestampNanosecondType, count),
            }
        }
        Binary | LargeBinary | BinaryView => {
            let mut values = BinaryViewBuilder::with_capacity(texts.len());
            for text in texts {
                let value = text.map(|text| bytes_of(text).ok_or_else(|| misfit(text, wanted)));
                values.append_option(value.transpose()?);
            }
            let values: ArrayRef = Arc::new(values.finish());
            cast_to(&values, wanted)
        }
        _ => {
            let texts: ArrayRef = Arc::new(texts.clone());
            cast_to(&texts, wanted)
        }
    }
}

fn primitive<T: ArrowPrimitiveType>(
    texts: &StringViewArray,
    wanted: &DataType,
    parse: impl Fn(&str) -> Option<T::Native>,
) -> Result<arrow::array::PrimitiveArray<T>, ArrowError> {
    let mut values = PrimitiveBuilder::<T>::with_capacity(texts.len());
    for text in texts {
        match text {
            Some(text) => values.append_value(parse(text).ok_or_else(|| misfit(text, wanted))?),
            None => values.append_null(),
        }
    }
    Ok(values.finish())
}

/// The most characters of a value that a message shows.
const SHOWN: usize = 60;

fn misfit(text: &str, wanted: &DataType) -> ArrowError {
    let mut shown: String = text.chars().take(SHOWN).collect();
    if shown.len() < text.len() {
        shown.push_str("...");
    }
    ArrowError::CastError(format!("{shown:?} is no {}", spoken(wanted)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_exact_and_rounded_half_away_from_zero() {
        for (text, precision, scale, wanted) in [
            ("1.005", 9, 2, Some(101)),
            ("-1.005", 9, 2, Some(-101)),
            ("1.004999999999999999999999999", 9, 2, Some(100)),
            (
                "0.1234567890123456789012345678",
                30,
                28,
                Some(1_234_567_890_123_456_789_012_345_678),
            ),
            ("1e3", 9, 2, Some(100_000)),
            ("1.5E-2", 9, 2, Some(2)),
            ("4e-3", 9, 2, Some(0)),
            ("5e-3", 9, 2, Some(1)),
            ("1e-400", 9, 2, Some(0)),
            ("0e400", 9, 2, Some(0)),
            ("1e400", 9, 2, None),
            ("9999999.99", 9, 2, Some(999_999_999)),
            ("9999999.995", 9, 2, None),
            ("99.5", 2, 0, None),
            ("", 9, 2, None),
            (".", 9, 2, None),
            ("1.2.3", 9, 2, None),
            ("1e", 9, 2, None),
            ("0x1", 9, 2, None),
        ] {
            assert_eq!(decimal128(text, precision, scale), wanted, "{text}");
        }
        let long = format!("0.{}", "1".repeat(400));
        assert_eq!(decimal128(&long, 9, 3), Some(111));
        assert_eq!(
            decimal256(
                "12345678901234567890123456789012345678901234567890.5",
                76,
                1
            ),
            i256::from_string("123456789012345678901234567890123456789012345678905")
        );
    }

    #[test]
    fn whole_numbers_are_no_others() {
        for (text, wanted) in [
            ("5", Some(5_i64)),
            ("-5.00", Some(-5)),
            ("5e3", Some(5000)),
            ("9007199254740993", Some(9_007_199_254_740_993)),
            ("9007199254740993.0", Some(9_007_199_254_740_993)),
            ("1.5", None),
            ("15e-1", None),
            ("1.0000000000000000000000001", None),
            ("9223372036854775808", None),
            ("x", None),
        ] {
            assert_eq!(whole::<i64>(text), wanted, "{text}");
        }
    }

    #[test]
    fn whole_numbers_that_doubles_lose_are_told() {
        for text in [
            "9007199254740993",
            "-9223372036854775807",
            "18446744073709551615",
        ] {
            assert!(!is_double(text), "{text}");
        }
        for text in [
            "9007199254740992",
            "123456789012345680000",
            "0.1",
            "1e300",
            "5",
            "-0",
        ] {
            assert!(is_double(text), "{text}");
        }
    }

    #[test]
    fn bytes_are_written_in_two_ways() {
        for (text, wanted) in [
            ("\\x00fF", Some(vec![0, 255])),
            ("\\x", Some(vec![])),
            ("\\x0", None),
            ("\\xgg", None),
            ("a\\\\b\\001", Some(b"a\\b\x01".to_vec())),
            ("a\\b", None),
            ("", Some(vec![])),
        ] {
            assert_eq!(bytes_of(text), wanted, "{text}");
        }
    }

    #[test]
    fn an_offset_is_kept_refused_or_left_out() {
        let count = |zone, strict, text: &str| {
            Moments::new(TimeUnit::Second, zone, strict).and_then(|moments| moments.count(text))
        };
        let noon = 1_710_072_000;
        for (zone, strict, text, wanted) in [
            (Some("+00:00"), true, "2024-03-10T12:00:00Z", Some(noon)),
            (
                Some("+00:00"),
                true,
                "2024-03-10 12:00:00.5+02:00",
                Some(noon - 7200),
            ),
            (Some("+00:00"), true, "2024-03-10 12:00:00", None),
            (Some("+00:00"), false, "2024-03-10 12:00:00", Some(noon)),
            (None, true, "2024-03-10 12:00:00+02", None),
            // As PostgreSQL: a timestamp has no zone.
            (None, false, "2024-03-10 12:00:00+02", Some(noon)),
            (None, true, "2024-03-10 12:00:00", Some(noon)),
            (None, true, "infinity", Some(i64::MAX)),
        ] {
            assert_eq!(count(zone, strict, text), wanted, "{text}");
        }
    }
}
