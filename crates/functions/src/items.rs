//! Values that are no arrays, structs or maps from texts and as texts, as PostgreSQL reads and writes them.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, BooleanArray, Float32Array, Float64Array, StringArray,
    StringViewArray,
};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Decimal256Type, Float32Type, Float64Type};
use datafusion_common::{Result, exec_err};
use messages::Error;
use messages::types::type_name;
use table::{decimal_text, enum_type, is_enum, json_kind};

use crate::arguments::{is_text, strings};
use crate::decimals::casts;
use crate::json::read::read as read_json;
use crate::json::value;
use crate::temporal::local::Local;
use crate::temporal::read::{self, reads};
use crate::{bytes, uuid};

/// Values from texts as PostgreSQL reads them.
///
/// # Errors
/// For a text that is no value of the type.
pub(crate) fn from_texts(texts: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    if is_text(to) {
        return Ok(cast(texts, to)?);
    }
    if let (DataType::Float64, Some(texts)) = (to, texts.as_string_view_opt()) {
        return doubles(texts);
    }
    let own = strings(texts)?;
    if let Some(kind) = json_kind(to) {
        return read_json(&StringViewArray::from(own.iter().collect::<Vec<_>>()), kind);
    }
    if let Some(kind) = enum_type(to) {
        return Ok(kind.read(&own).map_err(Error::from)?);
    }
    let wrong = |text: &str| {
        exec_err!(
            "invalid input syntax for type {}: \"{text}\"",
            type_name(to)
        )
    };
    match to {
        DataType::FixedSizeBinary(16) => uuid::read(&own),
        to if reads(to) => read::from_texts(&own, to, Local::now()),
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let bytes = bytes::of_texts(&own)?;
            Ok(cast(&bytes, to)?)
        }
        DataType::Boolean => {
            let mut found = Vec::with_capacity(own.len());
            for text in &own {
                found.push(
                    match text.map(|text| (text, text.trim().to_ascii_lowercase())) {
                        None => None,
                        Some((text, word)) => match word.as_str() {
                            "t" | "tr" | "tru" | "true" | "y" | "ye" | "yes" | "on" | "1" => {
                                Some(true)
                            }
                            "f" | "fa" | "fal" | "fals" | "false" | "n" | "no" | "of" | "off"
                            | "0" => Some(false),
                            _ => return wrong(text),
                        },
                    },
                );
            }
            Ok(Arc::new(BooleanArray::from(found)))
        }
        DataType::Float32 => Ok(Arc::new(
            own.iter()
                .map(|text| text.map(real).transpose())
                .collect::<Result<Float32Array>>()?,
        )),
        DataType::Float64 => Ok(Arc::new(
            own.iter()
                .map(|text| text.map(double).transpose())
                .collect::<Result<Float64Array>>()?,
        )),
        DataType::Decimal128(..) | DataType::Decimal256(..) => {
            let trimmed: StringArray = own.iter().map(|text| text.map(str::trim)).collect();
            casts::converted(&(Arc::new(trimmed) as ArrayRef), to, true)
        }
        to => {
            let trimmed: StringArray = own.iter().map(|text| text.map(str::trim)).collect();
            let found = cast(&trimmed, to)?;
            let mut rows = (0..own.len()).filter(|row| own.is_valid(*row) && found.is_null(*row));
            match rows.next() {
                Some(row) => wrong(own.value(row)),
                None => Ok(found),
            }
        }
    }
}

/// Whether digits say a number other than zero.
fn is_other_than_zero(text: &str) -> bool {
    let digits = text.split(['e', 'E']).next().unwrap_or_default();
    digits.contains(|c: char| matches!(c, '1'..='9'))
}

