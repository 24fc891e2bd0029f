//! Whole numbers out of Arrow arrays.

use arrow::array::*;
use arrow::datatypes::*;

use crate::error::{Error, Result};

/// Appends the whole numbers of an Arrow array to `out`, as [`crate::Cursor::ints`] does.
///
/// # Errors
/// An array of another type; a number beyond 64 bits.
pub fn ints_of(array: &ArrayRef, out: &mut Vec<i64>) -> Result<()> {
    macro_rules! push {
        ($t:ty) => {
            out.extend(
                array
                    .as_primitive::<$t>()
                    .values()
                    .iter()
                    .map(|v| *v as i64),
            )
        };
    }
    use DataType::*;
    match array.data_type() {
        Boolean => out.extend(array.as_boolean().values().iter().map(i64::from)),
        Int8 => push!(Int8Type),
        Int16 => push!(Int16Type),
        Int32 => push!(Int32Type),
        Int64 => push!(Int64Type),
        UInt8 => push!(UInt8Type),
        UInt16 => push!(UInt16Type),
        UInt32 => push!(UInt32Type),
        Date32 => push!(Date32Type),
        Time32(TimeUnit::Second) => push!(Time32SecondType),
        Time32(_) => push!(Time32MillisecondType),
        Time64(TimeUnit::Microsecond) => push!(Time64MicrosecondType),
        Time64(_) => push!(Time64NanosecondType),
        Timestamp(TimeUnit::Second, _) => push!(TimestampSecondType),
        Timestamp(TimeUnit::Millisecond, _) => push!(TimestampMillisecondType),
        Timestamp(TimeUnit::Microsecond, _) => push!(TimestampMicrosecondType),
        Timestamp(TimeUnit::Nanosecond, _) => push!(TimestampNanosecondType),
        UInt64 | Decimal128(..) => {
            let mut wide = Vec::with_capacity(array.len());
            wides_of(array, &mut wide)?;
            for (row, value) in wide.into_iter().enumerate() {
                match i64::try_from(value) {
                    Ok(value) => out.push(value),
                    Err(_) if array.is_null(row) => out.push(0),
                    Err(_) => return Err(Error::Kind(format!("{value} in 64 bits"))),
                }
            }
        }
        other => return Err(Error::Kind(format!("{other} as whole numbers"))),
    }
    Ok(())
}

/// As [`ints_of`], for numbers of up to 128 bits.
///
/// # Errors
/// An array of another type.
pub fn wides_of(array: &ArrayRef, out: &mut Vec<i128>) -> Result<()> {
    match array.data_type() {
        DataType::UInt64 => {
            let values = array.as_primitive::<UInt64Type>().values();
            out.extend(values.iter().map(|v| i128::from(*v)));
        }
        DataType::Decimal128(..) => {
            out.extend_from_slice(array.as_primitive::<Decimal128Type>().values());
        }
        _ => {
            let mut narrow = Vec::with_capacity(array.len());
            ints_of(array, &mut narrow)?;
            out.extend(narrow.into_iter().map(i128::from));
        }
    }
    Ok(())
}
