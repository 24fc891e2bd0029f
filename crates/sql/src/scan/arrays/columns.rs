//! Cells of an array as Arrow columns.

use std::sync::Arc;

use array::{Block, Column, DataType, Dimension, Region, Time};
use arrow::array::{
    ArrayRef, BooleanArray, Decimal128Array, Float32Array, Float64Array, Int16Array, Int32Array,
    Int64Array, RecordBatch, RecordBatchOptions, TimestampMicrosecondArray,
};
use arrow::buffer::NullBuffer;
use arrow::compute::filter_record_batch;
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;

use crate::error::Error;
use crate::scan::arrays::definition::{ArrayTable, moment_of, no_moment, scale_of, units};

/// The rows of a piece: `columns` of the table, in the order of `schema`.
///
/// # Errors
/// Those of reading the array.
pub(super) async fn batch(
    table: &ArrayTable,
    columns: &[usize],
    schema: &SchemaRef,
    piece: &Region,
) -> Result<RecordBatch> {
    let (rank, attributes) = (table.rank(), table.array.schema().attributes());
    let wanted: Vec<bool> = (0..attributes.len())
        .map(|at| columns.contains(&(rank + at)))
        .collect();
    let block = table
        .array
        .read(piece, &wanted)
        .await
        .map_err(Error::from)?;
    rows(table.array.schema(), columns, schema, &block)
}

/// The rows of a block of an array: its dimensions and attributes, in the order of `schema`.
///
/// # Errors
/// Those of Arrow.
pub(super) fn of_block(
    of: &array::Schema,
    schema: &SchemaRef,
    block: &Block,
) -> Result<RecordBatch> {
    let columns: Vec<usize> = (0..schema.fields().len()).collect();
    rows(of, &columns, schema, block)
}

/// The rows of a block: `columns` of its array, in the order of `schema`.
fn rows(
    of: &array::Schema,
    columns: &[usize],
    schema: &SchemaRef,
    block: &Block,
) -> Result<RecordBatch> {
    let rank = of.dimensions().len();
    let fields = columns.iter().zip(schema.fields());
    let made = fields.map(|(&column, field)| -> Result<ArrayRef> {
        let typed = field.data_type();
        let time = of.metadata().time(field.name());
        Ok(match (column.checked_sub(rank), time) {
            (None, Some(time)) => {
                let region = block.region();
                moments_along(&of.dimensions()[column], time, region, column)?
            }
            (None, None) => coordinates(&of.dimensions()[column], typed, block.region(), column),
            (Some(number), time) => match (block.column(number), time) {
                (None, _) => arrow::array::new_null_array(typed, block.cells()),
                (Some(values), None) => attribute(values),
                (Some(values), Some(time)) => {
                    moments(values, time, (field.name(), block.present()))?
                }
            },
        })
    });
    let made = made.collect::<Result<Vec<ArrayRef>>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(block.cells()));
    let all = RecordBatch::try_new_with_options(Arc::clone(schema), made, &options)?;
    existing(block, all)
}

/// Only the rows of cells that exist.
fn existing(block: &Block, all: RecordBatch) -> Result<RecordBatch> {
    let Some(present) = block.present() else {
        return Ok(all);
    };
    let present: BooleanArray = present.iter().map(|&present| Some(present != 0)).collect();
    Ok(filter_record_batch(&all, &present)?)
}

/// The coordinates of the cells of a piece along one dimension, in row-major order.
fn coordinates(
    of: &Dimension,
    typed: &arrow::datatypes::DataType,
    piece: &Region,
    dimension: usize,
) -> ArrayRef {
    let scale = scale_of(of);
    let (start, end) = piece.ranges()[dimension];
    let once: Vec<i128> = (start..end).map(|at| units(of, at, scale)).collect();
    let each = repeated(&once, piece, dimension);
    if of.is_integer() {
        // Coordinates of such a dimension are whole numbers of 64 bits.
        return Arc::new(Int64Array::from_iter_values(each.map(|unit| unit as i64)));
    }
    Arc::new(Decimal128Array::from_iter_values(each).with_data_type(typed.clone()))
}

