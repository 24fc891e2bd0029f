//! Columns of random tables, and values that are put into them and asked for.

/// A column: its name as it is written, its type, and some of its values as they are written.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) sql_type: &'static str,
    pub(crate) values: &'static [&'static str],
}

/// Columns that keys are made of, and others.
pub(crate) const COLUMNS: [Column; 12] = [
    Column {
        name: "id",
        sql_type: "int",
        values: &["1", "2", "-3", "2147483647", "0"],
    },
    Column {
        name: "\"Big One\"",
        sql_type: "bigint",
        values: &["1", "9223372036854775807", "-5", "77"],
    },
    Column {
        name: "small",
        sql_type: "smallint",
        values: &["1", "32767", "-32768"],
    },
    Column {
        name: "name",
        sql_type: "text",
        values: &["'a'", "'it''s'", "''", "'A'", "'2020-02-29'", "'5'"],
    },
    Column {
        name: "code",
        sql_type: "varchar(20)",
        values: &["'x'", "'x '", "'y'", "'null'"],
    },
    Column {
        name: "yes",
        sql_type: "boolean",
        values: &["true", "false"],
    },
    Column {
        name: "u",
        sql_type: "uuid",
        values: &[
            "'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
            "'00000000-0000-0000-0000-000000000000'",
        ],
    },
    Column {
        name: "d",
        sql_type: "date",
        values: &["'2020-02-29'", "'1969-12-31'", "'0044-03-15'"],
    },
    Column {
        name: "price",
        sql_type: "numeric(10, 2)",
        values: &["1", "1.5", "99999999.99", "-7"],
    },
    Column {
        name: "f",
        sql_type: "double precision",
        values: &["1", "0.5", "1e300", "-0.0"],
    },
    Column {
        name: "at",
        sql_type: "timestamp",
        values: &["'2020-01-01 12:00:00'", "'1970-01-01'"],
    },
    Column {
        name: "doc",
        sql_type: "jsonb",
        values: &["'{\"a\": 1}'", "'[1, 2]'"],
    },
];

/// Values that may be of no column's type, or beyond it.
pub(crate) const OTHERS: [&str; 16] = [
    "null",
    "2147483648",
    "-9223372036854775808",
    "9223372036854775808",
    "1.0",
    "1.5",
    "1e0",
    "'1'",
    "' 1'",
    "'abc'",
    "true",
    "'t'",
    "'2020-2-29'",
    "'2021-02-29'",
    "date '2020-02-29'",
    "'A0EEBC999C0B4EF8BB6D6BB9BD380A11'",
];
