//! The numbers by which PostgreSQL's clients know types and tables.

use arrow::datatypes::{DataType, Field, TimeUnit};
use table::{Column, JsonKind, Tables};

use crate::types::{enum_of, json_type_of};

/// A type of PostgreSQL.
pub struct PgType {
    /// Its OID.
    pub number: i64,
    /// What `pg_type.typname` calls it.
    pub name: &'static str,
    /// What SQL calls it.
    pub title: &'static str,
    /// Bytes of a value; -1 if they differ.
    pub length: i32,
    /// Its `pg_type.typcategory`, such as `N` for numbers.
    pub category: &'static str,
    /// The OID of the type of its arrays.
    pub array: i64,
}

const fn of(
    number: i64,
    name: &'static str,
    title: &'static str,
    length: i32,
    category: &'static str,
    array: i64,
) -> PgType {
    PgType {
        number,
        name,
        title,
        length,
        category,
        array,
    }
}

/// The types that values have here.
pub const TYPES: [PgType; 52] = [
    of(16, "bool", "boolean", 1, "B", 1000),
    of(17, "bytea", "bytea", -1, "U", 1001),
    of(18, "char", "\"char\"", 1, "Z", 1002),
    of(19, "name", "name", 64, "S", 1003),
    of(20, "int8", "bigint", 8, "N", 1016),
    of(21, "int2", "smallint", 2, "N", 1005),
    of(22, "int2vector", "int2vector", -1, "A", 1006),
    of(23, "int4", "integer", 4, "N", 1007),
    of(25, "text", "text", -1, "S", 1009),
    of(26, "oid", "oid", 4, "N", 1028),
    of(700, "float4", "real", 4, "N", 1021),
    of(701, "float8", "double precision", 8, "N", 1022),
    of(705, "unknown", "unknown", -2, "X", 0),
    of(1042, "bpchar", "character", -1, "S", 1014),
    of(1043, "varchar", "character varying", -1, "S", 1015),
    of(1082, "date", "date", 4, "D", 1182),
    of(1083, "time", "time without time zone", 8, "D", 1183),
    of(
        1114,
        "timestamp",
        "timestamp without time zone",
        8,
        "D",
        1115,
    ),
    of(
        1184,
        "timestamptz",
        "timestamp with time zone",
        8,
        "D",
        1185,
    ),
    of(1186, "interval", "interval", 16, "T", 1187),
    of(1266, "timetz", "time with time zone", 12, "D", 1270),
    of(1700, "numeric", "numeric", -1, "N", 1231),
    of(2950, "uuid", "uuid", 16, "U", 2951),
    of(114, "json", "json", -1, "U", 199),
    of(3802, "jsonb", "jsonb", -1, "U", 3807),
    of(30, "oidvector", "oidvector", -1, "A", 1013),
    // Columns and arguments of functions are of these; values are numbers or texts here.
    of(24, "regproc", "regproc", 4, "N", 1008),
    of(27, "tid", "tid", 6, "U", 1010),
    of(28, "xid", "xid", 4, "U", 1011),
    of(29, "cid", "cid", 4, "U", 1012),
    of(2202, "regprocedure", "regprocedure", 4, "N", 2207),
    of(2205, "regclass", "regclass", 4, "N", 2210),
    of(2206, "regtype", "regtype", 4, "N", 2211),
    of(4072, "jsonpath", "jsonpath", -1, "U", 4073),
    of(4089, "regnamespace", "regnamespace", 4, "N", 4090),
    of(4096, "regrole", "regrole", 4, "N", 4097),
    of(2249, "record", "record", -1, PSEUDO, 2287),
    of(2275, "cstring", "cstring", -2, PSEUDO, 1263),
    of(2276, "any", "\"any\"", 4, PSEUDO, 0),
    of(2277, "anyarray", "anyarray", -1, PSEUDO, 0),
    of(2278, "void", "void", 4, PSEUDO, 0),
    of(2279, "trigger", "trigger", 4, PSEUDO, 0),
    of(2280, "language_handler", "language_handler", 4, PSEUDO, 0),
    of(2281, "internal", "internal", 8, PSEUDO, 0),
    of(2283, "anyelement", "anyelement", 4, PSEUDO, 0),
    of(2776, "anynonarray", "anynonarray", 4, PSEUDO, 0),
    of(3115, "fdw_handler", "fdw_handler", 4, PSEUDO, 0),
    of(3838, "event_trigger", "event_trigger", 4, PSEUDO, 0),
    of(3500, "anyenum", "anyenum", 4, PSEUDO, 0),
    of(5077, "anycompatible", "anycompatible", 4, PSEUDO, 0),
    of(
        5078,
        "anycompatiblearray",
        "anycompatiblearray",
        -1,
        PSEUDO,
        0,
    ),
    of(
        5079,
        "anycompatiblenonarray",
        "anycompatiblenonarray",
        4,
        PSEUDO,
        0,
    ),
];

