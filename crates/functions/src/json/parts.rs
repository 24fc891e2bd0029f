//! What is in JSON: `json_typeof`, `json_array_length`, and the lists behind `json_each` and its kind.

use std::borrow::Cow;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Int32Array, ListArray, ListBuilder, StringViewArray,
    StringViewBuilder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use datafusion_common::{Result, exec_err};
use table::{JsonKind, json_kind};

use crate::json::cut::{self, Kind};
use crate::json::value::{named, texts, values};
use crate::json::walk::member;
use crate::lists::types::list_of;
use crate::own::Own;

/// The functions that stand in `from`, by their names without `json`, and for each of their columns the function that
/// makes its values, and its name.
pub const TABLES: [(&str, &[(&str, &str)]); 5] = [
    ("_array_elements", &[(" items", "value")]),
    ("_array_elements_text", &[(" item texts", "value")]),
    ("_object_keys", &[(" keys", "")]),
    ("_each", &[(" keys of", "key"), (" members", "value")]),
    (
        "_each_text",
        &[(" keys of", "key"), (" member texts", "value")],
    ),
];

macro_rules! both {
    ($name:literal, $returns:expr, $run:expr) => {
        [
            Own::new(
                concat!("json", $name),
                |types| with_key(named(concat!("json", $name), types)?, types),
                $returns,
                $run,
            ),
            Own::new(
                concat!("jsonb", $name),
                |types| with_key(named(concat!("jsonb", $name), types)?, types),
                $returns,
                $run,
            ),
        ]
    };
}

/// JSON, and the key of a member where there is one.
fn with_key(json: DataType, types: &[DataType]) -> Result<Vec<DataType>> {
    let mut wanted = vec![json];
    wanted.resize(types.len().max(1), DataType::Utf8View);
    Ok(wanted)
}

pub(super) fn all() -> Vec<Own> {
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let number = |_: &[DataType]| Ok(DataType::Int32);
    let lists = |types: &[DataType]| Ok(list_of(types[0].clone()));
    let of_texts = |_: &[DataType]| Ok(list_of(DataType::Utf8View));
    let all = [
        both!("_typeof", text, kinds),
        both!("_array_length", number, lengths),
        both!(" items", lists, |args, rows| items(args, rows, false)),
        both!(" item texts", of_texts, |args, rows| items(
            args, rows, true
        )),
        both!(" members", lists, |args, rows| members(args, rows, false)),
        both!(" member texts", of_texts, |args, rows| members(
            args, rows, true
        )),
        both!(" keys", of_texts, |args, rows| keys(
            args,
            rows,
            "json_object_keys"
        )),
        both!(" keys of", of_texts, |args, rows| keys(
            args,
            rows,
            "json_each"
        )),
        both!(" texts of records", of_texts, |args, rows| records(
            args,
            rows,
            (true, true)
        )),
        both!(" text of record", of_texts, |args, rows| records(
            args,
            rows,
            (false, true)
        )),
        both!(" parts of records", lists, |args, rows| records(
            args,
            rows,
            (true, false)
        )),
        both!(" part of record", lists, |args, rows| records(
            args,
            rows,
            (false, false)
        )),
    ];
    all.into_iter().flatten().collect()
}

/// The values that records have under a key: of each in an array, or of one.
fn records(args: &[ArrayRef], rows: usize, (all, as_text): (bool, bool)) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    let keys = args[1].as_string_view();
    let kind = json_kind(args[0].data_type()).unwrap_or(JsonKind::Text);
    let (mut found, mut lengths, mut valid) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let one = own.is_valid(row).then(|| own.value(row));
        // Of no JSON there is a record without values, but no set of them.
        let objects = match (one, all) {
            (None, true) => vec![],
            (None, false) => vec![None],
            (Some(text), true) => match Kind::of(text) {
                Kind::Array => cut::items(text).into_iter().map(Some).collect(),
                _ => return exec_err!("cannot call json_to_recordset on a non-array"),
            },
            (Some(text), false) => vec![Some(text)],
        };
        lengths.push(objects.len());
        valid.push(true);
        for object in objects {
            let value = match object.map(|text| (text, Kind::of(text))) {
                None => None,
                Some((text, Kind::Object)) => member(text, keys.value(row), kind)?,
                Some((_, Kind::Array)) if !all => {
                    return exec_err!("cannot call json_to_record on an array");
                }
                Some(_) if all => {
                    return exec_err!("argument of json_to_recordset must be an array of objects");
                }
                Some(_) => return exec_err!("cannot call json_to_record on a scalar"),
            };
            found.push(match value {
                Some(value) if as_text => cut::plain(value)?.map(Cow::into_owned),
                Some(value) if Kind::of(value) == Kind::Null => None,
                Some(value) => Some(value.to_string()),
                None => None,
            });
        }
    }
    let items: ArrayRef = if as_text {
        Arc::new(StringViewArray::from_iter(found))
    } else {
        values(kind, found)?
    };
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let nulls = Some(NullBuffer::from(valid));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(field, offsets, items, nulls)?))
}

