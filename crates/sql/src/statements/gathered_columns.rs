//! The columns of rows that come one by one.

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, BooleanBuilder, Date32Builder, Decimal128Builder, Float64Builder,
    Int64Builder, RecordBatch, StringViewBuilder, new_null_array,
};
use arrow::compute::{cast, concat};
use arrow::datatypes::{DataType, SchemaRef};

use crate::bind::row_values::Cell;
use crate::error::{Error, Result};

/// Rows of a table that become one batch.
#[derive(Debug)]
pub(super) struct Columns {
    schema: SchemaRef,
    values: Vec<Values>,
    rows: usize,
    /// Of the texts, and of what is an array by itself.
    bytes: usize,
}

/// The values of a column.
#[derive(Debug)]
enum Values {
    Boolean(BooleanBuilder),
    Whole(Int64Builder),
    Float(Float64Builder),
    Text(StringViewBuilder),
    Scaled(Decimal128Builder),
    Day(Date32Builder),
    /// Arrays of one.
    Others(Vec<ArrayRef>),
}

impl Columns {
    pub(super) fn new(schema: SchemaRef) -> Columns {
        let values = schema
            .fields()
            .iter()
            .map(|own| Values::of(own.data_type()));
        Columns {
            values: values.collect(),
            schema,
            rows: 0,
            bytes: 0,
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// About the bytes that wait, but for those of numbers.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whether a row has NULL in a column that has none.
    pub(super) fn lacks(&self, row: &[Cell<'_>]) -> bool {
        let mut columns = self.schema.fields().iter().zip(row);
        columns.any(|(own, cell)| !own.is_nullable() && matches!(cell, Cell::Null))
    }

    /// Takes a row, whose values are those of the columns.
    ///
    /// # Errors
    /// If they are not, which is a defect.
    pub(super) fn push(&mut self, row: Vec<Cell<'_>>) -> Result<()> {
        let columns = self.schema.fields().iter().zip(&mut self.values);
        for ((own, values), cell) in columns.zip(row) {
            self.bytes += match &cell {
                Cell::Text(text) => text.len(),
                Cell::One(value) => value.get_array_memory_size(),
                _ => 0,
            };
            values.push(own.data_type(), cell)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// The rows that were taken, which are forgotten.
    ///
    /// # Errors
    /// None but those of Arrow.
    pub(super) fn finish(&mut self) -> Result<RecordBatch> {
        (self.rows, self.bytes) = (0, 0);
        let columns = self.schema.fields().iter().zip(&mut self.values);
        let columns = columns.map(|(own, values)| values.finish(own.data_type()));
        let columns = columns.collect::<Result<Vec<_>>>()?;
        Ok(RecordBatch::try_new(Arc::clone(&self.schema), columns)?)
    }
}

/// A value of a column of this type as an array of one.
///
/// # Errors
/// If it is none, which is a defect.
pub(super) fn array(cell: Cell<'_>, data_type: &DataType) -> Result<ArrayRef> {
    let mut values = Values::of(data_type);
    values.push(data_type, cell)?;
    values.finish(data_type)
}

impl Values {
    fn of(data_type: &DataType) -> Values {
        match data_type {
            DataType::Boolean => Values::Boolean(BooleanBuilder::new()),
            DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
                Values::Whole(Int64Builder::new())
            }
            DataType::Float64 => Values::Float(Float64Builder::new()),
            DataType::Utf8View => Values::Text(StringViewBuilder::new()),
            DataType::Decimal128(..) => {
                let builder = Decimal128Builder::new();
                Values::Scaled(builder.with_data_type(data_type.clone()))
            }
            DataType::Date32 => Values::Day(Date32Builder::new()),
            _ => Values::Others(Vec::new()),
        }
    }

    fn push(&mut self, data_type: &DataType, cell: Cell<'_>) -> Result<()> {
        match (self, cell) {
            (Values::Boolean(own), Cell::Null) => own.append_null(),
            (Values::Boolean(own), Cell::Boolean(value)) => own.append_value(value),
            (Values::Whole(own), Cell::Null) => own.append_null(),
            (Values::Whole(own), Cell::Whole(value)) => own.append_value(value),
            (Values::Float(own), Cell::Null) => own.append_null(),
            (Values::Float(own), Cell::Float(value)) => own.append_value(value),
            (Values::Text(own), Cell::Null) => own.append_null(),
            (Values::Text(own), Cell::Text(value)) => own.append_value(value),
            (Values::Scaled(own), Cell::Null) => own.append_null(),
            (Values::Scaled(own), Cell::Scaled(value)) => own.append_value(value),
            (Values::Day(own), Cell::Null) => own.append_null(),
            (Values::Day(own), Cell::Day(value)) => own.append_value(value),
            (Values::Others(own), Cell::Null) => own.push(new_null_array(data_type, 1)),
            (Values::Others(own), Cell::One(value)) => own.push(value),
            (_, cell) => {
                return Err(Error::Defect {
                    message: format!("{cell:?} was gathered for a column of type {data_type}"),
                });
            }
        }
        Ok(())
    }

    fn finish(&mut self, data_type: &DataType) -> Result<ArrayRef> {
        Ok(match self {
            Values::Boolean(own) => Arc::new(own.finish()),
            Values::Whole(own) => {
                let numbers: ArrayRef = Arc::new(own.finish());
                match data_type {
                    DataType::Int64 => numbers,
                    // Each is in the range of the type.
                    other => cast(&numbers, other)?,
                }
            }
            Values::Float(own) => Arc::new(own.finish()),
            Values::Text(own) => Arc::new(own.finish()),
            Values::Scaled(own) => Arc::new(own.finish()),
            Values::Day(own) => Arc::new(own.finish()),
            Values::Others(own) => {
                let all: Vec<_> = own.iter().map(|one| one.as_ref()).collect();
                let whole = match all.as_slice() {
                    [] => new_null_array(data_type, 0),
                    all => concat(all)?,
                };
                own.clear();
                whole
            }
        })
    }
}
