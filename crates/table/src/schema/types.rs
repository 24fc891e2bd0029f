//! The types of values that tables store.

use arrow::datatypes::{DataType, TimeUnit};

/// The type in which values of type `from` are stored, and which scans deliver: texts and binaries
/// become views, dictionaries the type of their values, other decimals `Decimal128`. `None` if such
/// values cannot be stored.
pub fn stored_type(from: &DataType) -> Option<DataType> {
    use DataType::*;
    Some(match from {
        Boolean | Int8 | Int16 | Int32 | Int64 | UInt8 | UInt16 | UInt32 | UInt64 => from.clone(),
        Float32 | Float64 | Date32 | Time32(_) | Time64(_) | Timestamp(_, _) => from.clone(),
        Decimal128(_, _) => from.clone(),
        Float16 => Float32,
        Date64 => Timestamp(TimeUnit::Millisecond, None),
        Decimal32(p, s) | Decimal64(p, s) => Decimal128(*p, *s),
        Decimal256(p, s) if *p <= 38 => Decimal128(*p, *s),
        Utf8 | LargeUtf8 | Utf8View | Null => Utf8View,
        Binary | LargeBinary | BinaryView | FixedSizeBinary(_) => BinaryView,
        Dictionary(_, value) => return stored_type(value),
        _ => return None,
    })
}
