//! Casts that differ from DataFusion's.

use std::str::FromStr;
use std::sync::{Arc, LazyLock};

use arrow::array::timezone::Tz;
use arrow::array::{
    ArrayRef, AsArray, Float32Array, Float64Array, PrimitiveArray, TimestampNanosecondArray,
};
use arrow::compute::kernels::cast_utils::string_to_datetime;
use arrow::compute::{CastOptions, cast, cast_with_options};
use arrow::datatypes::{
    DataType, Date32Type, Float64Type, Int64Type, TimeUnit, TimestampNanosecondType,
};
use chrono::{DateTime, Utc};
use datafusion::common::{Result, exec_err, plan_err};
use datafusion::logical_expr::{
    ColumnarValue, Expr, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::arguments::{UTC, nanoseconds, strings};
use crate::functions::own::Own;
use crate::messages::types::type_name;

static ROUND: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        "round_half_even",
        |types| Ok(vec![DataType::Float64; types.len()]),
        |_| Ok(DataType::Float64),
        round,
    );
    Arc::new(own.into())
});

/// `value`, a floating-point number, rounded half to even, as a double.
pub(crate) fn round_half_even(value: Expr) -> Expr {
    ROUND.call(vec![value])
}

fn round(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let values = cast(&args[0], &DataType::Float64)?;
    let rounded: Float64Array = values
        .as_primitive::<Float64Type>()
        .unary(f64::round_ties_even);
    Ok(Arc::new(rounded))
}

static REAL: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let own = Own::new(
        "real",
        |types| Ok(vec![DataType::Float64; types.len()]),
        |_| Ok(DataType::Float32),
        narrow,
    );
    Arc::new(own.into())
});

/// `value`, a double, as a real; an error if it is too great or too near to zero for one.
pub(crate) fn real(value: Expr) -> Expr {
    REAL.call(vec![value])
}

fn narrow(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let of = |value: f64| {
        let real = value as f32;
        if real.is_infinite() && value.is_finite() {
            return exec_err!("value out of range: overflow");
        }
        if real == 0.0 && value != 0.0 {
            return exec_err!("value out of range: underflow");
        }
        Ok(real)
    };
    let values = args[0].as_primitive::<Float64Type>();
    let found = values.iter().map(|value| value.map(of).transpose());
    Ok(Arc::new(found.collect::<Result<Float32Array>>()?))
}

/// A string as a timestamp. Reads times without seconds, too, which Arrow's cast does not. A string that is no
/// timestamp is an error if `strict`, otherwise NULL.
pub(crate) fn read_timestamp(text: Expr, to: &DataType, strict: bool) -> Expr {
    let function = ScalarUDF::from(To {
        from: DataType::Utf8,
        to: to.clone(),
        strict,
        signature: Signature::any(1, Volatility::Immutable),
    });
    Arc::new(function).call(vec![text])
}

/// Texts as timestamps of type `to`.
///
/// # Errors
/// For a text that is none.
pub(super) fn timestamps(texts: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let read = To {
        from: DataType::Utf8,
        to: to.clone(),
        strict: true,
        signature: Signature::any(1, Volatility::Immutable),
    };
    read.text(texts)
}

/// A date as a timestamp in nanoseconds; an error if it is out of their range.
pub(crate) fn date_to_nanoseconds(date: Expr, to: &DataType) -> Expr {
    let function = ScalarUDF::from(To {
        from: DataType::Date32,
        to: to.clone(),
        strict: true,
        signature: Signature::any(1, Volatility::Immutable),
    });
    Arc::new(function).call(vec![date])
}

static NANOSECONDS_OR_END: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| {
    let returns = |types: &[DataType]| match types {
        [DataType::Timestamp(_, zone)] => {
            Ok(DataType::Timestamp(TimeUnit::Nanosecond, zone.clone()))
        }
        _ => plan_err!("a timestamp can only be compared with a timestamp"),
    };
    let own = Own::new(
        "nanoseconds_or_end",
        |types| Ok(types.to_vec()),
        returns,
        saturated,
    );
    Arc::new(own.into())
});

/// A timestamp in nanoseconds, for comparisons. One that is out of their range becomes the least or greatest of them.
pub(crate) fn nanoseconds_or_end(stamp: Expr) -> Expr {
    NANOSECONDS_OR_END.call(vec![stamp])
}

fn saturated(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let DataType::Timestamp(unit, zone) = args[0].data_type() else {
        return plan_err!("a timestamp can only be compared with a timestamp");
    };
    let factor = nanoseconds(*unit);
    let counts = cast(&args[0], &DataType::Int64)?;
    let stamps: TimestampNanosecondArray = counts
        .as_primitive::<Int64Type>()
        .unary(|count| count.saturating_mul(factor));
    Ok(Arc::new(stamps.with_timezone_opt(zone.clone())))
}

