//! SQL's names of the types of columns.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, TimeUnit};

use crate::keywords::identifier;

/// The SQL name of a column type: what `describe` shows, and what `create table` takes.
///
/// ```
/// use arrow::datatypes::DataType;
/// assert_eq!(messages::types::type_name(&DataType::Decimal128(15, 2)), "decimal(15,2)");
/// assert_eq!(messages::types::type_name(&DataType::Utf8View), "varchar");
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
        DataType::FixedSizeBinary(16) => "uuid",
        DataType::FixedSizeBinary(12) => "time with time zone",
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => "bytea",
        DataType::Date32 | DataType::Date64 => "date",
        DataType::Time32(_) | DataType::Time64(_) => "time",
        DataType::Timestamp(unit, zone) => return timestamp(unit, zone.is_some()),
        DataType::Interval(_) | DataType::Duration(_) => "interval",
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => return format!("decimal({p},{s})"),
        DataType::Dictionary(_, value) => return type_name(value),
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            return format!("{}[]", type_name(item.data_type()));
        }
        DataType::Struct(fields) => match table::json_kind(data_type) {
            Some(kind) => kind.name(),
            None if table::is_enum(data_type) => {
                let name = table::enum_name(data_type).unwrap_or_default();
                return table::titled(name).into_owned();
            }
            None => {
                let of = |field: &Arc<Field>| {
                    format!(
                        "{} {}",
                        identifier(field.name()),
                        type_name(field.data_type())
                    )
                };
                let fields: Vec<String> = fields.iter().map(of).collect();
                return format!("struct({})", fields.join(", "));
            }
        },
        DataType::Map(..) => match table::map_parts(data_type) {
            Some((key, value)) => return format!("map({}, {})", type_name(key), type_name(value)),
            None => "map",
        },
        other => return other.to_string().to_lowercase(),
    };
    name.to_string()
}

/// The name of a type as a statement of our own writes it: that of an enum with its schema, so that it is looked up in no
/// path.
pub fn exact_name(data_type: &DataType) -> String {
    if let DataType::List(item) = data_type {
        return format!("{}[]", exact_name(item.data_type()));
    }
    let Some(name) = table::enum_name(data_type) else {
        return type_name(data_type);
    };
    let quoted = |part: &str| format!("\"{}\"", part.replace('"', "\"\""));
    let schema = table::schema_of(name).unwrap_or("public");
    format!("{}.{}", quoted(schema), quoted(table::base_of(name)))
}

/// Where the metadata of a column of an answer has the name of its SQL type: `json`, `jsonb`, or that of an enum.
pub const JSON_TYPE: &str = "atoll:type";

/// Where that of a column of an enum has the enum's name in the catalog.
const ENUM: &str = "atoll:enum";

/// And where it has the labels, as the type has them within statements.
const LABELS: &str = "atoll:labels";

/// Which of the types of JSON a column of an answer has, if it has one, or whether it has `time with time zone`: it is a
/// text otherwise.
pub fn json_type_of(field: &Field) -> Option<&str> {
    let own = field.metadata().get(JSON_TYPE).map(String::as_str);
    own.filter(|own| {
        matches!(*own, "json" | "jsonb" | "time with time zone") && enum_of(field).is_none()
    })
}

/// The name in the catalog of the enum that a column of an answer is of, whose values are texts.
pub(crate) fn enum_of(field: &Field) -> Option<&str> {
    field.metadata().get(ENUM).map(String::as_str)
}

/// What the metadata of a column of an answer says of an enum.
pub fn marks(data_type: &DataType) -> Vec<(&'static str, String)> {
    let name = table::enum_name(data_type).unwrap_or_default();
    let labels = table::enum_type(data_type).map(|own| own.written());
    vec![
        (JSON_TYPE, table::titled(name).into_owned()),
        (ENUM, name.to_owned()),
        (LABELS, labels.unwrap_or_default()),
    ]
}

