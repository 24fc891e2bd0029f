//! The columns of the table that is [written to](crate::written), of all types, and values for them.

/// A column: its name, its type, and values as texts, of which the first four are always taken.
pub(crate) struct Column {
    pub name: &'static str,
    pub declared: &'static str,
    pub values: &'static [&'static str],
}

const fn column(
    name: &'static str,
    declared: &'static str,
    values: &'static [&'static str],
) -> Column {
    Column {
        name,
        declared,
        values,
    }
}

/// Those of the table behind `id`.
pub(crate) const COLUMNS: [Column; 26] = [
    column(
        "code",
        "varchar(8) unique",
        &["a", "b", "it's", "", "é", "abcdefghij", "abcdefgh  "],
    ),
    column(
        "n",
        "bigint check (n < 1000000)",
        &[
            "1",
            "-5",
            "999999",
            "0",
            "1000000",
            " 7",
            "x",
            "9223372036854775808",
            "1.5",
            "007",
        ],
    ),
    column(
        "m",
        "smallint",
        &["1", "-5", "32767", "0", "32768", "1.5", "true"],
    ),
    column(
        "f",
        "double precision",
        &[
            "0.1", "-0", "1e300", "3", "NaN", "Infinity", "1e400", "1e-400", " 2 ", "x",
        ],
    ),
    column(
        "r",
        "real",
        &[
            "0.1",
            "16777217",
            "0.30000001",
            "-2",
            "1e300",
            "1e-60",
            "NaN",
            "123456.789",
            "x",
        ],
    ),
    column(
        "p",
        "numeric(8, 2)",
        &[
            "1.25", "-3", "100000", "0.5", "1.255", "12345678", "NaN", "1e3", " 2", "x",
        ],
    ),
    column(
        "w",
        "numeric(45, 5)",
        &[
            "1.5",
            "-123456789012345678901234567890.12345",
            "0",
            "2",
            "0.123456",
            "NaN",
            "Infinity",
            "1e5",
            "x",
        ],
    ),
    column(
        "nu",
        "numeric",
        &[
            "1.5",
            "-3",
            "12345678901234567890",
            "0.1234567890",
            "0.12345678901",
            "1e5",
            "x",
        ],
    ),
    column(
        "d",
        "date",
        &[
            "2020-02-29",
            "1999-12-31",
            "infinity",
            "2020-01-05",
            "05/06/2020",
            "2021-02-29",
            "Jan 3 2020",
            "x",
        ],
    ),
    column(
        "ti",
        "time",
        &[
            "10:00",
            "23:59:59.999999",
            "00:00",
            "1:02 PM",
            "24:00:01",
            "10:00:00.1234567",
            "x",
        ],
    ),
    column(
        "tt",
        "time with time zone",
        &[
            "10:00+02",
            "23:59:59-11:30",
            "00:00Z",
            "10:00+00",
            "10:00",
            "x",
        ],
    ),
    column(
        "ts",
        "timestamp unique",
        &[
            "2020-01-02 03:04:05",
            "2020-01-02",
            "-infinity",
            "2020-01-02 03:04:05.123456",
            "2020-01-02 03:04:05.1234567",
            "02/03/2020 10:00",
            "2020-13-01",
            "2020-01-02 03:04+05",
            "epoch",
        ],
    ),
    column(
        "tz",
        "timestamptz",
        &[
            "2020-01-02 03:04:05+00",
            "2020-07-02 03:04",
            "infinity",
            "2020-01-02 03:04:05.5 Europe/Berlin",
            "2020-03-29 02:30 Europe/Berlin",
            "2020-13-01",
            "x",
        ],
    ),
    column(
        "ms",
        "timestamp(3)",
        &[
            "2020-01-02 03:04:05",
            "2020-01-02 03:04:05.1235",
            "2020-01-02 03:04:05.9999",
            "2020-01-02",
            "x",
        ],
    ),
    column(
        "i",
        "interval",
        &[
            "1 day",
            "1 mon -3 days 04:05:06.7",
            "PT5H",
            "-00:00:01",
            "1.5 years",
            "x",
        ],
    ),
    column(
        "b",
        "boolean",
        &["t", "f", "true", "false", "yes", "on", "T", " t", "x"],
    ),
    column(
        "u",
        "uuid unique",
        &[
            "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
            "A0EEBC999C0B4EF8BB6D6BB9BD380A12",
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a13}",
            "00000000-0000-0000-0000-000000000000",
            "a0ee",
        ],
    ),
    column(
        "j",
        "json",
        &[
            "{\"b\": 1,  \"a\": [1, null]}",
            "1",
            "\"now\"",
            "null",
            "{",
            "",
        ],
    ),
    column(
        "jb",
        "jsonb",
        &[
            "{\"b\": 1,  \"a\": [1, null], \"b\": 2}",
            "1.50",
            "\"x\"",
            "[]",
            "{",
            "nan",
        ],
    ),
    column(
        "y",
        "bytea",
        &[
            "\\x00ff",
            "\\x",
            "\\xABCD",
            "\\xdeadbeef",
            "abc",
            "a\\\\b\\001",
            "\\x0",
            "\\xzz",
        ],
    ),
    column(
        "ai",
        "integer[]",
        &[
            "{1,2,NULL}",
            "{}",
            "{-5}",
            "{{1,2},{3,4}}",
            "{1,x}",
            "{99999999999}",
            "1",
        ],
    ),
    column(
        "at",
        "text[]",
        &[
            "{a,b}",
            "{NULL,\"NULL\",\"it's\"}",
            "{}",
            "{now}",
            "{a",
            "a",
        ],
    ),
    column(
        "au",
        "uuid[]",
        &[
            "{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}",
            "{}",
            "{NULL}",
            "{A0EEBC999C0B4EF8BB6D6BB9BD380A12,NULL}",
            "{x}",
        ],
    ),
    column(
        "az",
        "timestamptz[]",
        &[
            "{2020-01-02 03:04+01}",
            "{}",
            "{NULL}",
            "{\"2020-01-02 03:04\",infinity}",
            "{x}",
        ],
    ),
    column("mo", "mood", &["calm", "wild", "calm", "wild", "Calm", ""]),
    column(
        "up",
        "integer references parent",
        &["1", "2", "3", "1", "9"],
    ),
];

/// A column that no statement names: each has the same in all rows.
pub(crate) const LEFT_OUT: &str = "g bigint generated always as (n + 1) stored, at_first timestamptz default '2020-01-01 00:00', tags text[] default '{x}'::text[], nothing jsonb not null default '{}', made integer default 7";
