//! `jsonb_pretty`, and whether a text is JSON.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, StringViewArray};
use arrow::datatypes::DataType;
use datafusion::common::{Result, plan_err};

use crate::functions::arguments::is_text;
use crate::functions::json::cut::{self, Kind};
use crate::functions::json::normal;
use crate::functions::json::value::{named, texts};
use crate::functions::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "jsonb_pretty",
            |types| Ok(vec![named("jsonb_pretty", types)?]),
            |_| Ok(DataType::Utf8View),
            pretty,
        ),
        Own::new("is json", tested, |_| Ok(DataType::Boolean), is_json),
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

/// A text, and the kind of JSON that it is tested for: `value`, `scalar`, `array` or `object`.
fn tested(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [text, kind] if is_text(text) && is_text(kind) => Ok(vec![DataType::Utf8View; 2]),
        _ => plan_err!("`is json` takes a text: cast what it tests"),
    }
}

fn is_json(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (own, kinds) = (args[0].as_string_view(), args[1].as_string_view());
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
