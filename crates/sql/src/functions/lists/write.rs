//! Arrays as texts: `{1,2,NULL}`, as PostgreSQL writes them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, StringViewArray};
use arrow::compute::cast;
use datafusion::common::Result;

use crate::functions::items::to_texts;
use crate::functions::lists::types::{is_list, lists, plain, range};
use crate::messages::numbers::is_vector;

/// The texts of arrays.
///
/// # Errors
/// Those of writing the items.
pub(crate) fn write(arrays: &ArrayRef) -> Result<ArrayRef> {
    let vectors = is_vector(arrays.data_type());
    let arrays = cast(arrays, &plain(arrays.data_type()))?;
    let own = lists(&arrays);
    let items = texts(own.values())?;
    let of = |row: usize| {
        let mut text = String::new();
        if vectors {
            let items: Vec<&str> = range(own, row).map(|item| items.value(item)).collect();
            return items.join(" ");
        }
        let empty = is_empty(&arrays, row);
        braces(own, row, &items, empty, &mut text);
        text
    };
    let rows = (0..own.len()).map(|row| own.is_valid(row).then(|| of(row)));
    Ok(Arc::new(StringViewArray::from_iter(rows)))
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

/// The texts of items, which may be arrays themselves.
fn texts(items: &ArrayRef) -> Result<StringViewArray> {
    let texts = if is_list(items.data_type()) {
        write(items)?
    } else {
        to_texts(items)?
    };
    Ok(texts.as_string_view().clone())
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
