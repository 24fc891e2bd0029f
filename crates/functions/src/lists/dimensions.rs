//! How many items arrays have: `array_length`, `cardinality`, `array_dims`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Int32Array, Int64Array, StringViewArray};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::Result;

use crate::lists::make::Taker;
use crate::lists::names::{ORDINALS, VALUES};
use crate::lists::types::{
    base, count, dimensions, is_list, is_map, list_argument, list_of, lists, plain, range,
};
use crate::own::Own;

const NUMBER: DataType = DataType::Int32;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "array_length",
            |t| of_two("array_length", t),
            |_| Ok(NUMBER),
            |a, n| along(a, n, |length| length),
        ),
        Own::new(
            "array_upper",
            |t| of_two("array_upper", t),
            |_| Ok(NUMBER),
            |a, n| along(a, n, |length| length),
        ),
        Own::new(
            "array_lower",
            |t| of_two("array_lower", t),
            |_| Ok(NUMBER),
            |a, n| along(a, n, |_| 1),
        ),
        Own::new("cardinality", countable, |_| Ok(NUMBER), counted),
        Own::new(
            "array_ndims",
            |t| of_one("array_ndims", t),
            |_| Ok(NUMBER),
            |args, rows| {
                each(args, rows, |array, row| {
                    (values(array, row) > 0).then(|| dimensions(array.data_type()) as i32)
                })
            },
        ),
        Own::new(
            "array_dims",
            |t| of_one("array_dims", t),
            |_| Ok(DataType::Utf8View),
            dims,
        ),
        Own::new(
            VALUES,
            |t| of_one("unnest", t),
            |types| Ok(list_of(base(&types[0]).clone())),
            flatten,
        ),
        Own::new(
            "array none",
            |t| of_one("array", t),
            |types| Ok(types[0].clone()),
            |args, rows| {
                let own = lists(&args[0]);
                let mut taker = Taker::new(vec![own.values()]);
                (0..rows).for_each(|_| taker.end(true));
                taker.finish()
            },
        ),
        Own::new(
            ORDINALS,
            |types| {
                (0..types.len())
                    .map(|at| list_argument("unnest", types, at))
                    .collect()
            },
            |_| Ok(list_of(DataType::Int64)),
            ordinals,
        ),
    ]
}

/// An array, or a map.
fn countable(types: &[DataType]) -> Result<Vec<DataType>> {
    match types {
        [map] if is_map(map) => Ok(vec![plain(map)]),
        _ => of_one("cardinality", types),
    }
}

fn counted(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let Some(maps) = args[0].as_map_opt() else {
        return each(args, rows, |array, row| Some(values(array, row) as i32));
    };
    let count = |row| maps.is_valid(row).then(|| maps.value_length(row));
    let counts: Int32Array = (0..rows).map(count).collect();
    Ok(Arc::new(counts))
}

fn of_one(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    count(name, types, 1..=1)?;
    Ok(vec![list_argument(name, types, 0)?])
}

fn of_two(name: &str, types: &[DataType]) -> Result<Vec<DataType>> {
    count(name, types, 2..=2)?;
    Ok(vec![list_argument(name, types, 0)?, DataType::Int64])
}

/// The number of values in an array.
fn values(arrays: &ArrayRef, row: usize) -> usize {
    let own = lists(arrays);
    let items = range(own, row);
    if is_list(own.values().data_type()) {
        items.map(|item| values(own.values(), item)).sum()
    } else {
        items.len()
    }
}

/// The lengths of an array's dimensions; none of an array without values.
pub(super) fn lengths(arrays: &ArrayRef, row: usize) -> Vec<usize> {
    if values(arrays, row) == 0 {
        return vec![];
    }
    let own = lists(arrays);
    let items = range(own, row);
    let mut all = vec![items.len()];
    if is_list(own.values().data_type()) {
        all.extend(lengths(own.values(), items.start));
    }
    all
}

fn each(
    args: &[ArrayRef],
    rows: usize,
    number: impl Fn(&ArrayRef, usize) -> Option<i32>,
) -> Result<ArrayRef> {
    let of = |row| args[0].is_valid(row).then(|| number(&args[0], row))?;
    Ok(Arc::new(Int32Array::from_iter((0..rows).map(of))))
}

/// A number for the dimension that the second argument names.
fn along(args: &[ArrayRef], rows: usize, number: fn(i32) -> i32) -> Result<ArrayRef> {
    let which = args[1].as_primitive::<Int64Type>();
    let of = |row: usize| {
        if args[0].is_null(row) || which.is_null(row) {
            return None;
        }
        let at = usize::try_from(which.value(row).checked_sub(1)?).ok()?;
        let length = *lengths(&args[0], row).get(at)?;
        Some(number(length as i32))
    };
    Ok(Arc::new(Int32Array::from_iter((0..rows).map(of))))
}

fn dims(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let of = |row: usize| {
        let all = args[0].is_valid(row).then(|| lengths(&args[0], row))?;
        let text: String = all.iter().map(|length| format!("[1:{length}]")).collect();
        (!text.is_empty()).then_some(text)
    };
    Ok(Arc::new(StringViewArray::from_iter((0..rows).map(of))))
}

/// All values of an array in one dimension, as `unnest` gives them.
fn flatten(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let mut arrays = args[0].clone();
    // For each row the range of its items on the level.
    let own = lists(&arrays);
    let mut ranges: Vec<_> = (0..rows).map(|row| range(own, row)).collect();
    let mut items = own.values().clone();
    while is_list(items.data_type()) {
        arrays = items;
        let own = lists(&arrays);
        let ends = own.value_offsets();
        for range in &mut ranges {
            *range = ends[range.start] as usize..ends[range.end] as usize;
        }
        items = own.values().clone();
    }
    let mut taker = Taker::new(vec![&items]);
    for range in ranges {
        taker.take_all(0, range);
        taker.end(true);
    }
    taker.finish()
}

/// 1, 2, ... for the items of the longest of several arrays.
fn ordinals(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let most = |row: usize| {
        args.iter()
            .map(|array| values(array, row))
            .max()
            .unwrap_or(0)
    };
    let counts: Vec<usize> = (0..rows).map(most).collect();
    let longest = counts.iter().copied().max().unwrap_or(0);
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(1..=longest as i64));
    let mut taker = Taker::new(vec![&numbers]);
    for count in counts {
        taker.take_all(0, 0..count);
        taker.end(true);
    }
    taker.finish()
}
