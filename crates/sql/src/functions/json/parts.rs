//! What is in JSON: `json_typeof`, `json_array_length`, and the lists behind `json_each` and its kind.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, Int32Array, ListArray, ListBuilder, StringViewArray, StringViewBuilder,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field};
use datafusion::common::{Result, exec_err};
use table::{JsonKind, json_kind};

use crate::functions::json::cut::{self, Kind};
use crate::functions::json::value::{named, texts, values};
use crate::functions::lists::types::list_of;
use crate::functions::own::Own;

/// The functions that stand in `from`, by their names without `json`, and for each of their columns the function that
/// makes its values, and its name.
pub(crate) const TABLES: [(&str, &[(&str, &str)]); 5] = [
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
                |types| Ok(vec![named(concat!("json", $name), types)?]),
                $returns,
                $run,
            ),
            Own::new(
                concat!("jsonb", $name),
                |types| Ok(vec![named(concat!("jsonb", $name), types)?]),
                $returns,
                $run,
            ),
        ]
    };
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
    ];
    all.into_iter().flatten().collect()
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
                cut::plain(part)?
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
