//! SQL's names of the types of columns.

use arrow::datatypes::{DataType, TimeUnit};

/// The SQL name of a column type: what `describe` shows, and what `create table` takes.
///
/// ```
/// use arrow::datatypes::DataType;
/// assert_eq!(sql::type_name(&DataType::Decimal128(15, 2)), "decimal(15,2)");
/// assert_eq!(sql::type_name(&DataType::Utf8View), "varchar");
/// ```
pub fn type_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Null => "null",
        DataType::Boolean => "boolean",
        DataType::Int8 => "tinyint",
        DataType::Int16 => "smallint",
        DataType::Int32 => "integer",
        DataType::Int64 => "bigint",
        DataType::UInt8 => "tinyint unsigned",
        DataType::UInt16 => "smallint unsigned",
        DataType::UInt32 => "integer unsigned",
        DataType::UInt64 => "bigint unsigned",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "varchar",
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "bytea",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(unit, zone) => return timestamp(unit, zone.is_some()),
        DataType::Interval(_) => "interval",
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => return format!("decimal({p},{s})"),
        DataType::Dictionary(_, value) => return type_name(value),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            return format!("{}[]", type_name(item.data_type()));
        }
        other => return other.to_string().to_lowercase(),
    };
    name.to_string()
}

fn timestamp(unit: &TimeUnit, zone: bool) -> String {
    let digits = match unit {
        TimeUnit::Second => "(0)",
        TimeUnit::Millisecond => "(3)",
        TimeUnit::Microsecond => "(6)",
        TimeUnit::Nanosecond => "",
    };
    match zone {
        true => format!("timestamp{digits} with time zone"),
        false => format!("timestamp{digits}"),
    }
}
