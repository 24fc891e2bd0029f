//! Types of PostgreSQL, by their numbers.

use arrow::datatypes::{DataType, Field, IntervalUnit, TimeUnit};

use crate::wire::backend::Column;

pub(crate) const BOOL: u32 = 16;
pub(crate) const BYTEA: u32 = 17;
pub(crate) const INT8: u32 = 20;
pub(crate) const INT2: u32 = 21;
pub(crate) const INT2VECTOR: u32 = 22;
pub(crate) const INT4: u32 = 23;
pub(crate) const TEXT: u32 = 25;
pub(crate) const OID: u32 = 26;
pub(crate) const TID: u32 = 27;
pub(crate) const OIDVECTOR: u32 = 30;
pub(crate) const OIDS: u32 = 1028;
pub(crate) const FLOAT4: u32 = 700;
pub(crate) const FLOAT8: u32 = 701;
pub(crate) const UNKNOWN: u32 = 705;
pub(crate) const VARCHAR: u32 = 1043;
pub(crate) const DATE: u32 = 1082;
pub(crate) const TIME: u32 = 1083;
pub(crate) const TIMESTAMP: u32 = 1114;
pub(crate) const TIMESTAMPTZ: u32 = 1184;
pub(crate) const INTERVAL: u32 = 1186;
pub(crate) const TIMETZ: u32 = 1266;
pub(crate) const NUMERIC: u32 = 1700;
/// The least number of a type that people have made.
pub(crate) const MADE: u32 = 20_000;
pub(crate) const JSON: u32 = 114;
pub(crate) const UUID: u32 = 2950;
pub(crate) const JSONB: u32 = 3802;

/// Arrays, by the type of their items.
const ARRAYS: [(u32, u32); 20] = [
    (TIMETZ, 1270),
    (JSON, 199),
    (UUID, 2951),
    (JSONB, 3807),
    (BOOL, 1000),
    (BYTEA, 1001),
    (INT2, 1005),
    (INT4, 1007),
    (TEXT, 1009),
    (VARCHAR, 1015),
    (INT8, 1016),
    (FLOAT4, 1021),
    (FLOAT8, 1022),
    (OID, 1028),
    (TIMESTAMP, 1115),
    (DATE, 1182),
    (TIME, 1183),
    (TIMESTAMPTZ, 1185),
    (INTERVAL, 1187),
    (NUMERIC, 1231),
];

/// The number of a type.
pub(crate) fn oid(data_type: &DataType) -> u32 {
    sql::type_number(data_type)
}

/// The type of the items of an array.
pub(crate) fn item(array: u32) -> Option<u32> {
    let found = ARRAYS.iter().find(|(_, of)| *of == array);
    found.map(|(item, _)| *item)
}

/// The type for which a client has declared a parameter; none if it leaves it to the server.
///
/// # Errors
/// The number, if there is no such type here.
pub(crate) fn declared(oid: u32) -> Result<Option<DataType>, u32> {
    let zone = || Some("+00:00".into());
    Ok(Some(match oid {
        0 | UNKNOWN => return Ok(None),
        // Of types that people have made: they take the type of what they stand beside.
        made if made >= MADE => return Ok(None),
        BOOL => DataType::Boolean,
        BYTEA => DataType::Binary,
        INT2 => DataType::Int16,
        INT4 => DataType::Int32,
        INT8 | OID => DataType::Int64,
        FLOAT4 => DataType::Float32,
        FLOAT8 => DataType::Float64,
        // "char", name, text, char(n), varchar(n), xml. Times with a zone take their type from what they stand beside.
        18 | 19 | TEXT | 1042 | VARCHAR | 142 | TIMETZ => DataType::Utf8View,
        JSON | JSONB | UUID => sql::special_type(oid).ok_or(oid)?,
        // Arrays are texts, which take the type of what they stand beside: they may have any number of dimensions.
        array if item(array).is_some() => DataType::Utf8View,
        DATE => DataType::Date32,
        TIME => DataType::Time64(TimeUnit::Microsecond),
        TIMESTAMP => DataType::Timestamp(TimeUnit::Microsecond, None),
        TIMESTAMPTZ => DataType::Timestamp(TimeUnit::Microsecond, zone()),
        INTERVAL => DataType::Interval(IntervalUnit::MonthDayNano),
        NUMERIC => DataType::Decimal128(38, 10),
        other => return Err(other),
    }))
}

/// The type that a parameter is said to have.
pub(crate) fn parameter(data_type: &DataType) -> u32 {
    oid(data_type)
}

/// The places from 0 on of the parameters that a text casts to `oid[]`. These are read as numbers of 8 bytes here; drivers that ask
/// about types they have not met know no arrays but of these and of texts.
pub(crate) fn arrays_of_oids(text: &str) -> Vec<usize> {
    let mut found = Vec::new();
    for (at, _) in text.match_indices('$') {
        let rest = &text[at + 1..];
        let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let Ok(number) = rest[..digits].parse::<usize>() else {
            continue;
        };
        let cast = rest[digits..].trim_start().strip_prefix("::");
        let cast = cast.map(str::trim_start).unwrap_or_default();
        let cast = cast.strip_prefix("pg_catalog.").unwrap_or(cast);
        if cast.starts_with("oid[]") {
            found.extend(number.checked_sub(1));
        }
    }
    found
}

/// A column of a result, as the protocol describes it; `origin` is the column of a table that it is, and `modifier` what its type
/// says beside its name.
pub(crate) fn column(
    field: &Field,
    (origin, modifier): (Option<sql::Origin>, Option<sql::Modifier>),
    binary: bool,
) -> Column {
    let oid = match (sql::column_number(field), modifier) {
        (TEXT, Some(sql::Modifier::Length { .. })) => VARCHAR,
        (oid, _) => oid,
    };
    let size = match oid {
        BOOL => 1,
        INT2 => 2,
        INT4 | FLOAT4 | DATE => 4,
        INT8 | FLOAT8 | TIME | TIMESTAMP | TIMESTAMPTZ => 8,
        INTERVAL | UUID => 16,
        TID => 6,
        TIMETZ => 12,
        _ => -1,
    };
    let data_type = field.data_type();
    let modifier = match modifier {
        Some(modifier) => modifier.number(data_type),
        None => sql::type_modifier(data_type),
    };
    Column {
        name: field.name().clone(),
        table: origin.map_or(0, |origin| origin.table),
        place: origin.map_or(0, |origin| origin.column),
        oid,
        size,
        modifier,
        binary,
    }
}
