//! Parts of JSON: `->`, `->>`, `#>`, `#>>`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, plan_err};
use table::{JsonKind, json_kind};

use crate::functions::arguments::is_text;
use crate::functions::json::cut::{self, Kind};
use crate::functions::json::value::{argument, texts, values};
use crate::functions::lists::types::{list_of, lists, range};
use crate::functions::own::Own;
use crate::messages::types::type_name;

pub(super) fn all() -> Vec<Own> {
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let json = |types: &[DataType]| Ok(types[0].clone());
    vec![
        Own::new("json get", by_key, json, |args, rows| {
            get(args, rows, false)
        }),
        Own::new("json get text", by_key, text, |args, rows| {
            get(args, rows, true)
        }),
        Own::new("json get path", by_path, json, |args, rows| {
            path(args, rows, false)
        }),
        Own::new("json get path text", by_path, text, |args, rows| {
            path(args, rows, true)
        }),
        Own::new(
            "json_extract_path",
            |types| by_keys("json_extract_path", types),
            json,
            |args, rows| keys(args, rows, false),
        ),
        Own::new(
            "jsonb_extract_path",
            |types| by_keys("jsonb_extract_path", types),
            json,
            |args, rows| keys(args, rows, false),
        ),
        Own::new(
            "json_extract_path_text",
            |types| by_keys("json_extract_path_text", types),
            text,
            |args, rows| keys(args, rows, true),
        ),
        Own::new(
            "jsonb_extract_path_text",
            |types| by_keys("jsonb_extract_path_text", types),
            text,
            |args, rows| keys(args, rows, true),
        ),
    ]
}

/// JSON, and the key of a member or the place of an item.
fn by_key(types: &[DataType]) -> Result<Vec<DataType>> {
    let json = argument("->", types, 0)?;
    match types {
        [_, key] if is_text(key) => Ok(vec![json, DataType::Utf8View]),
        [_, place] if place.is_integer() => Ok(vec![json, DataType::Int64]),
        [_, other] => plan_err!(
            "operator does not exist: {} -> {}",
            type_name(&json),
            type_name(other)
        ),
        _ => plan_err!("-> takes two operands"),
    }
}

/// JSON, and keys and places on the way from it to a part.
pub(super) fn by_path(types: &[DataType]) -> Result<Vec<DataType>> {
    let json = argument("#>", types, 0)?;
    match types.get(1) {
        Some(DataType::List(item)) if is_text(item.data_type()) => {
            Ok(vec![json, list_of(DataType::Utf8View)])
        }
        _ => plan_err!("the path to a part of JSON is an array of texts"),
    }
}

fn by_keys(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    let mut wanted = vec![argument(name, types, 0)?];
    if !types[1..].iter().all(is_text) {
        return plan_err!("{name} takes JSON, and texts");
    }
    wanted.resize(types.len(), DataType::Utf8View);
    Ok(wanted)
}

/// The part that each row finds, as JSON or as text.
fn parts(
    args: &[ArrayRef],
    rows: usize,
    as_text: bool,
    find: impl for<'t> Fn(usize, &'t str) -> Result<Option<&'t str>>,
) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let part = if own.is_valid(row) {
            find(row, own.value(row))?
        } else {
            None
        };
        found.push(match part {
            Some(part) if as_text => cut::plain(part)?,
            Some(part) => Some(part.to_string()),
            None => None,
        });
    }
    if as_text {
        return Ok(Arc::new(StringViewArray::from_iter(found)));
    }
    values(
        json_kind(args[0].data_type()).unwrap_or(JsonKind::Text),
        found,
    )
}

fn get(args: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    let key = &args[1];
    let binary = json_kind(args[0].data_type()) == Some(JsonKind::Normal);
    parts(args, rows, as_text, |row, text| {
        if key.is_null(row) {
            return Ok(None);
        }
        match (Kind::of(text), key.as_string_view_opt()) {
            (Kind::Object, Some(keys)) => cut::member(text, keys.value(row)),
            (Kind::Array, None) => Ok(cut::at(text, key.as_primitive::<Int64Type>().value(row))),
            // A `jsonb` that is no array or object is kept as the one item of an array.
            (kind, None) if binary && kind.is_scalar() => {
                let place = key.as_primitive::<Int64Type>().value(row);
                Ok(matches!(place, 0 | -1).then_some(text))
            }
            _ => Ok(None),
        }
    })
}

/// The part to which keys and places lead.
pub(super) fn follow<'t, 'k>(
    text: &'t str,
    keys: impl Iterator<Item = &'k str>,
) -> Result<Option<&'t str>> {
    let mut part = text;
    for key in keys {
        let found = match Kind::of(part) {
            Kind::Object => cut::member(part, key)?,
            Kind::Array => key
                .trim()
                .parse()
                .ok()
                .and_then(|place| cut::at(part, place)),
            _ => None,
        };
        match found {
            Some(found) => part = found,
            None => return Ok(None),
        }
    }
    Ok(Some(part))
}

fn path(args: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    let paths = lists(&args[1]);
    let keys = paths.values().as_string_view();
    parts(args, rows, as_text, |row, text| {
        let own = range(paths, row);
        if paths.is_null(row) || own.clone().any(|at| keys.is_null(at)) {
            return Ok(None);
        }
        follow(text, own.map(|at| keys.value(at)))
    })
}

/// The part that subscripts name, each a key or a place as a text.
pub(crate) fn subscripted(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    keys(args, rows, false)
}

fn keys(args: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    let keys: Vec<&StringViewArray> = args[1..].iter().map(|key| key.as_string_view()).collect();
    parts(args, rows, as_text, |row, text| {
        if keys.iter().any(|key| key.is_null(row)) {
            return Ok(None);
        }
        follow(text, keys.iter().map(|key| key.value(row)))
    })
}