/// The category of types that no column has.
pub const PSEUDO: &str = "P";

/// The name of the items of arrays that count from 0 and have no braces around them as texts: PostgreSQL's `int2vector`,
/// in which its catalog keeps places of columns.
pub const VECTOR: &str = "int2vector";

/// The name of the items of arrays that clients are told are `oid[]`: drivers know that type before they have asked for any.
pub const OIDS: &str = "oid";
/// The name of the items of arrays that clients are told are `text[]`, for the same reason.
pub const TEXTS: &str = "text";

/// The number of the type of arrays whose items have one of these names.
fn named_list(ty: &DataType) -> Option<u32> {
    let DataType::List(item) = ty else {
        return None;
    };
    match (item.name().as_str(), item.data_type()) {
        (VECTOR, DataType::Int32) => Some(30),
        (VECTOR, _) => Some(22),
        (OIDS, DataType::Int32) => Some(1028),
        (TEXTS, DataType::Utf8) => Some(1009),
        _ => None,
    }
}

/// Whether a type is that of the arrays of [`VECTOR`].
pub fn is_vector(ty: &DataType) -> bool {
    matches!(ty, DataType::List(item) if item.name() == VECTOR)
}

/// The number by which PostgreSQL's clients know a type. Those that it does not have go as the next larger one, or as text.
///
/// ```
/// use arrow::datatypes::DataType;
/// assert_eq!(messages::numbers::type_number(&DataType::Int32), 23);
/// assert_eq!(messages::numbers::type_number(&DataType::UInt32), 20);
/// ```
pub fn type_number(data_type: &DataType) -> u32 {
    match data_type {
        DataType::Boolean => 16,
        DataType::Int8 | DataType::Int16 | DataType::UInt8 => 21,
        DataType::Int32 | DataType::UInt16 => 23,
        DataType::Int64 | DataType::UInt32 => 20,
        DataType::UInt64
        | DataType::Decimal32(..)
        | DataType::Decimal64(..)
        | DataType::Decimal128(..)
        | DataType::Decimal256(..) => 1700,
        DataType::Float16 | DataType::Float32 => 700,
        DataType::Float64 => 701,
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View => 25,
        DataType::FixedSizeBinary(16) => 2950,
        DataType::FixedSizeBinary(12) => 1266,
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => 17,
        DataType::Date32 | DataType::Date64 => 1082,
        DataType::Time32(_) | DataType::Time64(_) => 1083,
        DataType::Timestamp(_, None) => 1114,
        DataType::Timestamp(_, Some(_)) => 1184,
        DataType::Interval(_) | DataType::Duration(_) => 1186,
        DataType::Dictionary(_, value) => type_number(value),
        list if named_list(list).is_some() => named_list(list).unwrap_or_default(),
        DataType::List(item) | DataType::LargeList(item) | DataType::FixedSizeList(item, _) => {
            let mut item = item.data_type();
            // Arrays of any number of dimensions have one type.
            while let DataType::List(inner) = item {
                item = inner.data_type();
            }
            if let Some(name) = table::enum_name(item) {
                return enum_array_number(name);
            }
            let item = i64::from(type_number(item));
            let found = TYPES.iter().find(|known| known.number == item);
            found.map_or(25, |known| known.array as u32)
        }
        own if table::is_enum(own) => enum_number(table::enum_name(own).unwrap_or_default()),
        other => match table::json_kind(other) {
            Some(JsonKind::Text) => 114,
            Some(JsonKind::Normal) => 3802,
            None => 25,
        },
    }
}

