//! Parts of JSON: `->`, `->>`, `#>`, `#>>`.

use std::sync::{Arc, LazyLock};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, StringViewArray, StringViewBuilder};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, plan_err};
use datafusion_expr::simplify::ExprSimplifyResult;
use datafusion_expr::{Expr, ScalarUDF};
use messages::types::type_name;
use table::{JsonKind, json_kind};

use crate::arguments::is_text;
use crate::json::cut::{self, Kind};
use crate::json::value::{argument, of_texts, texts};
use crate::json::walk::member;
use crate::lists::types::{list_of, lists, range};
use crate::own::Own;

/// Functions of JSON and any number of keys and places, which stand for several operators behind one another: what is between
/// them is not made.
pub(super) const STEPS: &str = "json get steps";
pub(super) const STEPS_TEXT: &str = "json get steps text";

static AS_JSON: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(one(false).into()));
static AS_TEXT: LazyLock<Arc<ScalarUDF>> = LazyLock::new(|| Arc::new(one(true).into()));

/// One of these functions.
fn one(as_text: bool) -> Own {
    if as_text {
        let text = |_: &[DataType]| Ok(DataType::Utf8View);
        return Own::new(STEPS_TEXT, by_steps, text, |args, rows| {
            steps(args, rows, true)
        });
    }
    let json = |types: &[DataType]| Ok(types[0].clone());
    Own::new(STEPS, by_steps, json, |args, rows| steps(args, rows, false))
}

pub(super) fn all() -> Vec<Own> {
    let text = |_: &[DataType]| Ok(DataType::Utf8View);
    let json = |types: &[DataType]| Ok(types[0].clone());
    vec![
        Own::new("json get", by_key, json, |args, rows| {
            steps(args, rows, false)
        })
        .simplified(|args| behind(args, &AS_JSON)),
        Own::new("json get text", by_key, text, |args, rows| {
            steps(args, rows, true)
        })
        .simplified(|args| behind(args, &AS_TEXT)),
        one(false),
        one(true),
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

/// JSON, and the keys of members and the places of items.
fn by_steps(types: &[DataType]) -> Result<Vec<DataType>> {
    let mut wanted = vec![argument("->", types, 0)?];
    for step in types.get(1..).unwrap_or_default() {
        let both = by_key(&[wanted[0].clone(), step.clone()])?;
        wanted.extend(both.into_iter().skip(1));
    }
    Ok(wanted)
}

/// The call of `function` that stands for an operator behind others.
fn behind(args: Vec<Expr>, function: &Arc<ScalarUDF>) -> Result<ExprSimplifyResult> {
    if let [Expr::ScalarFunction(before), step] = &args[..]
        && matches!(before.func.name(), "json get" | STEPS)
    {
        let mut all = before.args.clone();
        all.push(step.clone());
        return Ok(ExprSimplifyResult::Simplified(function.call(all)));
    }
    Ok(ExprSimplifyResult::Original(args))
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
    let mut found = StringViewBuilder::with_capacity(rows);
    for row in 0..rows {
        let part = if own.is_valid(row) {
            find(row, own.value(row))?
        } else {
            None
        };
        match part {
            Some(part) if as_text => found.append_option(cut::plain(part)?),
            part => found.append_option(part),
        }
    }
    let found = found.finish();
    if as_text {
        return Ok(Arc::new(found));
    }
    of_texts(kind_of(args), found)
}

fn kind_of(args: &[ArrayRef]) -> JsonKind {
    json_kind(args[0].data_type()).unwrap_or(JsonKind::Text)
}

/// What the steps on the way to a part are, row by row.
enum Step<'a> {
    Keys(&'a StringViewArray),
    Places(&'a Int64Array),
}

impl<'a> Step<'a> {
    fn of(arg: &'a ArrayRef) -> Step<'a> {
        match arg.as_string_view_opt() {
            Some(keys) => Step::Keys(keys),
            None => Step::Places(arg.as_primitive::<Int64Type>()),
        }
    }

    /// The part of `text` to which it leads: keys lead into objects, and places into arrays.
    fn part<'t>(&self, row: usize, text: &'t str, json: JsonKind) -> Result<Option<&'t str>> {
        match (Kind::of(text), self) {
            (Kind::Object, Step::Keys(keys)) if keys.is_valid(row) => {
                member(text, keys.value(row), json)
            }
            (Kind::Array, Step::Places(places)) if places.is_valid(row) => {
                Ok(cut::at(text, places.value(row)))
            }
            // A `jsonb` that is no array or object is kept as the one item of an array.
            (kind, Step::Places(places))
                if json == JsonKind::Normal && kind.is_scalar() && places.is_valid(row) =>
            {
                Ok(matches!(places.value(row), 0 | -1).then_some(text))
            }
            _ => Ok(None),
        }
    }
}

fn steps(args: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    let (json, steps) = (kind_of(args), args[1..].iter().map(Step::of));
    let steps: Vec<Step<'_>> = steps.collect();
    parts(args, rows, as_text, |row, text| {
        let mut part = text;
        for step in &steps {
            match step.part(row, part, json)? {
                Some(found) => part = found,
                None => return Ok(None),
            }
        }
        Ok(Some(part))
    })
}

/// The part to which keys and places lead.
fn follow<'t, 'k>(
    text: &'t str,
    keys: impl Iterator<Item = &'k str>,
    json: JsonKind,
) -> Result<Option<&'t str>> {
    let mut part = text;
    for key in keys {
        let found = match Kind::of(part) {
            Kind::Object => member(part, key, json)?,
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
    let json = kind_of(args);
    parts(args, rows, as_text, |row, text| {
        let own = range(paths, row);
        if paths.is_null(row) || own.clone().any(|at| keys.is_null(at)) {
            return Ok(None);
        }
        follow(text, own.map(|at| keys.value(at)), json)
    })
}

/// The part that subscripts name, each a key or a place as a text.
pub(crate) fn subscripted(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    keys(args, rows, false)
}

fn keys(args: &[ArrayRef], rows: usize, as_text: bool) -> Result<ArrayRef> {
    let keys: Vec<&StringViewArray> = args[1..].iter().map(|key| key.as_string_view()).collect();
    let json = kind_of(args);
    parts(args, rows, as_text, |row, text| {
        if keys.iter().any(|key| key.is_null(row)) {
            return Ok(None);
        }
        follow(text, keys.iter().map(|key| key.value(row)), json)
    })
}
