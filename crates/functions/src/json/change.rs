//! Other JSON from JSON: `||`, `-`, `#-`, `jsonb_set`, `jsonb_insert`, `json_strip_nulls`.

use arrow::array::{Array, ArrayRef, AsArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, exec_err, plan_err};
use messages::Error;
use table::{JsonKind, jsonb_type};

use crate::arguments::is_text;
use crate::json::cut::{self, Kind};
use crate::json::normal;
use crate::json::value::{named, texts, values};
use crate::lists::types::{list_of, lists, range};
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    let jsonb = |_: &[DataType]| Ok(jsonb_type());
    let same = |types: &[DataType]| Ok(types[0].clone());
    vec![
        Own::new("jsonb concat", two, jsonb, concat),
        Own::new("jsonb delete", deleted, jsonb, delete),
        Own::new("jsonb delete path", with_path, jsonb, delete_path).or("jsonb_delete_path"),
        Own::new("jsonb_set_lax", placed_lax, jsonb, put_lax),
        Own::new("jsonb_set", placed, jsonb, |args, rows| {
            put(args, rows, true)
        }),
        Own::new("jsonb_insert", placed, jsonb, |args, rows| {
            put(args, rows, false)
        }),
        Own::new(
            "jsonb_strip_nulls",
            |types| Ok(vec![named("jsonb_strip_nulls", types)?]),
            same,
            strip,
        ),
        Own::new(
            "json_strip_nulls",
            |types| Ok(vec![named("json_strip_nulls", types)?]),
            same,
            strip,
        ),
    ]
}

fn two(types: &[DataType]) -> Result<Vec<DataType>> {
    let fits = |ty: &DataType| *ty == jsonb_type() || *ty == DataType::Null;
    if types.len() == 2 && types.iter().all(fits) {
        Ok(vec![jsonb_type(); 2])
    } else {
        plan_err!("operator does not exist: || takes two values of type jsonb")
    }
}

/// Values that are made row by row, of rows in which no argument is NULL.
fn made(
    args: &[ArrayRef],
    rows: usize,
    make: impl Fn(usize) -> Result<String>,
) -> Result<ArrayRef> {
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let valid = args.iter().all(|arg| arg.is_valid(row));
        found.push(if valid { Some(make(row)?) } else { None });
    }
    values(JsonKind::Normal, found)
}

/// An object of these members, of which the keys are as they are written, in order.
pub(super) fn object(mut members: Vec<(&str, &str)>) -> Result<String> {
    let mut decoded = Vec::with_capacity(members.len());
    for (key, value) in members.drain(..) {
        decoded.push((cut::characters(key)?, key, value));
    }
    decoded.sort_by(|(a, ..), (b, ..)| (a.len(), a).cmp(&(b.len(), b)));
    let members = decoded
        .iter()
        .map(|(_, key, value)| format!("{key}: {value}"));
    Ok(format!("{{{}}}", members.collect::<Vec<_>>().join(", ")))
}

/// An array of these items.
pub(super) fn array(items: &[&str]) -> String {
    format!("[{}]", items.join(", "))
}

fn concat(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (left, right) = (texts(&args[0]), texts(&args[1]));
    made(args, rows, |row| {
        let (a, b) = (left.value(row), right.value(row));
        if (Kind::of(a), Kind::of(b)) == (Kind::Object, Kind::Object) {
            let mut members = cut::members(a);
            let later = cut::members(b);
            members.retain(|(key, _)| !later.iter().any(|(other, _)| other == key));
            members.extend(later);
            return object(members);
        }
        let items = |text| match Kind::of(text) {
            Kind::Array => cut::items(text),
            _ => vec![text],
        };
        let mut all = items(a);
        all.extend(items(b));
        Ok(array(&all))
    })
}

fn deleted(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [json, _] if *json != jsonb_type() => plan_err!("operator does not exist: - takes a jsonb"),
        [_, key] if is_text(key) => Ok(vec![jsonb_type(), DataType::Utf8View]),
        [_, place] if place.is_integer() => Ok(vec![jsonb_type(), DataType::Int64]),
        [_, DataType::List(item)] if is_text(item.data_type()) => {
            Ok(vec![jsonb_type(), list_of(DataType::Utf8View)])
        }
        _ => plan_err!(
            "operator does not exist: a text, a place or an array of texts is taken from a jsonb"
        ),
    }
}

fn delete(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    made(args, rows, |row| {
        let text = own.value(row);
        if let Some(keys) = args[1].as_string_view_opt() {
            return without(text, &[keys.value(row)]);
        }
        if args[1].as_list_opt::<i32>().is_some() {
            let keys = lists(&args[1]);
            let texts = keys.values().as_string_view();
            let own = range(keys, row).filter(|at| texts.is_valid(*at));
            let keys: Vec<&str> = own.map(|at| texts.value(at)).collect();
            return without(text, &keys);
        }
        match Kind::of(text) {
            Kind::Array => {
                let mut items = cut::items(text);
                let place = args[1].as_primitive::<Int64Type>().value(row);
                if let Some(place) = cut::position(items.len(), place) {
                    items.remove(place);
                }
                Ok(array(&items))
            }
            Kind::Object => exec_err!("cannot delete from object using integer index"),
            _ => exec_err!("cannot delete from scalar"),
        }
    })
}