/// The name in PostgreSQL's catalog of the type of this number, `_int4` of arrays of `int4`; of one that is not known `text`.
pub fn short_name(number: u32) -> String {
    let number = i64::from(number);
    let known = TYPES
        .iter()
        .find(|own| own.number == number || own.array == number);
    match known {
        Some(own) if own.number == number => own.name.to_owned(),
        Some(own) => format!("_{}", own.name),
        None => "text".to_owned(),
    }
}

/// The type here that PostgreSQL's clients know by this number, of those that are not Arrow's own: `uuid`, `json`, `jsonb`.
pub fn special_type(number: u32) -> Option<DataType> {
    match number {
        114 => Some(table::json_type()),
        2950 => Some(table::uuid_type()),
        3802 => Some(table::jsonb_type()),
        _ => None,
    }
}

/// The number of the type of a column of an answer, in which JSON is a text that its metadata tells from others.
pub fn column_number(field: &Field) -> u32 {
    // Where a row is.
    let is_text = matches!(field.data_type(), DataType::Utf8 | DataType::Utf8View);
    if field.name() == "ctid" && is_text {
        return 27;
    }
    let number = |field: &Field| match json_type_of(field) {
        Some("json") => 114,
        Some("time with time zone") => 1266,
        Some(_) => 3802,
        None if enum_of(field).is_some() => enum_number(enum_of(field).unwrap_or_default()),
        None => type_number(field.data_type()),
    };
    if let Some(number) = named_list(field.data_type()) {
        return number;
    }
    let mut item = field;
    while let DataType::List(inner) = item.data_type() {
        item = inner;
    }
    if std::ptr::eq(item, field) {
        return number(field);
    }
    if let Some(name) = enum_of(item) {
        return enum_array_number(name);
    }
    let item = i64::from(number(item));
    let found = TYPES.iter().find(|known| known.number == item);
    found.map_or(1009, |known| known.array as u32)
}

/// The oid of an enum, a domain or a composite type. It follows from the name in the catalog, and changes when the type is renamed.
pub fn enum_number(name: &str) -> u32 {
    table_number(&format!("type {name}")) as u32
}

/// What the relation of a composite type is called where its number is made: no table is called so.
pub fn composite_name(name: &str) -> String {
    format!("composite {name}")
}

/// The number of the relation that PostgreSQL has for a composite type.
pub fn composite_number(name: &str) -> i64 {
    table_number(&composite_name(name))
}

/// The number of the type of a column: of its domain or composite type, or of arrays of the latter, if it is of one.
pub fn type_of_column(column: &Column, tables: &Tables) -> u32 {
    match &column.domain {
        Some(name) => {
            let of_arrays = tables.domain(name).is_some_and(|own| own.composite)
                && matches!(column.data_type, DataType::List(_));
            if of_arrays {
                enum_array_number(name)
            } else {
                enum_number(name)
            }
        }
        None => type_number(&column.data_type),
    }
}

/// The number of the arrays of an enum.
pub fn enum_array_number(name: &str) -> u32 {
    table_number(&format!("array {name}")) as u32
}

/// What PostgreSQL keeps beside the number of a column's type: the digits of a decimal number, and those behind the second where
/// they are a type of their own; -1 if there is nothing.
pub fn type_modifier(data_type: &DataType) -> i32 {
    match data_type {
        DataType::Timestamp(TimeUnit::Second, _) => 0,
        DataType::Timestamp(TimeUnit::Millisecond, _) => 3,
        DataType::Decimal128(precision, scale) | DataType::Decimal256(precision, scale) => {
            ((i32::from(*precision) << 16) | i32::from(*scale)) + 4
        }
        _ => -1,
    }
}

/// The [modifier](type_modifier) of a column, which may round its values to so many digits behind the second.
pub fn column_modifier(column: &Column) -> i32 {
    if column.domain.is_some() {
        return -1;
    }
    let mut own = &column.data_type;
    while let DataType::List(item) = own {
        own = item.data_type();
    }
    let Some(digits) = column.digits else {
        return type_modifier(own);
    };
    digits_modifier(own, digits)
}

/// The [modifier](type_modifier) of a type whose values are rounded to so many digits behind the second.
pub fn digits_modifier(data_type: &DataType, digits: u8) -> i32 {
    match data_type {
        // All fields, beside the digits.
        DataType::Interval(_) => (0x7fff << 16) | i32::from(digits),
        _ => digits.into(),
    }
}

