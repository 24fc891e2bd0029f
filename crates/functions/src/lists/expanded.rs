//! `information_schema._pg_expandarray`, by which JDBC's driver reads keys and indexes: each item of an array with its
//! place, as a struct of `x` and `n`.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array, ListArray, StructArray, UInt64Array};
use arrow::buffer::OffsetBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion_common::Result;

use crate::lists::names::EXPANDED;
use crate::lists::types::{count, item, list_argument, list_of, lists, range};
use crate::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        EXPANDED,
        |types| {
            count("_pg_expandarray", types, 1..=1)?;
            Ok(vec![list_argument("_pg_expandarray", types, 0)?])
        },
        |types| Ok(list_of(DataType::Struct(columns(&types[0])))),
        expanded,
    )]
}

/// The columns of the rows of such an array.
fn columns(list: &DataType) -> Fields {
    let item = item(list).cloned().unwrap_or(DataType::Null);
    let item = Field::new("x", item, true);
    [item, Field::new("n", DataType::Int64, true)]
        .into_iter()
        .collect()
}

fn expanded(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let own = lists(&args[0]);
    let (mut items, mut places, mut lengths) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..rows {
        let range = range(own, row);
        lengths.push(range.len());
        items.extend(range.clone().map(|at| at as u64));
        places.extend(1..=range.len() as i64);
    }
    let items = take(own.values(), &UInt64Array::from(items), None)?;
    let columns = columns(own.data_type());
    let made: Vec<ArrayRef> = vec![items, Arc::new(Int64Array::from(places))];
    let made = StructArray::try_new(columns.clone(), made, None)?;
    let DataType::List(field) = list_of(DataType::Struct(columns)) else {
        return Ok(Arc::new(made));
    };
    let offsets = OffsetBuffer::from_lengths(lengths);
    let nulls = own.nulls().cloned();
    Ok(Arc::new(ListArray::try_new(
        field,
        offsets,
        Arc::new(made),
        nulls,
    )?))
}