/// A number with a point that floats, from its text: one that is too great or too near to zero is refused.
fn float<T: FromStr + Into<f64> + Copy>(text: &str, title: &str) -> Result<T> {
    let own = text.trim();
    let Ok(value) = own.parse::<T>() else {
        return Err(Error::coded(
            "22P02",
            format!("invalid input syntax for type {title}: \"{text}\""),
        )
        .into());
    };
    let number: f64 = value.into();
    let is_lost = number == 0.0 || number.is_infinite();
    if is_lost && is_other_than_zero(own) {
        return Err(Error::coded(
            "22003",
            format!("\"{own}\" is out of range for type {title}"),
        )
        .into());
    }
    Ok(value)
}

fn real(text: &str) -> Result<f32> {
    float(text, "real")
}

fn double(text: &str) -> Result<f64> {
    float(text, "double precision")
}

/// Doubles from texts that are read where they lie.
fn doubles(texts: &StringViewArray) -> Result<ArrayRef> {
    let mut values = Vec::with_capacity(texts.len());
    for row in 0..texts.len() {
        values.push(if texts.is_null(row) {
            0.0
        } else {
            double(texts.value(row))?
        });
    }
    let nulls = texts.nulls().cloned();
    Ok(Arc::new(Float64Array::new(values.into(), nulls)))
}

/// The texts of values that are no arrays, structs or maps, as PostgreSQL writes them.
///
/// # Errors
/// Those of writing them.
pub(crate) fn to_texts(items: &ArrayRef) -> Result<ArrayRef> {
    if let Some(texts) = read::to_texts(items)? {
        return Ok(texts);
    }
    let each = |text: &dyn Fn(usize) -> String| -> ArrayRef {
        let nulls = items.logical_nulls();
        let valid = |row| nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
        let rows = (0..items.len()).map(|row| valid(row).then(|| text(row)));
        Arc::new(StringViewArray::from_iter(rows))
    };
    Ok(match items.data_type() {
        DataType::Boolean => {
            let values = items.as_boolean();
            each(&|row| if values.value(row) { "t" } else { "f" }.to_string())
        }
        DataType::Float32 => {
            let values = items.as_primitive::<Float32Type>();
            each(&|row| {
                shown(
                    f64::from(values.value(row)),
                    format!("{:e}", values.value(row)),
                    6,
                )
            })
        }
        DataType::Float64 => {
            let values = items.as_primitive::<Float64Type>();
            each(&|row| shown(values.value(row), format!("{:e}", values.value(row)), 15))
        }
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => {
            let values = cast(items, &DataType::BinaryView)?;
            let values = values.as_binary_view();
            each(&|row| {
                let mut text = "\\x".to_string();
                for byte in values.value(row) {
                    let _ = write!(text, "{byte:02x}");
                }
                text
            })
        }
        DataType::FixedSizeBinary(16) => {
            let ids = items.as_fixed_size_binary();
            each(&|row| uuid::write(ids.value(row)))
        }
        ty if is_enum(ty) => match enum_type(ty) {
            Some(own) => Arc::new(StringViewArray::from_iter(own.texts(items))),
            None => return exec_err!("an enum without labels"),
        },
        ty if json_kind(ty).is_some() => Arc::new(value::texts(items)),
        DataType::Decimal256(precision, scale) => {
            let values = items.as_primitive::<Decimal256Type>();
            each(&|row| decimal_text(values.value(row), *precision, *scale))
        }
        _ => cast(items, &DataType::Utf8View)?,
    })
}

/// A number with a point that floats, from its shortest digits `d.ddde-7`; with an exponent below 1e-4 and from
/// `10^most` on.
fn shown(value: f64, shortest: String, most: i32) -> String {
    if value.is_nan() {
        return "NaN".into();
    }
    if value.is_infinite() {
        return if value > 0.0 { "Infinity" } else { "-Infinity" }.into();
    }
    let (digits, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= most {
        let sign = if exponent < 0 { '-' } else { '+' };
        return format!("{digits}e{sign}{:02}", exponent.abs());
    }
    // The display of floats has no exponent, and the fewest digits.
    if most == 6 {
        (value as f32).to_string()
    } else {
        value.to_string()
    }
}