/// What SQL calls a type with this number and modifier; none if there is none.
pub fn type_title(number: i64, modifier: i64) -> Option<String> {
    let known = TYPES.iter().find(|known| known.number == number);
    let Some(known) = known else {
        let item = TYPES
            .iter()
            .find(|known| known.array == number && number != 0)?;
        let title = type_title(item.number, modifier)?;
        return Some(format!("{title}[]"));
    };
    if number == 1700 && modifier >= 4 {
        let (precision, scale) = ((modifier - 4) >> 16, (modifier - 4) & 0xffff);
        return Some(format!("numeric({precision},{scale})"));
    }
    if modifier >= 4 && matches!(number, 1042 | 1043) {
        return Some(format!("{}({})", known.title, modifier - 4));
    }
    if modifier >= 0 && matches!(number, 1083 | 1114 | 1184 | 1186 | 1266) {
        let digits = modifier & 0xffff;
        let (first, rest) = known.title.split_once(' ').unwrap_or((known.title, ""));
        let title = format!("{first}({digits}) {rest}");
        return Some(title.trim_end().to_string());
    }
    Some(known.title.to_string())
}

/// The number of the type that PostgreSQL knows by this name, or of arrays of it for a name that ends in `[]`; none if
/// there is none. Case does not matter, nor does the schema `pg_catalog` before it.
pub fn type_named(name: &str) -> Option<i64> {
    let name = without_length(&name.trim().to_lowercase());
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let (item, is_array) = match name.strip_suffix("[]") {
        Some(item) => (item.trim_end(), true),
        None => match item_named(name) {
            Some(item) => (item, true),
            None => (name, false),
        },
    };
    let item = match item {
        "int" => "integer",
        "decimal" => "numeric",
        "char" => "character",
        "time" => "time without time zone",
        "timestamp" => "timestamp without time zone",
        "float" => "double precision",
        other => other,
    };
    let known = TYPES
        .iter()
        .find(|known| known.title == item || known.name == item)?;
    match is_array {
        true if known.array == 0 => None,
        true => Some(known.array),
        false => Some(known.number),
    }
}

/// The name of a type without the length or the digits that it may have: `varchar(10)`, `timestamp(3) with time zone`.
fn without_length(name: &str) -> String {
    let parts = name.split_once('(').and_then(|(before, rest)| {
        let (digits, after) = rest.split_once(')')?;
        let is_number = |c: char| c.is_ascii_digit() || matches!(c, ',' | ' ');
        digits.chars().all(is_number).then_some((before, after))
    });
    match parts {
        Some((before, after)) => format!("{}{after}", before.trim_end()),
        None => name.to_owned(),
    }
}

/// The type whose arrays PostgreSQL knows by this name, such as `int4` of `_int4`.
pub fn item_named(name: &str) -> Option<&str> {
    let item = name.strip_prefix('_')?;
    let mut all = TYPES.iter();
    all.any(|known| known.name == item && known.array != 0)
        .then_some(item)
}

/// The OID of the schema `pg_catalog`.
pub const CATALOG_SCHEMA: i64 = 11;
pub(crate) const PUBLIC_SCHEMA: i64 = 2200;
pub(crate) const INFORMATION_SCHEMA: i64 = 13_000;
/// The OID of the one database.
pub const DATABASE: i64 = 16_384;
/// The OID of the role that owns the database.
pub const OWNER: i64 = 10;

/// The OID by which PostgreSQL's clients know a role. It is made from the name, so it changes when the role is renamed.
pub fn role_number(name: &str) -> i64 {
    match name {
        CATALOG => OWNER,
        name => table_number(&format!("role {name}")),
    }
}

/// The number of a schema.
pub fn schema_number(name: &str) -> i64 {
    match name {
        "pg_catalog" => CATALOG_SCHEMA,
        "public" => PUBLIC_SCHEMA,
        "information_schema" => INFORMATION_SCHEMA,
        name => table_number(&table::within(name, "")),
    }
}

/// Who runs the program, where roles are named; also the name of the database.
const CATALOG: &str = "atoll";

