//! Arrays with other items: `array_remove`, `array_replace`.

use std::cmp::Ordering;

use arrow::array::{Array, ArrayRef};
use arrow::datatypes::DataType;
use datafusion_common::{Result, exec_err};

use crate::lists::compare::comparator;
use crate::lists::make::Taker;
use crate::lists::types::{
    count, dimensions, list_and_item, list_beside, list_of, lists, range, together,
};
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![
        Own::new(
            "array_remove",
            removed,
            |types| Ok(types[0].clone()),
            remove,
        ),
        Own::new(
            "array_replace",
            replaced,
            |types| Ok(types[0].clone()),
            replace,
        ),
    ]
}

fn removed(types: &[DataType]) -> Result<Vec<DataType>> {
    count("array_remove", types, 2..=2)?;
    let (list, item) = list_and_item("array_remove", &types[0], &types[1])?;
    Ok(vec![list, item])
}

fn replaced(types: &[DataType]) -> Result<Vec<DataType>> {
    count("array_replace", types, 3..=3)?;
    let list = list_beside(&types[0], &types[1..]);
    let (_, from) = list_and_item("array_replace", &list, &types[1])?;
    let (_, to) = list_and_item("array_replace", &list, &types[2])?;
    let item = together(&[from, to])?;
    Ok(vec![list_of(item.clone()), item.clone(), item])
}

fn remove(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if dimensions(args[0].data_type()) > 1 {
        return exec_err!("removing elements from multidimensional arrays is not supported");
    }
    let own = lists(&args[0]);
    let compare = comparator(own.values(), &args[1])?;
    let mut taker = Taker::new(vec![own.values()]);
    for row in 0..rows {
        let kept = range(own, row).filter(|at| compare(*at, row) != Ordering::Equal);
        kept.for_each(|at| taker.take(0, at));
        taker.end(own.is_valid(row));
    }
    taker.finish()
}

fn replace(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    if dimensions(args[0].data_type()) > 1 {
        return exec_err!("not supported: array_replace in an array of more than one dimension");
    }
    let own = lists(&args[0]);
    let compare = comparator(own.values(), &args[1])?;
    let mut taker = Taker::new(vec![own.values(), &args[2]]);
    for row in 0..rows {
        for at in range(own, row) {
            match compare(at, row) {
                Ordering::Equal => taker.take(1, row),
                _ => taker.take(0, at),
            }
        }
        taker.end(own.is_valid(row));
    }
    taker.finish()
}
