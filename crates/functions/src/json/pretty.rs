//! `jsonb_pretty`, and whether a text is JSON.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};
use messages::types::type_name;
use table::json_kind;

use crate::arguments::is_text;
use crate::json::cut::{self, Kind};
use crate::json::normal;
use crate::json::value::{named, texts};
use crate::own::Own;

/// The name of the function that `is json` becomes.
pub const IS_JSON: &str = "is json";

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "jsonb_pretty",
            |types| Ok(vec![named("jsonb_pretty", types)?]),
            |_| Ok(DataType::Utf8View),
            pretty,
        ),
        Own::new(IS_JSON, tested, |_| Ok(DataType::Boolean), is_json),
    ]
}

fn pretty(args: &[ArrayRef], _: usize) -> Result<ArrayRef> {
    let own = texts(&args[0]);
    let of = |text: &str| {
        let mut out = String::new();
        put(text, 0, &mut out);
        out
    };
    let found = own.iter().map(|text| text.map(of));
    Ok(Arc::new(StringViewArray::from_iter(found)))
}

fn put(text: &str, depth: usize, out: &mut String) {
    let line = |depth: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n("    ", depth));
    };
    match Kind::of(text) {
        Kind::Object => {
            out.push('{');
            for (at, (key, value)) in cut::members(text).into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                line(depth + 1, out);
                out.push_str(key);
                out.push_str(": ");
                put(value, depth + 1, out);
            }
            line(depth, out);
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            for (at, item) in cut::items(text).into_iter().enumerate() {
                out.push_str(if at > 0 { "," } else { "" });
                line(depth + 1, out);
                put(item, depth + 1, out);
            }
            line(depth, out);
            out.push(']');
        }
        _ => out.push_str(text),
    }
}

/// A text or JSON, and the kind of JSON that it is tested for: `value`, `scalar`, `array` or `object`.
fn tested(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text, kind] if is_text(text) && is_text(kind) => Ok(vec![DataType::Utf8View; 2]),
        [json, kind] if json_kind(json).is_some() && is_text(kind) => {
            Ok(vec![json.clone(), DataType::Utf8View])
        }
        [other, ..] => plan_err!(
            "cannot use type {} in IS JSON predicate: cast what it tests to a text",
            type_name(other)
        ),
        [] => plan_err!("`is json` takes a text"),
    }
}

fn is_json(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = match json_kind(args[0].data_type()) {
        Some(_) => texts(&args[0]),
        None => args[0].as_string_view().clone(),
    };
    let kinds = args[1].as_string_view();
    let of = |row: usize| {
        let text = own.is_valid(row).then(|| own.value(row))?;
        let found = Kind::of(text);
        let kind = match kinds.value(row) {
            "scalar" => found.is_scalar(),
            "array" => found == Kind::Array,
            "object" => found == Kind::Object,
            _ => true,
        };
        Some(kind && normal::check(text).is_ok())
    };
    Ok(Arc::new(BooleanArray::from_iter((0..rows).map(of))))
}
