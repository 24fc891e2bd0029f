//! Rows of any suitable types become rows of a table's types.

use arrow::array::{Array, ArrayRef, AsArray, RecordBatch};
use arrow::compute::CastOptions;

use arrow::datatypes::{DataType, Decimal256Type, Field, FieldRef, Fields};

use crate::error::{Error, Result};
use crate::schema::definition::Definition;
use crate::schema::enums::{from_texts, is_enum};
use crate::schema::infinite::{cast_moments, finite_part};
use crate::schema::rounding::to_second_digits;
use crate::schema::special::{not_finite, refuse_infinite, rescaled};
use crate::schema::types::{json_kind, map_parts};

/// Whether Arrow's cast would make something of a value that it is not: an array of one item, or bytes of a text.
fn is_of_another_kind(from: &DataType, to: &DataType) -> bool {
    use DataType::{
        Binary, Duration, FixedSizeBinary, FixedSizeList, Interval, LargeBinary, LargeList,
        LargeListView, List, ListView, Map, Null, Struct,
    };
    match to {
        List(_) => !matches!(
            from,
            Null | List(_) | LargeList(_) | FixedSizeList(_, _) | ListView(_) | LargeListView(_)
        ),
        FixedSizeBinary(_) => !matches!(from, Null | Binary | LargeBinary),
        Interval(_) => !matches!(from, Null | Interval(_) | Duration(_)),
        Map(..) => match (from, map_parts(from), map_parts(to)) {
            (Null, _, _) => false,
            (_, Some((key, value)), Some((own_key, own_value))) => {
                is_of_another_kind(key, own_key) || is_of_another_kind(value, own_value)
            }
            _ => true,
        },
        Struct(_) if json_kind(to).is_some() || is_enum(to) => *from != Null,
        Struct(own) => match from {
            Null => false,
            Struct(given) if json_kind(from).is_none() && !is_enum(from) => {
                is_other_struct(given, own)
            }
            _ => true,
        },
        _ => matches!(from, List(_) | Struct(_) | Map(..)),
    }
}

/// Whether structs have other fields than those that are wanted.
fn is_other_struct(given: &Fields, own: &Fields) -> bool {
    let same = |(given, own): (&FieldRef, &FieldRef)| {
        given.name() == own.name() && !is_of_another_kind(given.data_type(), own.data_type())
    };
    given.len() != own.len() || !given.iter().zip(own).all(same)
}

/// A column as one of the type of `field`.
fn cast_of(column: &ArrayRef, field: &Field, options: &CastOptions<'_>) -> Result<ArrayRef> {
    let to = field.data_type();
    if let (Some(own), DataType::Decimal256(..)) = (column.as_primitive_opt::<Decimal256Type>(), to)
    {
        return Ok(rescaled(own, to, options)?);
    }
    // To Arrow they are numbers like others.
    if let Some(own) = not_finite(column.as_ref()) {
        return Err(Error::NotFinite {
            column: field.name().clone(),
            value: own.text(),
        });
    }
    Ok(cast_moments(column, to, options)?)
}

/// Casts `batch`, whose columns stand in the table's order, to the definition's types, and rounds what its columns
/// [round](crate::Column::digits). Infinite dates and timestamps become the counts that [`Infinity`](crate::Infinity) says.
///
/// # Errors
/// [`Error::Mismatch`] for another number of columns, [`Error::Null`] for a NULL where none is
/// allowed, [`Error::Infinite`] for an infinite decimal, [`Error::Arrow`] for values that do not fit the type.
pub fn normalise(batch: &RecordBatch, definition: &Definition) -> Result<RecordBatch> {
    if batch.num_columns() != definition.columns.len() {
        let (got, wanted) = (batch.num_columns(), definition.columns.len());
        let what = format!("{got} columns where it has {wanted}");
        return Err(Error::Mismatch {
            table: definition.name.clone(),
            what,
        });
    }
    let schema = definition.schema();
    let options = CastOptions {
        safe: false,
        ..Default::default()
    };
    let mut columns = Vec::with_capacity(batch.num_columns());
    let fields = schema.fields().iter().zip(&definition.columns);
    for ((field, own), column) in fields.zip(batch.columns()) {
        let column = if column.data_type() == field.data_type() {
            column.clone()
        } else if let Some(values) = from_texts(column, field.data_type())? {
            values
        } else if is_of_another_kind(column.data_type(), field.data_type()) {
            return Err(Error::Mismatch {
                table: definition.name.clone(),
                what: format!(
                    "column '{}' is of type {} and not {}; cast the values first",
                    field.name(),
                    field.data_type(),
                    column.data_type()
                ),
            });
        } else {
            cast_of(column, field, &options)?
        };
        refuse_infinite(column.as_ref())?;
        let column = match own.digits {
            Some(digits) => to_second_digits(&column, digits)?,
            None => column,
        };
        // Of the counts that are read as infinite each has one that is stored, so that equal values are equal.
        let column = match finite_part(&column) {
            Some((finite, infinities)) => infinities.put_into(finite),
            None => column,
        };
        if !field.is_nullable() && column.logical_null_count() > 0 {
            let (table, column) = (definition.name.clone(), field.name().clone());
            return Err(Error::Null { table, column });
        }
        columns.push(column);
    }
    Ok(RecordBatch::try_new(schema, columns)?)
}