/// The numbers that PostgreSQL has given to tables of its catalog. `pg_dump` knows what a number is of by them.
const SYSTEM_TABLES: [(&str, i64); 64] = [
    ("pg_aggregate", 2600),
    ("pg_am", 2601),
    ("pg_amop", 2602),
    ("pg_amproc", 2603),
    ("pg_attrdef", 2604),
    ("pg_attribute", 1249),
    ("pg_auth_members", 1261),
    ("pg_authid", 1260),
    ("pg_cast", 2605),
    ("pg_class", 1259),
    ("pg_collation", 3456),
    ("pg_constraint", 2606),
    ("pg_conversion", 2607),
    ("pg_database", 1262),
    ("pg_db_role_setting", 2964),
    ("pg_default_acl", 826),
    ("pg_depend", 2608),
    ("pg_description", 2609),
    ("pg_enum", 3501),
    ("pg_event_trigger", 3466),
    ("pg_extension", 3079),
    ("pg_foreign_data_wrapper", 2328),
    ("pg_foreign_server", 1417),
    ("pg_foreign_table", 3118),
    ("pg_index", 2610),
    ("pg_inherits", 2611),
    ("pg_init_privs", 3394),
    ("pg_language", 2612),
    ("pg_largeobject", 2613),
    ("pg_largeobject_metadata", 2995),
    ("pg_namespace", 2615),
    ("pg_opclass", 2616),
    ("pg_operator", 2617),
    ("pg_opfamily", 2753),
    ("pg_parameter_acl", 6243),
    ("pg_partitioned_table", 3350),
    ("pg_policy", 3256),
    ("pg_proc", 1255),
    ("pg_publication", 6104),
    ("pg_publication_namespace", 6237),
    ("pg_publication_rel", 6106),
    ("pg_range", 3541),
    ("pg_replication_origin", 6000),
    ("pg_rewrite", 2618),
    ("pg_seclabel", 3596),
    ("pg_sequence", 2224),
    ("pg_shdepend", 1214),
    ("pg_shdescription", 2396),
    ("pg_shseclabel", 3592),
    ("pg_statistic", 2619),
    ("pg_statistic_ext", 3381),
    ("pg_statistic_ext_data", 3429),
    ("pg_subscription", 6100),
    ("pg_subscription_rel", 6102),
    ("pg_tablespace", 1213),
    ("pg_transform", 3576),
    ("pg_trigger", 2620),
    ("pg_ts_config", 3602),
    ("pg_ts_config_map", 3603),
    ("pg_ts_dict", 3600),
    ("pg_ts_parser", 3601),
    ("pg_ts_template", 3764),
    ("pg_type", 1247),
    ("pg_user_mapping", 1418),
];

/// Whether PostgreSQL has a table of this name in `pg_catalog`, where everything else is a view.
pub fn is_system_table(name: &str) -> bool {
    let found = SYSTEM_TABLES.binary_search_by_key(&name, |(own, _)| own);
    found.is_ok()
}

/// The number of a table or view: the same as long as it has its name, in all processes.
pub fn table_number(name: &str) -> i64 {
    if name.starts_with("pg_")
        && let Ok(at) = SYSTEM_TABLES.binary_search_by_key(&name, |(own, _)| own)
    {
        return SYSTEM_TABLES[at].1;
    }
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    // Above those that PostgreSQL has given, below the largest.
    20_000 + (hash % 2_000_000_000) as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_have_titles() {
        assert_eq!(
            type_title(1700, i64::from(type_modifier(&DataType::Decimal128(15, 2)))).unwrap(),
            "numeric(15,2)"
        );
        assert_eq!(type_title(1007, -1).unwrap(), "integer[]");
        assert_eq!(type_title(1043, -1).unwrap(), "character varying");
        assert_eq!(type_title(0, -1), None);
        assert_eq!(
            type_title(1114, 2).unwrap(),
            "timestamp(2) without time zone"
        );
        assert_eq!(type_title(1186, -1).unwrap(), "interval");
    }

    #[test]
    fn tables_keep_their_numbers() {
        // What clients have cached must go on being right with the next version of this program.
        assert_eq!(table_number("lineitem"), table_number("lineitem"));
        assert_ne!(table_number("lineitem"), table_number("orders"));
        assert!((20_000..2_000_020_000).contains(&table_number("")));
    }
}
