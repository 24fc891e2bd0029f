//! `pg_size_pretty` and `pg_size_bytes`: numbers of bytes as people write them.

use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use arrow::datatypes::{DataType, Decimal128Type, Int64Type};
use datafusion_common::{Result, plan_err};
use messages::Error;
use messages::types::type_name;

use crate::arguments::{TEXT, texts};
use crate::own::Own;

/// A unit: its name, up to how many bytes of the unit before it is not used, whether it is rounded, and the power of two
/// that it is.
struct Unit {
    name: &'static str,
    limit: i128,
    rounds: bool,
    bits: u32,
}

const fn unit(name: &'static str, bits: u32) -> Unit {
    Unit {
        name,
        limit: 20 * 1024 - 1,
        rounds: true,
        bits,
    }
}

/// Those of PostgreSQL.
const UNITS: [Unit; 6] = [
    Unit {
        name: "bytes",
        limit: 10 * 1024,
        rounds: false,
        bits: 0,
    },
    unit("kB", 10),
    unit("MB", 20),
    unit("GB", 30),
    unit("TB", 40),
    unit("PB", 50),
];

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new("pg_size_pretty", number, |_| Ok(TEXT), pretty),
        Own::new(
            "pg_size_bytes",
            |types| texts("pg_size_bytes", types, 1..=1),
            |_| Ok(DataType::Int64),
            |args, _| {
                let sizes: &StringArray = args[0].as_string();
                let bytes = sizes.iter().map(|text| text.map(bytes).transpose());
                Ok(Arc::new(bytes.collect::<Result<Int64Array>>()?))
            },
        ),
    ]
}

fn number(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [ty] if ty.is_integer() || ty.is_null() => Ok(vec![DataType::Int64]),
        [ty @ DataType::Decimal128(_, 0..)] => Ok(vec![ty.clone()]),
        [DataType::Decimal128(..)] => Ok(vec![DataType::Decimal128(38, 0)]),
        [DataType::Decimal256(..)] => Ok(vec![DataType::Decimal128(38, 10)]),
        types => {
            let names: Vec<String> = types.iter().map(type_name).collect();
            plan_err!(
                "function pg_size_pretty({}) does not exist: it takes a bigint or a numeric",
                names.join(", ")
            )
        }
    }
}

fn pretty(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    if let DataType::Decimal128(_, scale) = args[0].data_type() {
        let decimals = args[0].as_primitive::<Decimal128Type>();
        let one = 10i128.pow(u32::from(scale.unsigned_abs()));
        let text = |value: i128| {
            let (whole, rest) = (value / one, value % one);
            match in_unit(whole) {
                (whole, "bytes") => format!("{} bytes", decimal(value < 0, whole, rest, *scale)),
                (size, unit) => format!("{size} {unit}"),
            }
        };
        let found = decimals.iter().map(|value| value.map(text));
        return Ok(Arc::new(found.collect::<StringArray>()));
    }
    let sizes = args[0].as_primitive::<Int64Type>();
    let text = |size: i64| {
        let (size, unit) = in_unit(size.into());
        format!("{size} {unit}")
    };
    let found = sizes.iter().map(|size| size.map(text));
    Ok(Arc::new(found.collect::<StringArray>()))
}

/// A number with as many digits behind the point as it needs.
fn decimal(negative: bool, whole: i128, rest: i128, scale: i8) -> String {
    let sign = if negative { "-" } else { "" };
    let width = usize::from(scale.unsigned_abs());
    let digits = format!("{:0width$}", rest.unsigned_abs());
    match digits.trim_end_matches('0') {
        "" => format!("{sign}{}", whole.unsigned_abs()),
        digits => format!("{sign}{}.{digits}", whole.unsigned_abs()),
    }
}

/// So many bytes in the unit in which they are shown.
fn in_unit(bytes: i128) -> (i128, &'static str) {
    let mut size = bytes;
    for (at, unit) in UNITS.iter().enumerate() {
        let next = UNITS.get(at + 1);
        let small = size.abs() < unit.limit;
        let Some(next) = next.filter(|_| !small) else {
            return if unit.rounds {
                // It was left with a bit more, by which it is rounded.
                let half = if size < 0 { size - 1 } else { size + 1 };
                (half / 2, unit.name)
            } else {
                (size, unit.name)
            };
        };
        let bits = next.bits - unit.bits - u32::from(next.rounds) + u32::from(unit.rounds);
        size /= 1 << bits;
    }
    (size, "bytes")
}

