//! Values of columns that are stored as whole numbers.

use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;

/// A literal as the integer that a column of `data_type` stores; `None` if the types differ.
pub(super) fn whole(value: &ScalarValue, data_type: &DataType) -> Option<i128> {
    if value.data_type() != *data_type {
        return None;
    }
    match value {
        ScalarValue::Boolean(v) => v.map(i128::from),
        ScalarValue::Int8(v) => v.map(i128::from),
        ScalarValue::Int16(v) => v.map(i128::from),
        ScalarValue::Int32(v) | ScalarValue::Date32(v) => v.map(i128::from),
        ScalarValue::Int64(v) => v.map(i128::from),
        ScalarValue::UInt8(v) => v.map(i128::from),
        ScalarValue::UInt16(v) => v.map(i128::from),
        ScalarValue::UInt32(v) => v.map(i128::from),
        ScalarValue::UInt64(v) => v.map(i128::from),
        ScalarValue::Decimal128(v, _, _) => *v,
        ScalarValue::Time32Second(v) | ScalarValue::Time32Millisecond(v) => v.map(i128::from),
        ScalarValue::Time64Microsecond(v) | ScalarValue::Time64Nanosecond(v) => v.map(i128::from),
        ScalarValue::TimestampSecond(v, _)
        | ScalarValue::TimestampMillisecond(v, _)
        | ScalarValue::TimestampMicrosecond(v, _)
        | ScalarValue::TimestampNanosecond(v, _) => v.map(i128::from),
        _ => None,
    }
}

/// The value of a column of `data_type` that is stored as the integer `value`.
pub(crate) fn scalar(value: i128, data_type: &DataType) -> Option<ScalarValue> {
    let long = i64::try_from(value).ok();
    Some(match data_type {
        DataType::Boolean => ScalarValue::Boolean(Some(value != 0)),
        DataType::Int8 => ScalarValue::Int8(Some(value.try_into().ok()?)),
        DataType::Int16 => ScalarValue::Int16(Some(value.try_into().ok()?)),
        DataType::Int32 => ScalarValue::Int32(Some(value.try_into().ok()?)),
        DataType::Int64 => ScalarValue::Int64(Some(long?)),
        DataType::UInt8 => ScalarValue::UInt8(Some(value.try_into().ok()?)),
        DataType::UInt16 => ScalarValue::UInt16(Some(value.try_into().ok()?)),
        DataType::UInt32 => ScalarValue::UInt32(Some(value.try_into().ok()?)),
        DataType::UInt64 => ScalarValue::UInt64(Some(value.try_into().ok()?)),
        DataType::Date32 => ScalarValue::Date32(Some(value.try_into().ok()?)),
        DataType::Decimal128(p, s) => ScalarValue::Decimal128(Some(value), *p, *s),
        _ => return None,
    })
}
