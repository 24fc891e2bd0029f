//! What JSON has: `@>`, `?`, `?|`, `?&`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};
use table::{JsonKind, jsonb_type};

use crate::functions::arguments::is_text;
use crate::functions::json::cut::{self, Kind};
use crate::functions::json::value::texts;
use crate::functions::json::walk::member;
use crate::functions::lists::types::{list_of, lists, range};
use crate::functions::own::Own;

pub(super) fn all() -> Vec<Own> {
    let boolean = |_: &[DataType]| Ok(DataType::Boolean);
    vec![
        Own::new("jsonb contains", two, boolean, |args, rows| {
            pairs(args, rows, contains)
        }),
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

fn pairs(
    args: &[ArrayRef],
    rows: usize,
    holds: fn(&str, &str) -> Result<bool>,
) -> Result<ArrayRef> {
    let (left, right) = (texts(&args[0]), texts(&args[1]));
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        found.push(if left.is_valid(row) && right.is_valid(row) {
            Some(holds(left.value(row), right.value(row))?)
        } else {
            None
        });
    }
    Ok(Arc::new(BooleanArray::from(found)))
}

/// A number of `jsonb` without zeros at its end, which numbers that are equal share.
fn digits(text: &str) -> &str {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        text
    }
}

/// Whether two values in the form of `jsonb` are equal.
pub(super) fn equal(a: &str, b: &str) -> Result<bool> {
    let kind = Kind::of(a);
    if kind != Kind::of(b) {
        return Ok(false);
    }
    Ok(match kind {
        Kind::Number => digits(a) == digits(b),
        Kind::Array => {
            let (a, b) = (cut::items(a), cut::items(b));
            a.len() == b.len() && every(a.into_iter().zip(b), |(a, b)| equal(a, b))?
        }
        Kind::Object => {
            let (a, b) = (cut::members(a), cut::members(b));
            let same = |((k, a), (l, b)): (_, (_, _))| Ok(k == l && equal(a, b)?);
            a.len() == b.len() && every(a.into_iter().zip(b), same)?
        }
        _ => a == b,
    })
}

fn every<T>(
    mut values: impl Iterator<Item = T>,
    mut holds: impl FnMut(T) -> Result<bool>,
) -> Result<bool> {
    values.try_fold(true, |held, value| Ok(held && holds(value)?))
}

/// Whether `a` contains `b`: at the outermost level an array contains its items, too.
fn contains(a: &str, b: &str) -> Result<bool> {
    if Kind::of(a) == Kind::Array && Kind::of(b).is_scalar() {
        return any(&cut::items(a), |item| equal(item, b));
    }
    within(a, b)
}

fn within(a: &str, b: &str) -> Result<bool> {
    match (Kind::of(a), Kind::of(b)) {
        (Kind::Object, Kind::Object) => {
            let own = cut::members(a);
            every(cut::members(b).into_iter(), |(key, value)| {
                match own.iter().find(|(own, _)| *own == key) {
                    Some((_, found)) => within(found, value),
                    None => Ok(false),
                }
            })
        }
        (Kind::Array, Kind::Array) => {
            let own = cut::items(a);
            every(cut::items(b).into_iter(), |wanted| {
                any(&own, |item| within(item, wanted))
            })
        }
        _ => equal(a, b),
    }
}

fn any(items: &[&str], holds: impl Fn(&str) -> Result<bool>) -> Result<bool> {
    for item in items {
        if holds(item)? {
            return Ok(true);
        }
    }
    Ok(false)
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