/// The bytes that a text says: a number, and a unit if it has one.
fn bytes(text: &str) -> Result<i64> {
    let invalid = || Error::coded("22023", format!("invalid size: \"{text}\""));
    let (number, unit) = split(text.trim_start()).ok_or_else(invalid)?;
    let bits = match unit.trim() {
        "" => 0,
        unit => {
            let mut known = UNITS.iter();
            let known = known.find(|own| own.name.eq_ignore_ascii_case(unit));
            let wrong = || {
                Error::coded(
                    "22023",
                    format!(
                        "invalid size: \"{text}\": Invalid size unit: \"{unit}\". Valid units are \"bytes\", \"kB\", \"MB\", \"GB\", \"TB\", and \"PB\"."
                    ),
                )
            };
            known.ok_or_else(wrong)?.bits
        }
    };
    let out_of_range = || Error::coded("22003", "bigint out of range");
    let bytes = scaled(number, bits).ok_or_else(out_of_range)?;
    i64::try_from(bytes).map_err(|_| out_of_range().into())
}

/// The number at the start of a text, and what is behind it.
fn split(text: &str) -> Option<(&str, &str)> {
    let digits = |from: usize| {
        let rest = text.as_bytes().get(from..).unwrap_or_default();
        rest.iter().take_while(|byte| byte.is_ascii_digit()).count()
    };
    let mut end = usize::from(text.starts_with(['-', '+']));
    let whole = digits(end);
    end += whole;
    let mut behind = 0;
    if text[end..].starts_with('.') {
        behind = digits(end + 1);
        end += 1 + behind;
    }
    if whole + behind == 0 {
        return None;
    }
    if text[end..].starts_with(['e', 'E']) {
        let sign = usize::from(text[end + 1..].starts_with(['-', '+']));
        let exponent = digits(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    Some(text.split_at(end))
}

/// A number, as [`split`] gives it, times a power of two, rounded half away from zero; none if it is too large.
fn scaled(number: &str, bits: u32) -> Option<i128> {
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().ok()?),
        None => (number, 0),
    };
    let (whole, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    // What is further behind is less than a byte.
    let behind = &behind[..behind.len().min(18)];
    let negative = whole.starts_with('-');
    let digits = format!("{}{behind}", whole.trim_start_matches(['-', '+']));
    let value = match digits.trim_start_matches('0') {
        "" => return Some(0),
        digits => digits.parse::<i128>().ok()?.checked_mul(1 << bits)?,
    };
    let exponent = exponent.checked_sub(behind.len() as i32)?;
    let power = 10i128.checked_pow(exponent.unsigned_abs());
    let value = match power {
        Some(power) if exponent >= 0 => value.checked_mul(power)?,
        Some(power) => (value + power / 2) / power,
        None if exponent >= 0 => return None,
        None => 0,
    };
    Some(if negative { -value } else { value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_shown_as_postgresql_shows_them() {
        for (bytes, shown) in [
            (0, "0 bytes"),
            (10_239, "10239 bytes"),
            (10_240, "10 kB"),
            (-10_240, "-10 kB"),
            (10 << 20, "10 MB"),
            (10_737_418_240, "10 GB"),
            (1_000_000, "977 kB"),
            (1_000_000_000, "954 MB"),
            (-1_000_000_000, "-954 MB"),
            (1_000_000_000_000, "931 GB"),
            (1_000_000_000_000_000, "909 TB"),
            (i128::from(i64::MAX), "8192 PB"),
            (i128::from(i64::MIN), "-8192 PB"),
        ] {
            let (size, unit) = in_unit(bytes);
            assert_eq!(format!("{size} {unit}"), shown, "{bytes}");
        }
    }

    #[test]
    fn sizes_are_read() {
        for (text, wanted) in [
            ("1", 1),
            ("123bytes", 123),
            ("1kB", 1024),
            ("1 MB ", 1 << 20),
            (" 1.5 GB", 3 << 29),
            ("-1tb", -(1i64 << 40)),
            ("-.1", 0),
            ("1e2 kb", 102_400),
            ("1e-2 MB", 10_486),
            ("+0.5", 1),
        ] {
            assert_eq!(bytes(text).unwrap(), wanted, "{text}");
        }
        for (text, code) in [
            ("1 AB", "22023"),
            ("1 AB A", "22023"),
            ("", "22023"),
            ("kb", "22023"),
            ("..", "22023"),
            ("9223372036854775807.9", "22003"),
            ("1e100", "22003"),
            ("9999 PB", "22003"),
        ] {
            let error: Error = bytes(text).unwrap_err().into();
            assert_eq!(error.sqlstate(), code, "{text}");
        }
    }
}
