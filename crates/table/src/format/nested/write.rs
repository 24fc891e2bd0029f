//! Values into the bytes in which they lie in pages.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BinaryViewArray, BinaryViewBuilder, StringViewArray};
use arrow::buffer::NullBuffer;
use arrow::compute::{max, min};
use arrow::datatypes::{DataType, Decimal256Type, IntervalMonthDayNanoType, IntervalUnit, i256};
use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::error::{Error, Result};
use crate::format::block::Zone;
use crate::schema::{enum_type, is_enum, json_kind};

/// The version of the layout of arrays and structs.
pub(super) const VERSION: u8 = 1;

/// The bit of the first byte of a wide decimal that is turned.
pub(super) const SIGN: u8 = 0x80;

/// Least and greatest value of a column whose values lie as bytes; `None` of types that have no zones. Numbers beyond 128
/// bits are the nearest that there is: so what lies within some bounds is in the zone that these have likewise.
pub(crate) fn zone(array: &ArrayRef) -> Option<Zone> {
    let values = array.as_primitive_opt::<Decimal256Type>()?;
    let (min, max) = (min(values)?, max(values)?);
    Some(Zone::Int {
        min: nearest(min),
        max: nearest(max),
    })
}

/// The number of 128 bits that is the nearest.
fn nearest(value: i256) -> i128 {
    let outside = if value.is_negative() {
        i128::MIN
    } else {
        i128::MAX
    };
    value.to_i128().unwrap_or(outside)
}

/// The type in which values of a stored type lie in pages, where that is another one.
pub(crate) fn storage(data_type: &DataType) -> Option<DataType> {
    match data_type {
        DataType::List(_)
        | DataType::Map(..)
        | DataType::FixedSizeBinary(_)
        | DataType::Decimal256(..)
        | DataType::Interval(IntervalUnit::MonthDayNano) => Some(DataType::BinaryView),
        DataType::Struct(_) if json_kind(data_type).is_some() => Some(DataType::Utf8View),
        DataType::Struct(_) if is_enum(data_type) => Some(DataType::UInt16),
        DataType::Struct(_) => Some(DataType::BinaryView),
        _ => None,
    }
}

/// Values as they lie in pages.
///
/// # Errors
/// [`Error::TooLong`] for an array whose items are too many to be counted, [`Error::Kind`] for a type that is not stored.
pub(crate) fn to_storage(array: &ArrayRef) -> Result<ArrayRef> {
    match array.data_type() {
        own if is_enum(own) => match enum_type(own) {
            Some(own) => own.to_numbers(array),
            None => Err(Error::Kind(format!("labels of {own}"))),
        },
        DataType::Struct(_) if json_kind(array.data_type()).is_some() => {
            let values = array.as_struct();
            let texts = values.column(0).as_string_view();
            let nulls = NullBuffer::union(values.nulls(), texts.nulls());
            let (views, buffers, _) = texts.clone().into_parts();
            Ok(Arc::new(StringViewArray::try_new(views, buffers, nulls)?))
        }
        DataType::FixedSizeBinary(_) => {
            let values = array.as_fixed_size_binary();
            Ok(Arc::new(BinaryViewArray::from_iter(values.iter())))
        }
        DataType::Interval(IntervalUnit::MonthDayNano) => {
            let values = array.as_primitive::<IntervalMonthDayNanoType>();
            let mut out = BinaryViewBuilder::with_capacity(values.len());
            for value in values {
                let Some(value) = value else {
                    out.append_null();
                    continue;
                };
                let mut bytes = [0; 16];
                bytes[..4].copy_from_slice(&value.months.to_le_bytes());
                bytes[4..8].copy_from_slice(&value.days.to_le_bytes());
                bytes[8..].copy_from_slice(&value.nanoseconds.to_le_bytes());
                out.append_value(bytes);
            }
            Ok(Arc::new(out.finish()))
        }
        DataType::Decimal256(..) => {
            let values = array.as_primitive::<Decimal256Type>();
            let mut out = BinaryViewBuilder::with_capacity(values.len());
            for value in values {
                match value {
                    None => out.append_null(),
                    Some(value) => {
                        let mut bytes = value.to_be_bytes();
                        bytes[0] ^= SIGN;
                        out.append_value(bytes);
                    }
                }
            }
            Ok(Arc::new(out.finish()))
        }
        DataType::List(_) | DataType::Struct(_) | DataType::Map(..) => {
            let mut out = BinaryViewBuilder::with_capacity(array.len());
            let mut bytes = Vec::new();
            for row in 0..array.len() {
                if array.is_null(row) {
                    out.append_null();
                    continue;
                }
                bytes.clear();
                bytes.push(VERSION);
                put_values(array, &mut std::iter::once(row), &mut bytes)?;
                out.append_value(&bytes);
            }
            Ok(Arc::new(out.finish()))
        }
        _ => Ok(array.clone()),
    }
}

