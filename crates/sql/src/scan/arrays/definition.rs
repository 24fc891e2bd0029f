//! An array as the definition of a table: its columns and their types.

use std::collections::HashMap;
use std::sync::Arc;

use array::{Array, Coordinates, Decimal, Dimension, Scalar, Time};
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;
use store::Snapshot;

use crate::error::{Error, Result};

/// The digits of a coordinate that is no whole number.
const COORDINATE_DIGITS: u8 = 38;

/// The most digits after the point that a coordinate may have.
const MOST_DIGITS: i8 = 18;

/// An array as a table.
#[derive(Clone, Debug)]
pub(crate) struct ArrayTable {
    pub(crate) array: Arc<Array>,
    pub(crate) schema: SchemaRef,
    /// What cells have of attributes that an `insert` does not name, where it is not NULL.
    pub(super) defaults: Arc<HashMap<String, Expr>>,
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
        let schema = Arc::new(Schema::new(fields_of(of).collect::<Vec<_>>()));
        let defaults = of.attributes().iter().enumerate();
        let defaults = defaults.filter_map(|(at, attribute)| {
            let column = schema.field(of.dimensions().len() + at).data_type();
            let fill = match of.metadata().time(attribute.name()) {
                Some(time) => moment(time.of_scalar(attribute.fill_value())?),
                None => fill_of(attribute.fill_value(), column)?,
            };
            Some((attribute.name().to_owned(), Expr::Literal(fill, None)))
        });
        let defaults = Arc::new(defaults.collect());
        ArrayTable {
            array,
            schema,
            defaults,
        }
    }

    /// The array for rows that are inserted into it: coordinates with all digits that they may have, whatever those of the
    /// array have, so that none is rounded to that of another cell; times stay times. It is not scanned.
    pub(crate) fn exact(mut self) -> ArrayTable {
        let of = DataType::Decimal128(COORDINATE_DIGITS, MOST_DIGITS);
        let fields = self.schema.fields().iter().enumerate();
        let fields = fields.map(|(at, field)| {
            if at < self.rank() && !is_time(field.data_type()) {
                Arc::new(Field::new(field.name(), of.clone(), false))
            } else {
                Arc::clone(field)
            }
        });
        self.schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        self
    }

    /// How many dimensions it has: so many columns come before those of the attributes.
    pub(crate) fn rank(&self) -> usize {
        self.array.schema().dimensions().len()
    }
}

/// The columns of an array: one for each dimension, then one for each attribute.
pub(super) fn fields_of(of: &array::Schema) -> impl Iterator<Item = Field> {
    let metadata = of.metadata();
    let dimensions = of.dimensions().iter().map(|dimension| {
        let typed = match metadata.time(dimension.name()) {
            Some(_) => MOMENT,
            None => coordinate_type(dimension),
        };
        Field::new(dimension.name(), typed, false)
    });
    let attributes = of.attributes().iter().map(|attribute| {
        let data_type = attribute.data_type();
        // NaN is no time, and is NULL.
        let (values, nan) = match metadata.time(attribute.name()) {
            Some(_) => (MOMENT, data_type.is_float()),
            None => (value_type(data_type), false),
        };
        Field::new(attribute.name(), values, attribute.is_nullable() || nan)
    });
    dimensions.chain(attributes)
}

/// The type of the column of times.
const MOMENT: DataType = DataType::Timestamp(TimeUnit::Microsecond, None);

/// Whether it is the type of a column of times.
pub(crate) fn is_time(of: &DataType) -> bool {
    *of == MOMENT
}

/// A time, by its microseconds from 1970 on.
pub(super) fn moment(micros: i64) -> ScalarValue {
    ScalarValue::TimestampMicrosecond(Some(micros), None)
}

/// The moment of a coordinate.
///
/// # Errors
/// If it is none of SQL, which it may be that was appended as a number.
pub(super) fn moment_of(dimension: &Dimension, position: u64, time: Time) -> Result<i64> {
    let coordinate = dimension.coordinate(position);
    coordinate
        .and_then(|of| time.of_decimal(of))
        .ok_or_else(|| {
            let name = dimension.name();
            let number = coordinate.map_or_else(String::new, |of| of.to_string());
            no_moment(name, &number)
        })
}

/// That a number of a dimension or attribute is no time.
pub(super) fn no_moment(name: &str, number: &str) -> Error {
    Error::coded(
        "22008",
        format!(
            "timestamp out of range: {number} of \"{name}\" counts to no time of its calendar in SQL; import it with --times never to have numbers"
        ),
    )
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

/// A fill value as one of a column; none of NULL.
fn fill_of(fill: Scalar, column: &DataType) -> Option<ScalarValue> {
    let value = match fill {
        Scalar::Null => return None,
        Scalar::Bool(value) => ScalarValue::Boolean(Some(value)),
        // What an attribute has fits the column of it.
        Scalar::Int(value) => ScalarValue::Decimal128(Some(value), COORDINATE_DIGITS, 0),
        Scalar::Float(value) => ScalarValue::Float64(Some(value)),
    };
    value.cast_to(column).ok()
}

/// The coordinate of a position, in units of the column of its dimension.
pub(super) fn units(dimension: &Dimension, position: u64, scale: u8) -> i128 {
    let coordinate: Option<Decimal> = dimension.coordinate(position);
    coordinate.and_then(|of| of.digits(scale)).unwrap_or(0)
}