/// What each position of a piece along a dimension has, for each of its cells in row-major order.
fn repeated<'a, T: Copy>(
    once: &'a [T],
    piece: &'a Region,
    dimension: usize,
) -> impl Iterator<Item = T> + 'a {
    let shape = piece.shape();
    let inner: u64 = shape[dimension + 1..].iter().product();
    let outer: u64 = shape[..dimension].iter().product();
    (0..outer).flat_map(move |_| {
        once.iter()
            .flat_map(move |&of| std::iter::repeat_n(of, inner as usize))
    })
}

/// The coordinates of the cells of a piece along a dimension whose coordinates are times.
fn moments_along(of: &Dimension, time: Time, piece: &Region, dimension: usize) -> Result<ArrayRef> {
    let (start, end) = piece.ranges()[dimension];
    let once = (start..end).map(|at| moment_of(of, at, time));
    let once = once.collect::<crate::error::Result<Vec<i64>>>()?;
    let each = repeated(&once, piece, dimension);
    Ok(Arc::new(TimestampMicrosecondArray::from_iter_values(each)))
}

/// The values of an attribute that are times; NaN is NULL, as is what a cell has that does not exist.
fn moments(
    column: &Column,
    time: Time,
    (name, present): (&str, Option<&[u8]>),
) -> Result<ArrayRef> {
    let one = |cell: usize| {
        let value = column.get(cell);
        let exists = present.is_none_or(|of| of.get(cell).is_some_and(|&of| of != 0));
        if value.is_null() || !exists || value.to_f64().is_some_and(f64::is_nan) {
            return Ok(None);
        }
        let moment = time.of_scalar(value);
        moment
            .map(Some)
            .ok_or_else(|| no_moment(name, &value.to_string()))
    };
    let moments = (0..column.values().len()).map(one);
    let moments = moments.collect::<crate::error::Result<Vec<Option<i64>>>>()?;
    Ok(Arc::new(TimestampMicrosecondArray::from(moments)))
}

/// The values of an attribute.
fn attribute(column: &Column) -> ArrayRef {
    let values = column.values();
    let nulls = column
        .valid()
        .map(|valid| NullBuffer::from_iter(valid.iter().map(|&valid| valid != 0)));
    match values.data_type() {
        DataType::Bool => {
            let values = values.values::<u8>().iter().map(|&of| of != 0);
            Arc::new(BooleanArray::new(values.collect(), nulls))
        }
        DataType::I8 => {
            let values = values.values::<i8>().iter().map(|&of| i16::from(of));
            Arc::new(Int16Array::new(values.collect(), nulls))
        }
        DataType::U8 => {
            let values = values.values::<u8>().iter().map(|&of| i16::from(of));
            Arc::new(Int16Array::new(values.collect(), nulls))
        }
        DataType::I16 => Arc::new(Int16Array::new(
            values.values::<i16>().to_vec().into(),
            nulls,
        )),
        DataType::U16 => {
            let values = values.values::<u16>().iter().map(|&of| i32::from(of));
            Arc::new(Int32Array::new(values.collect(), nulls))
        }
        DataType::I32 => Arc::new(Int32Array::new(
            values.values::<i32>().to_vec().into(),
            nulls,
        )),
        DataType::U32 => {
            let values = values.values::<u32>().iter().map(|&of| i64::from(of));
            Arc::new(Int64Array::new(values.collect(), nulls))
        }
        DataType::I64 => Arc::new(Int64Array::new(
            values.values::<i64>().to_vec().into(),
            nulls,
        )),
        DataType::U64 => {
            let values = values.values::<u64>().iter().map(|&of| i128::from(of));
            let typed = arrow::datatypes::DataType::Decimal128(20, 0);
            Arc::new(Decimal128Array::new(values.collect(), nulls).with_data_type(typed))
        }
        DataType::F32 => Arc::new(Float32Array::new(
            values.values::<f32>().to_vec().into(),
            nulls,
        )),
        DataType::F64 => Arc::new(Float64Array::new(
            values.values::<f64>().to_vec().into(),
            nulls,
        )),
    }
}