/// A cast to a timestamp.
#[derive(Debug, PartialEq, Eq, Hash)]
struct To {
    from: DataType,
    to: DataType,
    strict: bool,
    signature: Signature,
}

impl ScalarUDFImpl for To {
    fn name(&self) -> &str {
        "timestamp"
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
        let found = match self.from {
            DataType::Date32 => self.date(&values)?,
            _ => self.text(&values)?,
        };
        if constant {
            Ok(ColumnarValue::Scalar(
                datafusion::common::ScalarValue::try_from_array(&found, 0)?,
            ))
        } else {
            Ok(ColumnarValue::Array(found))
        }
    }
}

impl To {
    fn text(&self, values: &ArrayRef) -> Result<ArrayRef> {
        let options = CastOptions {
            safe: !self.strict,
            ..CastOptions::default()
        };
        let zone = match &self.to {
            DataType::Timestamp(_, Some(zone)) => Tz::from_str(zone)?,
            _ => Tz::from_str(UTC)?,
        };
        // What Arrow's cast does not read is rewritten into what it reads.
        let texts = strings(values)?;
        let read = |text: &str| -> Option<String> {
            match string_to_datetime(&zone, text) {
                Ok(_) => None,
                Err(_) => completed(text).filter(|text| string_to_datetime(&zone, text).is_ok()),
            }
        };
        let texts: arrow::array::StringArray = texts
            .iter()
            .map(|text| text.map(|text| read(text).unwrap_or_else(|| text.to_string())))
            .collect();
        let found = cast_with_options(&texts, &self.to, &options);
        match found {
            Ok(found) => Ok(found),
            Err(e) => {
                let wrong = texts
                    .iter()
                    .flatten()
                    .find(|text| string_to_datetime(&zone, text).is_err());
                match wrong {
                    Some(text) => exec_err!(
                        "cannot cast string '{text}' to value of {} type",
                        type_name(&self.to)
                    ),
                    None => Err(e.into()),
                }
            }
        }
    }

    fn date(&self, values: &ArrayRef) -> Result<ArrayRef> {
        const DAY: i64 = 86_400_000_000_000;
        let days = values.as_primitive::<Date32Type>();
        let stamps: PrimitiveArray<TimestampNanosecondType> = days.try_unary(|day| {
            i64::from(day).checked_mul(DAY).ok_or_else(|| {
                arrow::error::ArrowError::ComputeError(format!(
                    "the date {} is out of range for a timestamp of nanoseconds",
                    Date32Type::to_naive_date_opt(day)
                        .map_or_else(|| day.to_string(), |date| date.to_string())
                ))
            })
        })?;
        match &self.to {
            DataType::Timestamp(_, Some(zone)) => {
                let stamps: TimestampNanosecondArray = stamps;
                Ok(Arc::new(stamps.with_timezone(Arc::clone(zone))))
            }
            _ => Ok(Arc::new(stamps)),
        }
    }
}

/// `2020-1-2 3:04` as `2020-01-02T03:04:00`, which Arrow's cast reads.
fn completed(text: &str) -> Option<String> {
    let text = text.trim();
    let (date, rest) = match text.find([' ', 'T', 't']) {
        Some(at) => (&text[..at], text[at + 1..].trim_start()),
        None => (text, ""),
    };
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || year.is_empty() {
        return None;
    }
    let clock_end = rest
        .find(|c: char| !c.is_ascii_digit() && c != ':' && c != '.')
        .unwrap_or(rest.len());
    let (clock, zone) = rest.split_at(clock_end);
    let fields: Vec<&str> = clock.split(':').collect();
    let (hour, minute, second) = match fields[..] {
        [""] => ("0", "0", "0"),
        [hour, minute] => (hour, minute, "0"),
        [hour, minute, second] => (hour, minute, second),
        // An hour alone is not a time.
        _ => return None,
    };
    if [hour, minute, second].contains(&"") {
        return None;
    }
    Some(format!(
        "{year:0>4}-{month:0>2}-{day:0>2}T{hour:0>2}:{minute:0>2}:{second:0>2}{}",
        zone.trim()
    ))
}

/// The instant of a count of microseconds since 1970.
pub(super) fn instant(micros: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_completed() {
        for (text, wanted) in [
            ("2020-01-01 12:00", Some("2020-01-01T12:00:00")),
            ("2020-1-2", Some("2020-01-02T00:00:00")),
            (" 2020-01-01  1:02:03.5 ", Some("2020-01-01T01:02:03.5")),
            ("2020-01-01 12:00+01", Some("2020-01-01T12:00:00+01")),
            ("2020-01-01 12", None),
            ("2020-01-01 12:", None),
            ("2020-01-01 :30", None),
            ("2020-01-01 1:2:3:4", None),
            ("today", None),
            ("1-2-3-4", None),
            ("", None),
        ] {
            assert_eq!(completed(text).as_deref(), wanted, "{text:?}");
        }
    }
}
