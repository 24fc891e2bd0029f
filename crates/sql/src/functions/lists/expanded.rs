//! `information_schema._pg_expandarray`, by which JDBC's driver reads keys and indexes: each item of an array with its
//! place. A row of it is a text here, as PostgreSQL writes one: `(item,place)`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, ListBuilder, StringViewBuilder};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use datafusion::common::Result;

use crate::error::Error;
use crate::functions::lists::names::{EXPANDED, ITEM_OF, PLACE_OF};
use crate::functions::lists::types::{count, list_argument, list_of, lists, range};
use crate::functions::own::Own;

pub(super) fn all() -> Vec<Own> {
    let number = |_: &[DataType]| Ok(DataType::Int64);
    vec![
        Own::new(
            EXPANDED,
            |types| {
                count("_pg_expandarray", types, 1..=1)?;
                Ok(vec![list_argument("_pg_expandarray", types, 0)?])
            },
            |_| Ok(list_of(DataType::Utf8View)),
            expanded,
        ),
        Own::new(ITEM_OF, text, number, |args, _| part(&args[0], "x", 0)),
        Own::new(PLACE_OF, text, number, |args, _| part(&args[0], "n", 1)),
    ]
}

fn text(types: &[DataType]) -> Result<Vec<DataType>> {
    count("a column of a row", types, 1..=1)?;
    Ok(vec![DataType::Utf8])
}

fn expanded(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = lists(&args[0]);
    let items = cast(own.values(), &DataType::Utf8)?;
    let items = items.as_string::<i32>();
    let mut made = ListBuilder::new(StringViewBuilder::new());
    for row in 0..rows {
        for (place, at) in (1..).zip(range(own, row)) {
            let item = if items.is_valid(at) {
                items.value(at)
            } else {
                ""
            };
            made.values().append_value(format!("({item},{place})"));
        }
        made.append(own.is_valid(row));
    }
    Ok(Arc::new(made.finish()))
}

/// A column of rows that are texts.
///
/// # Errors
/// If a text is no such row.
fn part(texts: &ArrayRef, name: &str, at: usize) -> Result<ArrayRef> {
    let of = |text: &str| -> Result<Option<i64>> {
        let inner = text
            .strip_prefix('(')
            .and_then(|text| text.strip_suffix(')'));
        let parts: Vec<&str> = inner.unwrap_or_default().split(',').collect();
        let number = match parts[..] {
            [_, _] if parts[at].is_empty() => Some(None),
            [_, _] => parts[at].parse().ok().map(Some),
            _ => None,
        };
        number.ok_or_else(|| {
            let message = format!(
                "column notation .{name} applied to type text, which is not a composite type"
            );
            Error::coded("42809", message).into()
        })
    };
    let texts = texts.as_string::<i32>().iter();
    let numbers = texts.map(|text| text.map_or(Ok(None), of));
    Ok(Arc::new(numbers.collect::<Result<Int64Array>>()?))
}
