//! Items that arrays have: `@>`, `&&`, `array_position`; and comparisons of arrays and structs.

use std::cmp::Ordering;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, BooleanArray, Int32Array};
use arrow::datatypes::{DataType, Int64Type};
use datafusion_common::{Result, exec_err};

use crate::lists::compare::{comparator, compared};
use crate::lists::make::Taker;
use crate::lists::types::{
    count, dimensions, is_struct, list_and_item, list_argument, list_of, lists, range, together,
};
use crate::own::Own;
use crate::present;

/// After how many comparisons the switch of the statement is looked at: some milliseconds.
const CHECKED: usize = 1 << 16;

pub(super) fn all() -> Vec<Own> {
    let boolean = |_: &[DataType]| Ok(DataType::Boolean);
    vec![
        Own::new("array contains", two_lists, boolean, |args, rows| {
            found(&args[0], &args[1], rows, true)
        }),
        Own::new("array overlaps", two_lists, boolean, |args, rows| {
            found(&args[0], &args[1], rows, false)
        }),
        Own::new("array eq", two_alike, boolean, |args, _| {
            ordered(args, Ordering::is_eq)
        }),
        Own::new("array ne", two_alike, boolean, |args, _| {
            ordered(args, Ordering::is_ne)
        }),
        Own::new("array lt", two_alike, boolean, |args, _| {
            ordered(args, Ordering::is_lt)
        }),
        Own::new("array le", two_alike, boolean, |args, _| {
            ordered(args, Ordering::is_le)
        }),
        Own::new("array gt", two_alike, boolean, |args, _| {
            ordered(args, Ordering::is_gt)
        }),
        Own::new("array ge", two_alike, boolean, |args, _| {
            ordered(args, Ordering::is_ge)
        }),
        Own::new(
            "array_position",
            position_types,
            |_| Ok(DataType::Int32),
            position,
        ),
        Own::new(
            "array_positions",
            positions_types,
            |_| Ok(list_of(DataType::Int32)),
            positions,
        ),
    ]
}

/// Two arrays of the same items.
pub(super) fn two_lists(types: &[DataType]) -> Result<Vec<DataType>> {
    count("of two arrays", types, 2..=2)?;
    let of = |at| list_argument("of two arrays", types, at);
    let both = match types {
        [DataType::Null, _] => of(1)?,
        [_, DataType::Null] => of(0)?,
        _ => together(&[of(0)?, of(1)?])?,
    };
    Ok(vec![both.clone(), both])
}

/// Two arrays of the same items, or two structs of the same fields.
fn two_alike(types: &[DataType]) -> Result<Vec<DataType>> {
    if !types.iter().any(is_struct) {
        return two_lists(types);
    }
    count("of two structs", types, 2..=2)?;
    let both = together(types)?;
    Ok(vec![both.clone(), both])
}

fn ordered(args: &[ArrayRef], is: fn(Ordering) -> bool) -> Result<ArrayRef> {
    let order = compared(&args[0], &args[1])?;
    let hits = order.into_iter().map(|order| order.map(is));
    Ok(Arc::new(BooleanArray::from_iter(hits)))
}

/// All values of arrays, and the range of each row, whatever dimensions they have.
fn flat(arrays: &ArrayRef) -> Result<ArrayRef> {
    if dimensions(arrays.data_type()) < 2 {
        return Ok(arrays.clone());
    }
    exec_err!("not supported: `@>`, `<@` and `&&` of arrays with more than one dimension")
}

/// Whether the first arrays have all items of the second, or one of them. A NULL is equal to nothing.
fn found(left: &ArrayRef, right: &ArrayRef, rows: usize, all: bool) -> Result<ArrayRef> {
    let (left, right) = (flat(left)?, flat(right)?);
    let (left, right) = (lists(&left), lists(&right));
    let (own, other) = (left.values(), right.values());
    let compare = comparator(own, other)?;
    let mut compared = 0;
    let mut has = |row: usize, item: usize| -> Result<bool> {
        compared += range(left, row).len();
        if compared > CHECKED {
            compared = 0;
            present::check()?;
        }
        let mut places = range(left, row);
        let is = |at: usize| own.is_valid(at) && compare(at, item) == Ordering::Equal;
        Ok(other.is_valid(item) && places.any(is))
    };
    let mut hits = Vec::with_capacity(rows);
    for row in 0..rows {
        if left.is_null(row) || right.is_null(row) {
            hits.push(None);
            continue;
        }
        let mut hit = all;
        for item in range(right, row) {
            hit = has(row, item)?;
            if hit != all {
                break;
            }
        }
        hits.push(Some(hit));
    }
    Ok(Arc::new(BooleanArray::from(hits)))
}

fn position_types(types: &[DataType]) -> Result<Vec<DataType>> {
    count("array_position", types, 2..=3)?;
    let (list, item) = list_and_item("array_position", &types[0], &types[1])?;
    let mut wanted = vec![list, item];
    wanted.resize(types.len(), DataType::Int64);
    Ok(wanted)
}

fn positions_types(types: &[DataType]) -> Result<Vec<DataType>> {
    count("array_positions", types, 2..=2)?;
    let (list, item) = list_and_item("array_positions", &types[0], &types[1])?;
    Ok(vec![list, item])
}

fn one_dimension(name: &str, arrays: &ArrayRef) -> Result<()> {
    if dimensions(arrays.data_type()) > 1 {
        return exec_err!(
            "searching for elements in multidimensional arrays is not supported by {name}"
        );
    }
    Ok(())
}

fn position(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    one_dimension("array_position", &args[0])?;
    let own = lists(&args[0]);
    let compare = comparator(own.values(), &args[1])?;
    let mut found = Vec::with_capacity(rows);
    for row in 0..rows {
        let items = range(own, row);
        let start = match args.get(2) {
            Some(from) if from.is_null(row) => {
                return exec_err!("initial position must not be null");
            }
            Some(from) => from.as_primitive::<Int64Type>().value(row).max(1) - 1,
            None => 0,
        };
        let start = items
            .start
            .saturating_add(usize::try_from(start).unwrap_or(usize::MAX));
        let at = (start..items.end).find(|at| compare(*at, row) == Ordering::Equal);
        found.push(at.map(|at| (at - items.start + 1) as i32));
    }
    Ok(Arc::new(Int32Array::from(found)))
}

fn positions(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    one_dimension("array_positions", &args[0])?;
    let own = lists(&args[0]);
    let compare = comparator(own.values(), &args[1])?;
    let longest = (0..rows)
        .map(|row| range(own, row).len())
        .max()
        .unwrap_or(0);
    let numbers: ArrayRef = Arc::new(Int32Array::from_iter_values(1..=longest as i32));
    let mut taker = Taker::new(vec![&numbers]);
    for row in 0..rows {
        for (place, at) in range(own, row).enumerate() {
            if compare(at, row) == Ordering::Equal {
                taker.take(0, place);
            }
        }
        taker.end(own.is_valid(row));
    }
    taker.finish()
}
