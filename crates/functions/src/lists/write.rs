//! Arrays, structs and maps as texts: `{1,2,NULL}` and `(1,x,)`, as PostgreSQL writes them, and `{"a":1}`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use datafusion_common::Result;
use messages::numbers::is_vector;

use crate::items::to_texts;
use crate::json::json_of;
use crate::lists::types::{is_list, is_map, is_struct, lists, plain, range};
use crate::structs::text;

/// The texts of arrays, structs or maps.
///
/// # Errors
/// Those of writing what is in them.
pub(crate) fn write(values: &ArrayRef) -> Result<ArrayRef> {
    Ok(Arc::new(texts(values)?))
}

/// The texts of values, which may be arrays, structs or maps themselves.
fn texts(values: &ArrayRef) -> Result<StringViewArray> {
    if is_list(values.data_type()) {
        let vectors = is_vector(values.data_type());
        arrays(&cast(values, &plain(values.data_type()))?, vectors)
    } else if is_struct(values.data_type()) {
        structs(values)
    } else if is_map(values.data_type()) {
        maps(values)
    } else {
        Ok(to_texts(values)?.as_string_view().clone())
    }
}

/// The texts of arrays: in braces, or with spaces between the items where they are `vectors`.
fn arrays(arrays: &ArrayRef, vectors: bool) -> Result<StringViewArray> {
    let own = lists(arrays);
    let items = texts(own.values())?;
    let of = |row: usize| {
        let mut text = String::new();
        if vectors {
            let items: Vec<&str> = range(own, row).map(|item| items.value(item)).collect();
            return items.join(" ");
        }
        let empty = is_empty(arrays, row);
        braces(own, row, &items, empty, &mut text);
        text
    };
    let rows = (0..own.len()).map(|row| own.is_valid(row).then(|| of(row)));
    Ok(StringViewArray::from_iter(rows))
}

fn structs(structs: &ArrayRef) -> Result<StringViewArray> {
    let own = structs.as_struct();
    let fields = own.columns().iter().map(texts);
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let of = |row: usize| {
        let mut text = "(".to_string();
        for (at, field) in fields.iter().enumerate() {
            text.push_str(if at > 0 { "," } else { "" });
            if field.is_valid(row) {
                text::quoted(field.value(row), &mut text);
            }
        }
        text.push(')');
        text
    };
    let rows = (0..own.len()).map(|row| own.is_valid(row).then(|| of(row)));
    Ok(StringViewArray::from_iter(rows))
}

/// The texts of maps, which are JSON.
fn maps(maps: &ArrayRef) -> Result<StringViewArray> {
    let texts = json_of(maps)?;
    let rows = texts.into_iter().enumerate();
    let rows = rows.map(|(row, text)| maps.is_valid(row).then_some(text));
    Ok(StringViewArray::from_iter(rows))
}

/// An array without values has no dimensions.
fn is_empty(arrays: &ArrayRef, row: usize) -> bool {
    let own = lists(arrays);
    let mut items = range(own, row);
    if !is_list(own.values().data_type()) {
        return items.is_empty();
    }
    items.all(|item| is_empty(own.values(), item))
}

fn braces(
    own: &arrow::array::ListArray,
    row: usize,
    items: &StringViewArray,
    empty: bool,
    out: &mut String,
) {
    out.push('{');
    if !empty {
        let nested = is_list(own.values().data_type());
        for (at, item) in range(own, row).enumerate() {
            if at > 0 {
                out.push(',');
            }
            match items.is_valid(item).then(|| items.value(item)) {
                None => out.push_str("NULL"),
                Some(text) if nested => out.push_str(text),
                Some(text) => quoted(text, out),
            }
        }
    }
    out.push('}');
}

/// An item, in quotes where it would be read as something else.
fn quoted(text: &str, out: &mut String) {
    let odd = |c: char| matches!(c, '{' | '}' | ',' | '"' | '\\') || c.is_ascii_whitespace();
    if !text.is_empty() && !text.eq_ignore_ascii_case("null") && !text.contains(odd) {
        out.push_str(text);
        return;
    }
    out.push('"');
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            out.push('\\');
        }
        out.push(c);
    }
    out.push('"');
}