/// An object without members of these keys, or an array without strings.
fn without(text: &str, keys: &[&str]) -> Result<String> {
    let wanted = |text: &str| {
        Ok::<_, datafusion_common::DataFusionError>(keys.contains(&&cut::characters(text)?[..]))
    };
    match Kind::of(text) {
        Kind::Object => {
            let mut left = Vec::new();
            for (key, value) in cut::members(text) {
                if !wanted(key)? {
                    left.push((key, value));
                }
            }
            object(left)
        }
        Kind::Array => {
            let mut left = Vec::new();
            for item in cut::items(text) {
                if Kind::of(item) != Kind::Text || !wanted(item)? {
                    left.push(item);
                }
            }
            Ok(array(&left))
        }
        _ => exec_err!("cannot delete from scalar"),
    }
}

fn with_path(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [json, DataType::List(item)]
            if (*json == jsonb_type() || is_text(json)) && is_text(item.data_type()) =>
        {
            Ok(vec![jsonb_type(), list_of(DataType::Utf8View)])
        }
        // Constants in quotes.
        [json, path] if (*json == jsonb_type() || is_text(json)) && is_text(path) => {
            Ok(vec![jsonb_type(), list_of(DataType::Utf8View)])
        }
        _ => plan_err!("operator does not exist: #- takes a jsonb and an array of texts"),
    }
}