/// The type that a column of an answer has within statements, if it is of an enum.
pub fn enum_type_of(field: &Field) -> Option<DataType> {
    let labels = field.metadata().get(LABELS)?;
    let own = table::EnumType::of_written(enum_of(field)?, labels)?;
    Some(own.data_type())
}

/// The name of the type of a column of an answer. Values of some types are texts there, and the metadata of the column says
/// which they are of.
///
/// ```
/// use arrow::datatypes::{DataType, Field};
/// assert_eq!(messages::types::column_type_name(&Field::new("n", DataType::Int32, true)), "integer");
/// ```
pub fn column_type_name(field: &Field) -> String {
    if let Some(name) = field.metadata().get(JSON_TYPE) {
        return name.clone();
    }
    match field.data_type() {
        DataType::List(item) | DataType::LargeList(item) | DataType::ListView(item) => {
            format!("{}[]", column_type_name(item))
        }
        other => type_name(other),
    }
}

fn timestamp(unit: &TimeUnit, zone: bool) -> String {
    let digits = match unit {
        TimeUnit::Second => "(0)",
        TimeUnit::Millisecond => "(3)",
        TimeUnit::Microsecond => "",
        TimeUnit::Nanosecond => "(9)",
    };
    if zone {
        format!("timestamp{digits} with time zone")
    } else {
        format!("timestamp{digits}")
    }
}

/// PostgreSQL's name of a column type: what `information_schema` and `pg_typeof` say.
pub fn standard_name(data_type: &DataType) -> String {
    let name = match data_type {
        DataType::Null => "unknown",
        DataType::Float16 | DataType::Float32 => "real",
        DataType::Float64 => "double precision",
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => "text",
        DataType::Time32(_) | DataType::Time64(_) => "time without time zone",
        DataType::Timestamp(_, None) => "timestamp without time zone",
        DataType::Timestamp(_, Some(_)) => "timestamp with time zone",
        DataType::Decimal32(_, _)
        | DataType::Decimal64(_, _)
        | DataType::Decimal128(_, _)
        | DataType::Decimal256(_, _) => "numeric",
        DataType::Dictionary(_, value) => return standard_name(value),
        other => return type_name(other),
    };
    name.to_string()
}

/// The digits of the numbers of a type.
pub struct Digits {
    /// How many digits a number has at most.
    pub precision: i32,
    /// What the precision counts: digits of base 2 or 10.
    pub radix: i32,
    /// Digits after the point; `None` where the point floats.
    pub scale: Option<i32>,
}

/// The digits of a type of numbers; `None` for other types.
pub fn digits(data_type: &DataType) -> Option<Digits> {
    let (precision, radix, scale) = match data_type {
        DataType::Int8 | DataType::UInt8 => (8, 2, Some(0)),
        DataType::Int16 | DataType::UInt16 => (16, 2, Some(0)),
        DataType::Int32 | DataType::UInt32 => (32, 2, Some(0)),
        DataType::Int64 | DataType::UInt64 => (64, 2, Some(0)),
        DataType::Float32 => (24, 2, None),
        DataType::Float64 => (53, 2, None),
        DataType::Decimal128(p, s) | DataType::Decimal256(p, s) => {
            ((*p).into(), 10, Some((*s).into()))
        }
        _ => return None,
    };
    Some(Digits {
        precision,
        radix,
        scale,
    })
}

/// Digits of fractions of a second, for types with a time or a date.
pub fn second_digits(data_type: &DataType) -> Option<i32> {
    match data_type {
        DataType::Date32 => Some(0),
        DataType::Interval(_) | DataType::FixedSizeBinary(12) => Some(6),
        DataType::Timestamp(unit, _) | DataType::Time32(unit) | DataType::Time64(unit) => {
            Some(match unit {
                TimeUnit::Second => 0,
                TimeUnit::Millisecond => 3,
                TimeUnit::Microsecond => 6,
                TimeUnit::Nanosecond => 9,
            })
        }
        _ => None,
    }
}
