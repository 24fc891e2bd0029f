//! An array as the definition of a table: its columns and their types.

use std::sync::Arc;

use array::{Array, Coordinates, Decimal, Dimension};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use store::Snapshot;

use crate::error::{Error, Result};

/// The digits of a coordinate that is no whole number.
const COORDINATE_DIGITS: u8 = 38;

/// An array as a table.
#[derive(Clone, Debug)]
pub(crate) struct ArrayTable {
    pub(super) array: Arc<Array>,
    pub(super) schema: SchemaRef,
}

impl ArrayTable {
    /// The array of that name, if the snapshot has one.
    ///
    /// # Errors
    /// Those of reading its definition.
    pub(crate) fn find(snapshot: &Snapshot, name: &str) -> Result<Option<ArrayTable>> {
        match Array::open(snapshot, name) {
            Ok(array) => Ok(Some(ArrayTable::of(array))),
            Err(array::Error::NoArray { .. }) => Ok(None),
            Err(error) => Err(Error::from(error)),
        }
    }

    fn of(array: Arc<Array>) -> ArrayTable {
        let of = array.schema();
        let dimensions = of.dimensions().iter();
        let dimensions = dimensions
            .map(|dimension| Field::new(dimension.name(), coordinate_type(dimension), false));
        let attributes = of.attributes().iter().map(|attribute| {
            let values = value_type(attribute.data_type());
            Field::new(attribute.name(), values, attribute.is_nullable())
        });
        let schema = Arc::new(Schema::new(
            dimensions.chain(attributes).collect::<Vec<_>>(),
        ));
        ArrayTable { array, schema }
    }

    /// How many dimensions it has: so many columns come before those of the attributes.
    pub(super) fn rank(&self) -> usize {
        self.array.schema().dimensions().len()
    }
}

/// The type of the column of a dimension: `bigint`, or `numeric` with as many digits after the point as its coordinates.
fn coordinate_type(dimension: &Dimension) -> DataType {
    if dimension.is_integer() {
        DataType::Int64
    } else {
        DataType::Decimal128(COORDINATE_DIGITS, scale_of(dimension) as i8)
    }
}

/// The most digits after the point that a coordinate has.
pub(super) fn scale_of(dimension: &Dimension) -> u8 {
    match dimension.coordinates() {
        Coordinates::Integer { .. } => 0,
        Coordinates::Regular { start, step } => start.scale().max(step.scale()),
        Coordinates::Listed(list) => list.iter().map(|of| of.scale()).max().unwrap_or(0),
    }
}

/// The type of the column of an attribute. SQL has no unsigned numbers: the next wider type takes them.
fn value_type(of: array::DataType) -> DataType {
    match of {
        array::DataType::Bool => DataType::Boolean,
        array::DataType::I8 | array::DataType::I16 | array::DataType::U8 => DataType::Int16,
        array::DataType::I32 | array::DataType::U16 => DataType::Int32,
        array::DataType::I64 | array::DataType::U32 => DataType::Int64,
        array::DataType::U64 => DataType::Decimal128(20, 0),
        array::DataType::F32 => DataType::Float32,
        array::DataType::F64 => DataType::Float64,
    }
}

/// The coordinate of a position, in units of the column of its dimension.
pub(super) fn units(dimension: &Dimension, position: u64, scale: u8) -> i128 {
    let coordinate: Option<Decimal> = dimension.coordinate(position);
    coordinate.and_then(|of| of.digits(scale)).unwrap_or(0)
}