/// What is done where a path ends.
#[derive(Clone, Copy)]
enum Change<'v> {
    Delete,
    /// Puts a value there; where there is none only if it may be made.
    Set(&'v str, bool),
    /// Puts a value before the item, or behind it; a member that is there is an error.
    Insert(&'v str, bool),
}

/// The value with a change at the end of the path.
fn changed(text: &str, path: &[&str], change: Change<'_>, step: usize) -> Result<String> {
    let Some((key, rest)) = path.split_first() else {
        return Ok(text.to_string());
    };
    match Kind::of(text) {
        Kind::Object => {
            let mut quoted = String::new();
            normal::quote(key, &mut quoted);
            let mut members = cut::members(text);
            let at = members.iter().position(|(own, _)| *own == quoted);
            let below;
            match (at, change) {
                (Some(at), change) if !rest.is_empty() => {
                    below = changed(members[at].1, rest, change, step + 1)?;
                    members[at].1 = &below;
                }
                (Some(at), Change::Delete) => _ = members.remove(at),
                (Some(at), Change::Set(value, _)) => members[at].1 = value,
                (Some(_), Change::Insert(..)) => {
                    return exec_err!("cannot replace existing key");
                }
                (None, Change::Set(value, true) | Change::Insert(value, _)) if rest.is_empty() => {
                    members.push((&quoted, value));
                }
                (None, _) => {}
            }
            object(members)
        }
        Kind::Array => {
            let mut items = cut::items(text);
            let Ok(place) = key.trim().parse::<i64>() else {
                return exec_err!("path element at position {step} is not an integer: \"{key}\"");
            };
            let at = cut::position(items.len(), place);
            let below;
            match (at, change) {
                (Some(at), change) if !rest.is_empty() => {
                    below = changed(items[at], rest, change, step + 1)?;
                    items[at] = &below;
                }
                (Some(at), Change::Delete) => _ = items.remove(at),
                (Some(at), Change::Set(value, _)) => items[at] = value,
                (Some(at), Change::Insert(value, behind)) => {
                    items.insert(at + usize::from(behind), value);
                }
                // Before the first item, or behind the last.
                (None, Change::Set(value, true) | Change::Insert(value, _)) if rest.is_empty() => {
                    let at = if place < 0 { 0 } else { items.len() };
                    items.insert(at, value);
                }
                (None, _) => {}
            }
            Ok(array(&items))
        }
        _ => Ok(text.to_string()),
    }
}

/// The path of a row.
///
/// # Errors
/// If it has a NULL.
fn path_of(paths: &ArrayRef, row: usize) -> Result<Vec<&str>> {
    let own = lists(paths);
    let keys = own.values().as_string_view();
    let mut path = Vec::new();
    for (at, item) in range(own, row).enumerate() {
        if keys.is_null(item) {
            return exec_err!("path element at position {} is null", at + 1);
        }
        path.push(keys.value(item));
    }
    Ok(path)
}

/// Whether an array or an object has nothing that a path may lead to, whatever is in the path.
fn is_empty(text: &str) -> bool {
    matches!(text, "[]" | "{}")
}

fn delete_path(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    made(args, rows, |row| {
        let text = own.value(row);
        if Kind::of(text).is_scalar() {
            return exec_err!("cannot delete path in scalar");
        }
        if is_empty(text) {
            return Ok(text.to_string());
        }
        changed(text, &path_of(&args[1], row)?, Change::Delete, 1)
    })
}

/// JSON, a path, a value, and whether it may be made, or comes behind.
fn placed(types: &[DataType]) -> Result<Vec<DataType>> {
    let json = |ty: &DataType| *ty == jsonb_type() || is_text(ty);
    let path = |ty: &DataType| match ty {
        DataType::List(item) => is_text(item.data_type()),
        ty => is_text(ty),
    };
    match types {
        [own, way, value] if json(own) && path(way) && json(value) => {}
        [own, way, value, DataType::Boolean] if json(own) && path(way) && json(value) => {}
        _ => {
            return plan_err!(
                "jsonb_set and jsonb_insert take a jsonb, an array of texts, a jsonb and a boolean"
            );
        }
    }
    let wanted = [
        jsonb_type(),
        list_of(DataType::Utf8View),
        jsonb_type(),
        DataType::Boolean,
    ];
    Ok(wanted[..types.len()].to_vec())
}

fn put(args: &[ArrayRef], rows: usize, set: bool) -> Result<ArrayRef> {
    let (own, new) = (texts(&args[0]), texts(&args[2]));
    made(args, rows, |row| {
        let text = own.value(row);
        if Kind::of(text).is_scalar() {
            return exec_err!("cannot set path in scalar");
        }
        let flag = args.get(3).map_or(set, |flag| flag.as_boolean().value(row));
        if set && !flag && is_empty(text) {
            return Ok(text.to_string());
        }
        let change = if set {
            Change::Set(new.value(row), flag)
        } else {
            Change::Insert(new.value(row), flag)
        };
        changed(text, &path_of(&args[1], row)?, change, 1)
    })
}

/// As [`placed`], and what is done with a value that is NULL.
fn placed_lax(types: &[DataType]) -> Result<Vec<DataType>> {
    let (own, treatment) = types.split_at(types.len().min(4));
    let mut wanted = placed(own)?;
    match treatment {
        [] => {}
        [ty] if is_text(ty) => wanted.push(DataType::Utf8View),
        _ => return plan_err!("jsonb_set_lax takes the treatment of NULL as a text"),
    }
    Ok(wanted)
}

/// `jsonb_set` with a value that may be NULL.
fn put_lax(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (own, new) = (texts(&args[0]), texts(&args[2]));
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let mut others = args.iter().enumerate().filter(|(at, _)| *at != 2);
        if others.any(|(at, arg)| at != 4 && arg.is_null(row)) {
            found.push(None);
            continue;
        }
        let text = own.value(row);
        let path = path_of(&args[1], row)?;
        let create = args.get(3).is_none_or(|flag| flag.as_boolean().value(row));
        let treatment = args.get(4).map(|own| own.as_string_view());
        let treatment = match treatment {
            None => "use_json_null",
            Some(own) if own.is_valid(row) => own.value(row),
            Some(_) => "",
        };
        let known = [
            "raise_exception",
            "use_json_null",
            "delete_key",
            "return_target",
        ];
        if !known.contains(&treatment) {
            let message = "null_value_treatment must be \"delete_key\", \"return_target\", \"use_json_null\", or \"raise_exception\"";
            return Err(Error::coded("22023", message).into());
        }
        if Kind::of(text).is_scalar() && (new.is_valid(row) || treatment == "use_json_null") {
            return exec_err!("cannot set path in scalar");
        }
        let value = if new.is_valid(row) {
            changed(text, &path, Change::Set(new.value(row), create), 1)?
        } else {
            match treatment {
                "raise_exception" => {
                    return Err(Error::coded("22004", "JSON value must not be null").into());
                }
                "use_json_null" => changed(text, &path, Change::Set("null", create), 1)?,
                "delete_key" => changed(text, &path, Change::Delete, 1)?,
                _ => text.to_string(),
            }
        };
        found.push(Some(value));
    }
    values(JsonKind::Normal, found)
}

/// JSON without members that are null.
fn strip(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    let normal = *args[0].data_type() == jsonb_type();
    let kind = if normal {
        JsonKind::Normal
    } else {
        JsonKind::Text
    };
    let of = |row| {
        own.is_valid(row).then(|| {
            let mut out = String::new();
            stripped(own.value(row), if normal { " " } else { "" }, &mut out);
            out
        })
    };
    values(kind, (0..rows).map(of))
}

fn stripped(text: &str, space: &str, out: &mut String) {
    match Kind::of(text) {
        Kind::Object => {
            out.push('{');
            let members = cut::members(text).into_iter();
            let members = members.filter(|(_, value)| Kind::of(value) != Kind::Null);
            for (at, (key, value)) in members.enumerate() {
                if at > 0 {
                    out.push(',');
                    out.push_str(space);
                }
                out.push_str(key);
                out.push(':');
                out.push_str(space);
                stripped(value, space, out);
            }
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            for (at, item) in cut::items(text).into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                    out.push_str(space);
                }
                stripped(item, space, out);
            }
            out.push(']');
        }
        _ => out.push_str(text.trim()),
    }
}