fn put_length(length: usize, out: &mut Vec<u8>) -> Result<()> {
    let length = u32::try_from(length).map_err(|_| Error::TooLong {
        column: "of arrays".into(),
        bytes: length as u64,
        limit: u32::MAX.into(),
    })?;
    out.extend(length.to_le_bytes());
    Ok(())
}

/// Appends a bit for each of `count` values: whether it is not NULL.
fn put_bitmap(valid: impl Iterator<Item = usize>, count: usize, out: &mut Vec<u8>) {
    let start = out.len();
    out.resize(start + count.div_ceil(8), 0);
    for at in valid {
        out[start + at / 8] |= 1 << (at % 8);
    }
}

/// Appends the items of an array.
fn put_items(items: &ArrayRef, out: &mut Vec<u8>) -> Result<()> {
    let count = items.len();
    put_length(count, out)?;
    let nulls = items.logical_nulls().filter(|n| n.null_count() > 0);
    out.push(nulls.is_some().into());
    if let Some(nulls) = &nulls {
        put_bitmap(nulls.valid_indices(), count, out);
    }
    let mut valid = (0..count).filter(|at| nulls.as_ref().is_none_or(|n| n.is_valid(*at)));
    put_values(items, &mut valid, out)
}

/// Appends the values at `places`, of which none is NULL.
fn put_values(
    values: &ArrayRef,
    places: &mut dyn Iterator<Item = usize>,
    out: &mut Vec<u8>,
) -> Result<()> {
    match values.data_type() {
        own if is_enum(own) => return put_values(&to_storage(values)?, places, out),
        DataType::Boolean => {
            let values = values.as_boolean();
            out.extend(places.map(|at| u8::from(values.value(at))));
        }
        DataType::Utf8View => {
            let values = values.as_string_view();
            for at in places {
                put_bytes(values.value(at).as_bytes(), out)?;
            }
        }
        DataType::BinaryView => {
            let values = values.as_binary_view();
            for at in places {
                put_bytes(values.value(at), out)?;
            }
        }
        DataType::Struct(_) if json_kind(values.data_type()).is_some() => {
            let values = values.as_struct().column(0).as_string_view();
            for at in places {
                put_bytes(values.value(at).as_bytes(), out)?;
            }
        }
        DataType::Struct(_) => {
            let columns = values.as_struct().columns();
            for at in places {
                let valid = (0..columns.len()).filter(|field| columns[*field].is_valid(at));
                put_bitmap(valid, columns.len(), out);
                for column in columns.iter().filter(|column| column.is_valid(at)) {
                    put_values(column, &mut std::iter::once(at), out)?;
                }
            }
        }
        DataType::FixedSizeBinary(_) => {
            let values = values.as_fixed_size_binary();
            for at in places {
                out.extend_from_slice(values.value(at));
            }
        }
        DataType::List(_) => {
            let values = values.as_list::<i32>();
            for at in places {
                put_items(&values.value(at), out)?;
            }
        }
        DataType::Map(..) => {
            let values = values.as_map();
            for at in places {
                let entries = values.value(at);
                check_keys(entries.column(0))?;
                let entries: ArrayRef = Arc::new(entries);
                put_items(&entries, out)?;
            }
        }
        fixed => {
            let Some(width) = fixed.primitive_width() else {
                return Err(Error::Kind(format!("an array of {fixed}")));
            };
            let data = values.to_data();
            let bytes = &data.buffers()[0].as_slice()[data.offset() * width..];
            for at in places {
                out.extend_from_slice(&bytes[at * width..(at + 1) * width]);
            }
        }
    }
    Ok(())
}

/// That the keys of a map are there, and each once.
fn check_keys(keys: &ArrayRef) -> Result<()> {
    if keys.logical_null_count() > 0 {
        return Err(Error::MapKey("a key is NULL".into()));
    }
    let (mut bytes, mut ends) = (Vec::new(), vec![0]);
    for at in 0..keys.len() {
        put_values(keys, &mut std::iter::once(at), &mut bytes)?;
        ends.push(bytes.len());
    }
    let mut seen = HashSet::with_capacity(keys.len());
    let mut twice = (0..keys.len()).filter(|at| !seen.insert(&bytes[ends[*at]..ends[at + 1]]));
    let Some(at) = twice.next() else {
        return Ok(());
    };
    let format = ArrayFormatter::try_new(keys, &FormatOptions::new())?;
    let key = format.value(at).to_string();
    Err(Error::MapKey(format!("the key {key} is there twice")))
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
    put_length(bytes.len(), out)?;
    out.extend_from_slice(bytes);
    Ok(())
}
