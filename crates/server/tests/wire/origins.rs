//! Which columns of a result are columns of a table: clients let people edit such rows.

use crate::client::{Client, Served, Told, describe, parse, sync};

/// What the protocol says of each column that is described, behind its name.
fn told(all: &[Told]) -> Vec<[u8; 18]> {
    let told = all.iter().find(|told| told.kind == 'T');
    let told = told.unwrap_or_else(|| panic!("{all:?}"));
    let count = u16::from_be_bytes([told.body[0], told.body[1]]);
    let mut rest = &told.body[2..];
    let mut column = || {
        let name = rest.iter().position(|byte| *byte == 0).unwrap() + 1;
        let (own, then) = rest[name..].split_at(18);
        rest = then;
        own.try_into().unwrap()
    };
    (0..count).map(|_| column()).collect()
}

/// The table of each column that is described, and its place there.
fn described(all: &[Told]) -> Vec<(u32, i16)> {
    let of = |own: [u8; 18]| {
        let table = u32::from_be_bytes(own[..4].try_into().unwrap());
        (table, i16::from_be_bytes(own[4..6].try_into().unwrap()))
    };
    told(all).into_iter().map(of).collect()
}

/// The number of the type of each column, and what is told beside it.
fn types(all: &[Told]) -> Vec<(u32, i32)> {
    let of = |own: [u8; 18]| {
        let number = u32::from_be_bytes(own[6..10].try_into().unwrap());
        (number, i32::from_be_bytes(own[12..16].try_into().unwrap()))
    };
    told(all).into_iter().map(of).collect()
}

/// What the catalogs say of a column.
fn catalogued(client: &mut Client, table: &str, column: &str) -> (u32, i16) {
    let (schema, name) = table.split_once('.').unwrap_or(("public", table));
    let rows = client.rows(&format!(
        "select c.oid, a.attnum from pg_class c join pg_attribute a on a.attrelid = c.oid join pg_namespace n on n.oid = c.relnamespace where n.nspname = '{schema}' and c.relname = '{name}' and a.attname = '{column}'"
    ));
    let number = |at: usize| rows[0][at].clone().unwrap();
    (number(0).parse().unwrap(), number(1).parse().unwrap())
}

const QUERIES: [(&str, &[&str]); 17] = [
    ("select a, b from t", &["t.a", "t.b"]),
    ("select * from t", &["t.a", "t.b", "t.c"]),
    ("select c, a from t where a = 1", &["t.c", "t.a"]),
    ("select * from t where a = 7", &["t.a", "t.b", "t.c"]),
    (
        "select b as x, a + 1, 'c', a::text from t as x where a > 0 order by b limit 1",
        &["t.b", "", "", ""],
    ),
    ("select s.x from (select b as x from t) s", &["t.b"]),
    (
        "with q as (select c, a from t) select a, c from q",
        &["t.a", "t.c"],
    ),
    (
        "select u.b, t.b, t.a from t join u on t.a = u.a",
        &["u.b", "t.b", "t.a"],
    ),
    (
        "select t.b, u.* from t left join u on t.a = u.a",
        &["t.b", "u.b", "u.a"],
    ),
    (
        "select b, count(*), max(a) from t group by b",
        &["t.b", "", ""],
    ),
    (
        "select distinct a, row_number() over (order by a) from t",
        &["t.a", ""],
    ),
    ("select a from t union all select a from u", &[""]),
    ("select a, b from s.t", &["s.t.a", "s.t.b"]),
    ("select a from v", &[""]),
    ("select a, (select max(a) from u) from t", &["t.a", ""]),
    ("select a from temp_t", &[""]),
    ("select relname from pg_class", &[""]),
];

#[test]
fn columns_of_tables_are_told_by_their_numbers() {
    let served = Served::new();
    let mut client = served.client();
    for text in [
        "create table t (a int primary key, b varchar, c date)",
        "create table u (b varchar, a int)",
        "create schema s",
        "create table s.t (b int, a int)",
        "create view v as select a from t",
        "create temporary table temp_t (a int)",
        "insert into t values (1, 'x', '2020-01-01'), (2, 'y', null)",
        "insert into u values ('x', 1)",
    ] {
        assert_eq!(client.code(text), "", "{text}");
    }
    for (text, columns) in QUERIES {
        let wanted: Vec<(u32, i16)> = columns
            .iter()
            .map(|column| match column.rsplit_once('.') {
                Some((table, column)) => catalogued(&mut client, table, column),
                None => (0, 0),
            })
            .collect();
        assert_eq!(described(&client.ask(text)), wanted, "{text}");
        client.send(&[parse("", text, &[]), describe(b'S', ""), sync()].concat());
        assert_eq!(described(&client.answers()), wanted, "{text}");
    }
    // The row of a key, whose statement is not planned.
    let text = "select c, a from t where a = $1";
    let wanted = ["c", "a"].map(|column| catalogued(&mut client, "t", column));
    client.send(&[parse("", text, &[]), describe(b'S', ""), sync()].concat());
    assert_eq!(described(&client.answers()), wanted);
}

/// Lengths of texts and digits of seconds are told as PostgreSQL does, of columns of views and of casts, too.
#[test]
fn types_are_told_with_their_modifiers() {
    let served = Served::new();
    let mut client = served.client();
    for text in [
        "create table m (id int primary key, a varchar(20), d time(2), e timestamp(3), i interval(1), n numeric(9, 2), t text)",
        "create view seen as select a, d, e, t from m",
    ] {
        assert_eq!(client.code(text), "", "{text}");
    }
    let interval = (0x7fff << 16) | 1;
    for (text, wanted) in [
        (
            "select a, d, e, i, n, t from m",
            vec![
                (1043, 24),
                (1083, 2),
                (1114, 3),
                (1186, interval),
                (1700, 589_830),
                (25, -1),
            ],
        ),
        (
            "select a, d, e, t from seen",
            vec![(1043, 24), (1083, 2), (1114, 3), (25, -1)],
        ),
        (
            "select a::varchar(9), upper(a), d::time(1), left(a, 2) from m",
            vec![(1043, 13), (25, -1), (1083, 1), (25, -1)],
        ),
    ] {
        assert_eq!(types(&client.ask(text)), wanted, "{text}");
        client.send(&[parse("", text, &[]), describe(b'S', ""), sync()].concat());
        assert_eq!(types(&client.answers()), wanted, "{text}");
    }
    // The row of a key, whose statement is not planned.
    let text = "select a, d from m where id = $1";
    client.send(&[parse("", text, &[]), describe(b'S', ""), sync()].concat());
    assert_eq!(types(&client.answers()), [(1043, 24), (1083, 2)]);
}
