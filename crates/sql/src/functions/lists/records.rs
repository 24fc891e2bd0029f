//! The rows of a function that gives several columns, as rows where only one value may stand: an array of them.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ListArray, StructArray};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field, Fields};
use datafusion::common::{Result, exec_err, plan_err};

use crate::functions::lists::names::RECORDS;
use crate::functions::lists::types::{item, list_of, lists, range};
use crate::functions::own::Own;

pub(super) fn all() -> Vec<Own> {
    vec![Own::new(
        RECORDS,
        |types| Ok(types.to_vec()),
        |types| Ok(list_of(DataType::Struct(fields(types)?))),
        records,
    )]
}

/// The fields of a row, called as those of `row(...)` are.
fn fields(arrays: &[DataType]) -> Result<Fields> {
    let field = |(at, array): (usize, &DataType)| match item(array) {
        Some(item) => Ok(Field::new(format!("f{}", at + 1), item.clone(), true)),
        None => plan_err!("rows are made of arrays"),
    };
    arrays.iter().enumerate().map(field).collect()
}

/// For each row an array of the rows that its arrays have, which are of one length.
fn records(args: &[ArrayRef], rows: usize) -> Result<ArrayRef> {
    let types: Vec<DataType> = args.iter().map(|own| own.data_type().clone()).collect();
    let fields = fields(&types)?;
    let Some(first) = args.first().map(lists) else {
        return plan_err!("rows are made of arrays");
    };
    let mut columns = Vec::with_capacity(args.len());
    for own in args.iter().map(lists) {
        let alike = (0..rows).all(|row| range(own, row).len() == range(first, row).len());
        if !alike {
            return exec_err!("arrays of different lengths make no rows");
        }
        let parts: Vec<ArrayRef> = (0..rows)
            .map(|row| range(own, row))
            .filter(|part| !part.is_empty())
            .map(|part| own.values().slice(part.start, part.len()))
            .collect();
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        columns.push(if parts.is_empty() {
            own.values().slice(0, 0)
        } else {
            arrow::compute::concat(&parts)?
        });
    }
    let all = StructArray::try_new(fields.clone(), columns, None)?;
    let lengths = (0..rows).map(|row| range(first, row).len());
    let field = Arc::new(Field::new_list_field(DataType::Struct(fields), true));
    let offsets = OffsetBuffer::from_lengths(lengths);
    let found = ListArray::try_new(field, offsets, Arc::new(all), first.nulls().cloned())?;
    Ok(Arc::new(found))
}
