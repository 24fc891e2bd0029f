//! What JSON has: `@>`, `?`, `?|`, `?&`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};
use table::{JsonKind, jsonb_type};

use crate::arguments::is_text;
use crate::json::cut::{self, Kind};
use crate::json::found::containing;
use crate::json::holds::{any, contains};
use crate::json::value::texts;
use crate::json::walk::member;
use crate::lists::types::{list_of, lists, range};
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    let boolean = |_: &[DataType]| Ok(DataType::Boolean);
    vec![
        Own::new("jsonb contains", two, boolean, contained),
        Own::new("jsonb exists", with_key, boolean, exists),
        Own::new("jsonb exists any", with_keys, boolean, |args, rows| {
            exist(args, rows, false)
        }),
        Own::new("jsonb exists all", with_keys, boolean, |args, rows| {
            exist(args, rows, true)
        }),
    ]
}

fn two(types: &[DataType]) -> Result<Vec<DataType>> {
    let fits = |ty: &DataType| *ty == jsonb_type() || *ty == DataType::Null;
    if types.len() == 2 && types.iter().all(fits) {
        Ok(vec![jsonb_type(); 2])
    } else {
        plan_err!("operator does not exist: it takes two values of type jsonb")
    }
}

fn with_key(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [json, key] if *json == jsonb_type() && is_text(key) => {
            Ok(vec![jsonb_type(), DataType::Utf8View])
        }
        _ => plan_err!("operator does not exist: ? takes a jsonb and a text"),
    }
}

fn with_keys(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [json, DataType::List(item)] if *json == jsonb_type() && is_text(item.data_type()) => {
            Ok(vec![jsonb_type(), list_of(DataType::Utf8View)])
        }
        _ => plan_err!("operator does not exist: ?| and ?& take a jsonb and an array of texts"),
    }
}

fn contained(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (left, right) = (texts(&args[0]), texts(&args[1]));
    if let Some(constant) = only(&right) {
        return containing(&args[0], constant);
    }
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        found.push(if left.is_valid(row) && right.is_valid(row) {
            Some(contains(left.value(row), right.value(row))?)
        } else {
            None
        });
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

/// The text that all rows have, of which there are several.
fn only(all: &StringViewArray) -> Option<&str> {
    if all.len() < 2 || all.null_count() > 0 {
        return None;
    }
    let first = all.value(0);
    let is_only = (1..all.len()).all(|row| all.value(row) == first);
    is_only.then_some(first)
}

/// Whether a string is a key of an object, an item of an array, or the value itself.
fn has(text: &str, key: &str) -> Result<bool> {
    let is = |text: &str| Ok(Kind::of(text) == Kind::Text && cut::characters(text)? == key);
    match Kind::of(text) {
        Kind::Object => Ok(member(text, key, JsonKind::Text)?.is_some()),
        Kind::Array => any(&cut::items(text), is),
        _ => is(text),
    }
}

fn exists(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (own, keys) = (texts(&args[0]), args[1].as_string_view());
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        found.push(if own.is_valid(row) && keys.is_valid(row) {
            Some(has(own.value(row), keys.value(row))?)
        } else {
            None
        });
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

/// The same for several strings, of which NULLs are left out.
fn exist(args: &[ArrayRef], rows: usize, all: bool) -> Result<ArrayRef> {
    let (own, wanted) = (texts(&args[0]), lists(&args[1]));
    let keys = wanted.values().as_string_view();
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        if own.is_null(row) || wanted.is_null(row) {
            found.push(None);
            continue;
        }
        let mut hit = all;
        for at in range(wanted, row).filter(|at| keys.is_valid(*at)) {
            if has(own.value(row), keys.value(at))? != all {
                hit = !all;
                break;
            }
        }
        found.push(Some(hit));
    }
    Ok(Arc::new(BooleanArray::from(found)))
}