fn kinds(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    let kinds = own
        .iter()
        .map(|text| text.map(|text| Kind::of(text).name()));
    Ok(Arc::new(StringViewArray::from_iter(kinds)))
}

fn array_of<'t>(text: &'t str, what: &str) -> Result<Vec<&'t str>> {
    match Kind::of(text) {
        Kind::Array => Ok(cut::items(text)),
        Kind::Object => exec_err!("cannot {what} of a non-array"),
        _ => exec_err!("cannot {what} of a scalar"),
    }
}

fn lengths(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    let of = |text| Ok(array_of(text, "get array length")?.len() as i32);
    let found = own.iter().map(|text| text.map(of).transpose());
    Ok(Arc::new(Int32Array::from(
        found.collect::<Result<Vec<_>>>()?,
    )))
}

/// Lists of parts, as JSON of the kind of `args[0]` or as texts.
fn lists_of(
    args: &[ArrayRef],
    rows: usize,
    as_text: bool,
    parts: impl Fn(&str) -> Result<Vec<&str>>,
) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    let (mut found, mut lengths) = (Vec::new(), Vec::with_capacity(rows));
    for row in 0..rows {
        let parts = if own.is_valid(row) {
            parts(own.value(row))?
        } else {
            vec![]
        };
        lengths.push(parts.len());
        for part in parts {
            found.push(if as_text {
                cut::plain(part)?.map(Cow::into_owned)
            } else {
                Some(part.to_string())
            });
        }
    }
    let items: ArrayRef = match json_kind(args[0].data_type()) {
        Some(kind) if !as_text => values(kind, found)?,
        None if !as_text => values(JsonKind::Text, found)?,
        _ => Arc::new(StringViewArray::from_iter(found)),
    };
    let field = Arc::new(Field::new_list_field(items.data_type().clone(), true));
    let valid: Vec<bool> = (0..rows).map(|row| own.is_valid(row)).collect();
    let nulls = Some(NullBuffer::from(valid));
    let offsets = OffsetBuffer::from_lengths(lengths);
    Ok(Arc::new(ListArray::try_new(field, offsets, items, nulls)?))
}

fn items(args: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    lists_of(args, rows, as_text, |text| {
        array_of(text, "call json_array_elements on the elements")
    })
}

fn object_of<'t>(text: &'t str, name: &str) -> Result<Vec<(&'t str, &'t str)>> {
    match Kind::of(text) {
        Kind::Object => Ok(cut::members(text)),
        Kind::Array => exec_err!("cannot call {name} on an array"),
        _ => exec_err!("cannot call {name} on a scalar"),
    }
}

fn members(args: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    lists_of(args, rows, as_text, |text| {
        let members = object_of(text, "json_each")?;
        Ok(members.into_iter().map(|(_, value)| value).collect())
    })
}

fn keys(args: &[ArrayRef], rows: usize, name: &str) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    let mut out = ListBuilder::new(StringViewBuilder::new());
    for row in 0..rows {
        if own.is_valid(row) {
            for (key, _) in object_of(own.value(row), name)? {
                out.values().append_value(cut::characters(key)?);
            }
        }
        out.append(own.is_valid(row));
    }
    Ok(Arc::new(out.finish()))
}
