//! `array_to_string`, `string_to_array`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, ListBuilder, StringViewArray, StringViewBuilder};
use arrow::datatypes::DataType;
use datafusion_common::{Result, plan_err};

use crate::arguments::is_text;
use crate::items::to_texts;
use crate::lists::types::{base, count, is_map, list_argument, list_of, lists, range};
use crate::lists::write::write;
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "array_to_string",
            joined_types,
            |_| Ok(DataType::Utf8View),
            join,
        ),
        Own::new(
            "string_to_array",
            |types| texts("string_to_array", types),
            |_| Ok(list_of(DataType::Utf8View)),
            split,
        ),
    ]
}

fn texts(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    count(name, types, 2..=3)?;
    if types.iter().all(is_text) {
        Ok(vec![DataType::Utf8View; types.len()])
    } else {
        plan_err!("function {name} takes texts")
    }
}

fn joined_types(types: &[DataType]) -> Result<Vec<DataType>> {
    count("array_to_string", types, 2..=3)?;
    if !types[1..].iter().all(is_text) {
        return plan_err!(
            "array_to_string takes an array, and texts to stand between its items and for NULLs"
        );
    }
    let mut wanted = vec![list_argument("array_to_string", types, 0)?];
    wanted.resize(types.len(), DataType::Utf8View);
    Ok(wanted)
}

/// The items with a text between them; NULLs are left out, but for a third argument.
fn join(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut arrays = args[0].clone();
    let own = lists(&arrays);
    let mut ranges: Vec<_> = (0..rows).map(|row| range(own, row)).collect();
    let mut items = own.values().clone();
    while items.data_type() != base(items.data_type()) {
        arrays = items;
        let own = lists(&arrays);
        let ends = own.value_offsets();
        for range in &mut ranges {
            *range = ends[range.start] as usize..ends[range.end] as usize;
        }
        items = own.values().clone();
    }
    let items = if is_map(items.data_type()) {
        write(&items)?
    } else {
        to_texts(&items)?
    };
    let items = items.as_string_view();
    let between = args[1].as_string_view();
    let nulls = args.get(2).map(|nulls| nulls.as_string_view());
    let of = |row: usize| {
        if args[0].is_null(row) || between.is_null(row) {
            return None;
        }
        let null = nulls
            .filter(|nulls| nulls.is_valid(row))
            .map(|nulls| nulls.value(row));
        let texts = ranges[row].clone();
        let texts = texts.filter_map(|at| {
            if items.is_valid(at) {
                Some(items.value(at))
            } else {
                null
            }
        });
        Some(texts.collect::<Vec<_>>().join(between.value(row)))
    };
    Ok(Arc::new(StringViewArray::from_iter((0..rows).map(of))))
}

/// The parts of a text: its characters where nothing stands between them.
fn split(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let (own, between) = (args[0].as_string_view(), args[1].as_string_view());
    let nulls = args.get(2).map(|nulls| nulls.as_string_view());
    let mut out = ListBuilder::new(StringViewBuilder::new());
    for row in 0..rows {
        if own.is_null(row) {
            out.append_null();
            continue;
        }
        let text = own.value(row);
        let null = nulls
            .filter(|nulls| nulls.is_valid(row))
            .map(|nulls| nulls.value(row));
        let mut put = |part: &str| match null {
            Some(null) if null == part => out.values().append_null(),
            _ => out.values().append_value(part),
        };
        match between.is_valid(row).then(|| between.value(row)) {
            _ if text.is_empty() => {}
            None => text.chars().for_each(|c| put(c.encode_utf8(&mut [0; 4]))),
            Some("") => put(text),
            Some(between) => text.split(between).for_each(put),
        }
        out.append(true);
    }
    Ok(Arc::new(out.finish()))
}
