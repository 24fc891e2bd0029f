//! Maps from their texts, which are JSON: `{"a":1,"b":null}`.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanArray, ListArray, StringArray, StringViewArray, StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::Result;
use messages::Error;
use messages::types::type_name;
use table::{JsonKind, is_enum, json_kind, map_parts};

use crate::items::from_texts;
use crate::json::cut::{self, Kind};
use crate::json::normal;
use crate::json::read::read as read_json;
use crate::json::walk::member;
use crate::lists::types::{fields, item};
use crate::maps::make::checked;

/// Maps of type `to` from their texts.
///
/// # Errors
/// For a text that is no JSON, or says no such map.
pub(crate) fn read(texts: &StringArray, to: &DataType) -> Result<ArrayRef> {
    for text in texts.iter().flatten() {
        normal::check(text)?;
    }
    from_json(&texts.iter().collect::<Vec<_>>(), to)
}

fn wrong(text: &str, to: &DataType) -> datafusion_common::DataFusionError {
    let message = format!(
        "invalid input syntax for type {}: \"{text}\"",
        type_name(to)
    );
    Error::coded("22P02", message).into()
}

/// Values of type `to` from JSON, which is valid; NULL from `null`.
fn from_json(texts: &[Option<&str>], to: &DataType) -> Result<ArrayRef> {
    let given =
        |text: &Option<&str>| text.is_some_and(|text| !matches!(Kind::of(text), Kind::Null));
    if let Some(kind) = json_kind(to) {
        return read_json(&texts.iter().copied().collect::<StringViewArray>(), kind);
    }
    let valid: Vec<bool> = texts.iter().map(given).collect();
    let nulls = Some(NullBuffer::from(valid.clone())).filter(|n| n.null_count() > 0);
    let all = texts.iter().zip(&valid);
    let all = all.filter_map(|(text, valid)| text.filter(|_| *valid));
    let all: Vec<&str> = all.collect();
    let kind = match to {
        DataType::Map(..) | DataType::Struct(_) if !is_enum(to) => Some(Kind::Object),
        DataType::List(_) => Some(Kind::Array),
        _ => None,
    };
    let mut odd = all
        .iter()
        .filter(|text| kind.is_some_and(|kind| kind != Kind::of(text)));
    if let Some(odd) = odd.next() {
        return Err(wrong(odd, to));
    }
    if let Some((key, value)) = map_parts(to) {
        let (mut keys, mut values, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
        for text in all {
            let members = cut::members(text);
            lengths.push(members.len());
            for (key, value) in members {
                keys.push(cut::plain(key)?);
                values.push(Some(value));
            }
        }
        let keys: ArrayRef = Arc::new(StringViewArray::from_iter(keys));
        let (keys, values) = (plainly(&keys, key)?, from_json(&values, value)?);
        return checked(to, offsets(lengths, &valid), keys, values, nulls);
    }
    if let Some(of) = item(to) {
        let (mut items, mut lengths) = (Vec::new(), Vec::new());
        for text in all {
            let own = cut::items(text);
            lengths.push(own.len());
            items.extend(own.into_iter().map(Some));
        }
        let items = from_json(&items, of)?;
        let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
        let lists = ListArray::try_new(field, offsets(lengths, &valid), items, nulls)?;
        return Ok(Arc::new(lists));
    }
    if let Some(fields) = fields(to) {
        return members(texts, &valid, fields, nulls);
    }
    scalars(texts, to)
}

/// Structs from objects, by the names of their members.
fn members(
    texts: &[Option<&str>],
    valid: &[bool],
    fields: &Fields,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let columns = fields.iter().map(|field| {
        let mut own = Vec::with_capacity(texts.len());
        for (text, valid) in texts.iter().zip(valid) {
            own.push(match text.filter(|_| *valid) {
                Some(text) => member(text, field.name(), JsonKind::Text)?,
                None => None,
            });
        }
        from_json(&own, field.data_type())
    });
    let columns = columns.collect::<Result<Vec<_>>>()?;
    Ok(Arc::new(StructArray::try_new(
        fields.clone(),
        columns,
        nulls,
    )?))
}

/// Values without parts.
fn scalars(texts: &[Option<&str>], to: &DataType) -> Result<ArrayRef> {
    let plain = texts.iter().map(|text| match text {
        Some(text) => cut::plain(text),
        None => Ok(None),
    });
    let plain = plain.collect::<Result<Vec<_>>>()?;
    if *to == DataType::Boolean {
        let read = |text: &Option<Cow<'_, str>>| match text.as_deref() {
            None => Ok(None),
            Some("true") => Ok(Some(true)),
            Some("false") => Ok(Some(false)),
            Some(other) => Err(wrong(other, to)),
        };
        let found = plain.iter().map(read).collect::<Result<Vec<_>>>()?;
        return Ok(Arc::new(BooleanArray::from(found)));
    }
    let plain: ArrayRef = Arc::new(StringViewArray::from_iter(plain));
    plainly(&plain, to)
}

/// Values of a type without parts, from their texts.
fn plainly(texts: &ArrayRef, to: &DataType) -> Result<ArrayRef> {
    let found = from_texts(texts, to)?;
    if found.data_type() == to {
        return Ok(found);
    }
    Ok(cast(&found, to)?)
}

/// The ends of what is in each row, of which those that are not `valid` have nothing.
fn offsets(lengths: Vec<usize>, valid: &[bool]) -> OffsetBuffer<i32> {
    let mut lengths = lengths.into_iter();
    let all = valid.iter().map(|valid| {
        let own = if *valid { lengths.next() } else { None };
        own.unwrap_or(0)
    });
    OffsetBuffer::from_lengths(all)
}
