//! The error of a key that another row has, in words.

use std::sync::Arc;

use arrow::array::{
    ArrayRef, BinaryViewArray, Decimal128Array, Float64Array, Int64Array, StringViewArray,
    UInt64Array,
};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};
use crate::format::keys::Form;
use crate::format::nested::{from_storage, uuid_text};
use crate::schema::{Definition, Infinity, Key, enum_type, not_finite};

/// The most characters of a value that the error shows.
const SHOWN: usize = 100;

/// The error of a row of a table whose key another row has.
pub(crate) fn duplicate(definition: &Definition, key: &Key, bytes: &[u8]) -> Error {
    let mut rest = bytes;
    let mut values = Vec::with_capacity(key.columns.len());
    for column in &key.columns {
        let data_type = &definition.columns[*column].data_type;
        let value = value(data_type, &mut rest);
        values.push(value.unwrap_or_else(|| "?".to_owned()));
    }
    let columns = key.columns.iter();
    let columns: Vec<&str> = columns.map(|c| &definition.columns[*c].name[..]).collect();
    Error::Duplicate {
        table: definition.name.clone(),
        key: key.name.clone(),
        columns: columns.join(", "),
        values: values.join(", "),
    }
}

/// Takes a value off a key, as people see it.
fn value(data_type: &DataType, key: &mut &[u8]) -> Option<String> {
    let array = array(data_type, key)?;
    let options = FormatOptions::new().with_timestamp_format(Some("%Y-%m-%d %H:%M:%S%.f"));
    let text = ArrayFormatter::try_new(&array, &options).ok()?;
    let text = text.value(0).try_to_string().ok()?;
    if text.chars().count() <= SHOWN {
        return Some(text);
    }
    Some(text.chars().take(SHOWN).chain("...".chars()).collect())
}

fn array(data_type: &DataType, key: &mut &[u8]) -> Option<ArrayRef> {
    match Form::of(data_type) {
        Form::Narrow => {
            let (eight, rest) = key.split_first_chunk::<8>()?;
            *key = rest;
            let number = (u64::from_be_bytes(*eight) ^ 1 << 63) as i64;
            if let Some(own) = enum_type(data_type) {
                let mut labels = own.labels.into_iter();
                let label = labels.find(|label| i64::from(label.number) == number)?;
                return Some(Arc::new(StringViewArray::from(vec![label.text])));
            }
            let infinity = match data_type {
                DataType::Date32 => i32::try_from(number).ok().and_then(Infinity::of_day),
                DataType::Timestamp(_, _) => Infinity::of_count(number),
                _ => None,
            };
            if let Some(infinity) = infinity {
                return Some(Arc::new(StringViewArray::from(vec![infinity.text()])));
            }
            narrow(data_type, number).ok()
        }
        Form::Wide => {
            let (sixteen, rest) = key.split_first_chunk::<16>()?;
            *key = rest;
            let number = (u128::from_be_bytes(*sixteen) ^ 1 << 127) as i128;
            match data_type {
                DataType::Decimal128(precision, scale) => {
                    let array = Decimal128Array::from(vec![number]);
                    let array = array.with_precision_and_scale(*precision, *scale).ok()?;
                    Some(Arc::new(array))
                }
                _ => Some(Arc::new(UInt64Array::from(vec![number as u64]))),
            }
        }
        Form::Float => {
            let (eight, rest) = key.split_first_chunk::<8>()?;
            *key = rest;
            let ordered = u64::from_be_bytes(*eight);
            let bits = if ordered >> 63 == 1 {
                ordered & !(1 << 63)
            } else {
                !ordered
            };
            let array = Float64Array::from(vec![f64::from_bits(bits)]);
            cast(&array, data_type).ok()
        }
        Form::Bytes => {
            let text = text(key)?;
            match data_type {
                DataType::Utf8View => {
                    let text = String::from_utf8(text).ok()?;
                    Some(Arc::new(StringViewArray::from(vec![text])))
                }
                DataType::Decimal256(..) => {
                    let bytes: ArrayRef = Arc::new(BinaryViewArray::from(vec![&text[..]]));
                    let number = from_storage(bytes, data_type)?;
                    match not_finite(number.as_ref()) {
                        Some(own) => Some(Arc::new(StringViewArray::from(vec![own.text()]))),
                        None => Some(number),
                    }
                }
                DataType::FixedSizeBinary(16) => {
                    Some(Arc::new(StringViewArray::from(vec![uuid_text(&text)])))
                }
                DataType::FixedSizeBinary(_) => {
                    Some(Arc::new(StringViewArray::from(vec![timetz_text(&text)?])))
                }
                _ => Some(Arc::new(BinaryViewArray::from(vec![&text[..]]))),
            }
        }
    }
}

/// The bytes of a time with a zone as people write it.
fn timetz_text(bytes: &[u8]) -> Option<String> {
    let (first, last) = bytes.split_first_chunk::<8>()?;
    let utc = (u64::from_be_bytes(*first) ^ 1 << 63) as i64 / 1_000;
    let west = (u32::from_be_bytes(last.try_into().ok()?) ^ 1 << 31) as i32;
    let (micros, ahead) = (utc - i64::from(west) * 1_000_000, west.unsigned_abs());
    let (seconds, rest) = (micros / 1_000_000, micros % 1_000_000);
    let mut text = format!(
        "{:02}:{:02}:{:02}",
        seconds / 3_600,
        seconds / 60 % 60,
        seconds % 60
    );
    if rest != 0 {
        text += format!(".{rest:06}").trim_end_matches('0');
    }
    text += &format!("{}{:02}", if west > 0 { '-' } else { '+' }, ahead / 3_600);
    if ahead % 3_600 != 0 {
        text += &format!(":{:02}", ahead / 60 % 60);
    }
    Some(text)
}

/// A whole number as a value of its type.
fn narrow(data_type: &DataType, number: i64) -> Result<ArrayRef> {
    let array: ArrayRef = Arc::new(Int64Array::from(vec![number]));
    let narrow = matches!(data_type, DataType::Date32 | DataType::Time32(_));
    let array = if narrow {
        cast(&array, &DataType::Int32)?
    } else {
        array
    };
    Ok(cast(&array, data_type)?)
}

/// Takes a text off a key.
fn text(key: &mut &[u8]) -> Option<Vec<u8>> {
    let mut text = Vec::new();
    loop {
        let (byte, rest) = key.split_first()?;
        *key = rest;
        if *byte != 0 {
            text.push(*byte);
            continue;
        }
        let (second, rest) = key.split_first()?;
        *key = rest;
        if *second == 0 {
            return Some(text);
        }
        text.push(0);
    }
}
