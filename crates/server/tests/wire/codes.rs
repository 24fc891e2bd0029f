//! The codes of errors, which are PostgreSQL's: what programs look at.
//!
//! Not among them is what differs: a column dropped that a view needs and that is not there is told as the view's; a table
//! that is not in `from` as its column's (42703); sums and products of integers become wider before they overflow; dates that
//! there are not are as bad as texts that are none (22007); a union takes numbers and dates as texts; lengths of varchar do not
//! bind; `ln(0)` is minus infinity.

use crate::client::Served;

/// What there is.
const SETUP: &[&str] = &[
    "create table t (a int primary key, b varchar(3), c int not null default 1, d decimal(4,2), e date, f boolean)",
    "insert into t (a, b) values (1, 'x'), (2, 'y')",
    "create table child (a int references t (a), n int check (n > 0), u int unique)",
    "insert into child values (1, 1, 1)",
    "create view v as select a from t",
    "create materialized view m as select a from t",
    "create sequence s maxvalue 2",
    // Names that look like the words of errors.
    "create table \"duplicate type\" (\"no function\" int, \"zero\" int constraint \"unique\" check (\"zero\" > 0), \"check\" int constraint \"foreign\" unique)",
    "create table ident (id int generated always as identity, g int generated always as (1 + 1) stored)",
];

/// Statements, and the codes that PostgreSQL has for what is wrong with them.
const CASES: &[(&str, &str)] = &[
    // 42: what cannot be meant.
    ("selec 1", "42601"),
    ("select 'x", "42601"),
    ("select 1 +", "42601"),
    ("insert into t (a, b) values (1)", "42601"),
    ("insert into t (a) values (1, 2)", "42601"),
    ("select * from nowhere", "42P01"),
    ("insert into nowhere values (1)", "42P01"),
    ("update nowhere set a = 1", "42P01"),
    ("delete from nowhere", "42P01"),
    ("drop table nowhere", "42P01"),
    ("drop view nowhere", "42P01"),
    ("alter table nowhere add column x int", "42P01"),
    ("truncate nowhere", "42P01"),
    ("select nothing from t", "42703"),
    ("select t.nothing from t", "42703"),
    ("update t set nothing = 1", "42703"),
    ("insert into t (nothing) values (1)", "42703"),
    ("select a from t, child", "42702"),
    ("select a from t limit a", "42P10"),
    ("select a from t offset t.a + 1", "42P10"),
    ("select a from t limit nothing", "42703"),
    ("select nothing(1)", "42883"),
    ("select nothing(a) from t", "42883"),
    ("select lower(1, 2, 3)", "42883"),
    ("select a + f from t", "42883"),
    ("select 1 where 'x'::date", "42804"),
    ("select a from t where a", "42804"),
    ("insert into t (a, e) values (7, true)", "42804"),
    (
        "select case when true then 1 else date '2026-01-01' end",
        "42804",
    ),
    ("select a from t union select a, b from t", "42601"),
    ("select a, count(*) from t", "42803"),
    ("select a from t where count(*) > 1", "42803"),
    ("select sum(count(*)) from t", "42803"),
    ("create table t (a int)", "42P07"),
    ("create view v as select 1", "42P07"),
    ("create sequence s", "42P07"),
    ("create table q (a int, a int)", "42701"),
    ("alter table t add column a int", "42701"),
    ("create table q (a nothing)", "42704"),
    ("select 1::nothing", "42704"),
    ("select * from t limit 'x'", "22P02"),
    ("select * from t order by 9", "42P10"),
    ("drop view t", "42809"),
    ("drop table v", "42809"),
    ("insert into v values (1)", "42809"),
    ("select nextval('t')", "42809"),
    ("select nextval('nowhere')", "42P01"),
    ("refresh materialized view nowhere", "42P01"),
    ("select currval('s')", "55000"),
    ("insert into ident (id) values (1)", "428C9"),
    ("update ident set g = 1", "428C9"),
    ("execute nothing", "26000"),
    // 22: values.
    ("select 1 / 0", "22012"),
    ("select 1 / (a - a) from t", "22012"),
    ("select 1.5 / 0", "22012"),
    ("select 5 % 0", "22012"),
    ("select 3000000000::int", "22003"),
    ("select 'x'::int", "22P02"),
    ("select b::int from t", "22P02"),
    ("select 'x'::boolean", "22P02"),
    ("select 'x'::decimal(4,2)", "22P02"),
    ("select 'x'::date", "22007"),
    ("select 'x'::timestamp", "22007"),
    ("insert into t (a, d) values (3, 123.45)", "22003"),
    ("select sqrt(-1)", "2201F"),
    ("select substring('abc' from 1 for -1)", "22011"),
    // 23: constraints.
    ("insert into t (a) values (1)", "23505"),
    (
        "insert into t (a) select 5 from generate_series(1, 2)",
        "23505",
    ),
    ("update t set a = 1", "23505"),
    ("insert into child values (1, 1, 1)", "23505"),
    ("insert into child values (9, 1, 2)", "23503"),
    ("delete from t where a = 1", "23503"),
    ("insert into child values (1, 0, 2)", "23514"),
    ("insert into t (a, c) values (3, null)", "23502"),
    ("insert into t (a) values (null)", "23502"),
    ("update t set c = null", "23502"),
    (
        "insert into \"duplicate type\" (\"zero\") values (0)",
        "23514",
    ),
    (
        "insert into \"duplicate type\" (\"check\") select 1 from generate_series(1, 2)",
        "23505",
    ),
    ("drop table t", "2BP01"),
    // 21, 25, 2F, 34, 0A.
    ("select (select a from t)", "21000"),
    (
        "insert into t (a) values (1), (1) on conflict (a) do update set b = 'z'",
        "21000",
    ),
    ("savepoint x", "25P01"),
    ("release savepoint x", "25P01"),
    ("set no_such = 1", "42704"),
    ("set timezone = 'Europe/Nowhere'", "22023"),
    ("show no_such", "42704"),
    ("select \"no functio\" from \"duplicate type\"", "42703"),
    ("select \"zero\" / 0 from (select 1 as \"zero\") q", "22012"),
    (
        "create trigger x after insert on t execute function f()",
        "0A000",
    ),
    ("grant select on t to nobody", "42704"),
    ("select * from 'data.csv'", "42501"),
];

#[test]
fn errors_have_postgresqls_codes() {
    let served = Served::new();
    let mut client = served.client();
    for statement in SETUP {
        let told = client.ask(statement);
        assert!(
            told.iter().all(|told| told.kind != 'E'),
            "{statement}: {told:?}"
        );
    }
    let mut wrong = Vec::new();
    for (statement, code) in CASES {
        let told = client.ask(statement);
        let error = told.iter().find(|told| told.kind == 'E');
        let found = error.map_or_else(|| "no error".into(), |error| error.part(b'C'));
        if found != *code {
            let message = error.map_or_else(String::new, |error| error.part(b'M'));
            wrong.push(format!(
                "{statement}: {found} in the place of {code}: {message}"
            ));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {}\n{}",
        wrong.len(),
        CASES.len(),
        wrong.join("\n")
    );
}

#[test]
fn transactions_have_postgresqls_codes() {
    let served = Served::new();
    let (mut one, mut two) = (served.client(), served.client());
    let code = |client: &mut crate::client::Client, text: &str| {
        let told = client.ask(text);
        let error = told.iter().find(|told| told.kind == 'E');
        error.map_or_else(String::new, |error| error.part(b'C'))
    };
    code(&mut one, "create table t (a int primary key)");
    code(&mut one, "insert into t values (1), (2)");
    code(&mut one, "begin");
    assert_eq!(code(&mut one, "select 1 / 0"), "22012");
    assert_eq!(code(&mut one, "select 1"), "25P02");
    code(&mut one, "rollback");
    code(&mut one, "begin read only");
    assert_eq!(code(&mut one, "delete from t"), "25006");
    code(&mut one, "rollback");
    code(&mut one, "begin");
    assert_eq!(code(&mut one, "rollback to savepoint nothing"), "3B001");
    code(&mut one, "rollback");
    code(&mut one, "begin isolation level repeatable read");
    code(&mut one, "select * from t");
    code(&mut two, "update t set a = 7 where a = 1");
    assert_eq!(code(&mut one, "update t set a = 8 where a = 1"), "40001");
    code(&mut one, "rollback");
    code(&mut one, "set statement_timeout = 100");
    let long = "select count(*) from generate_series(1, 3000000) a(x), generate_series(1, 100000) b(y) where x * y % 7 = 3";
    assert_eq!(code(&mut one, long), "57014");
}

/// What constraints were violated is told in fields of their own, as PostgreSQL 15 tells it: schema, table, column, type and
/// constraint.
#[test]
fn errors_name_what_they_are_about() {
    let served = Served::new();
    let mut client = served.client();
    for text in [
        "create schema c30",
        "create domain pos as int check (value > 0)",
        "create domain nn as int not null",
        "create table c30.t (a int primary key, b int not null, n int check (n > 0), u int unique)",
        "create table child (x int constraint fk references c30.t (a))",
        "create table dt (p pos, q nn)",
        "insert into c30.t values (1, 1, 1, 1)",
        "insert into child values (1)",
    ] {
        assert_eq!(client.code(text), "", "{text}");
    }
    for (text, wanted) in [
        (
            "insert into c30.t values (1, 1, 1, 2)",
            ["c30", "t", "", "", "t_pkey"],
        ),
        (
            "insert into c30.t values (2, 1, 1, 1)",
            ["c30", "t", "", "", "t_u_key"],
        ),
        (
            "insert into c30.t values (2, null, 1, 3)",
            ["c30", "t", "b", "", ""],
        ),
        (
            "insert into c30.t values (2, 1, 0, 3)",
            ["c30", "t", "", "", "t_n_check"],
        ),
        (
            "insert into child values (9)",
            ["public", "child", "", "", "fk"],
        ),
        ("delete from c30.t", ["public", "child", "", "", "fk"]),
        (
            "insert into dt values (0, 1)",
            ["public", "", "", "pos", "pos_check"],
        ),
        (
            "insert into dt values (1, null)",
            ["public", "", "", "nn", ""],
        ),
        ("select * from nowhere", [""; 5]),
        ("select 1 / 0", [""; 5]),
    ] {
        let told = client.ask(text);
        let error = told.iter().find(|told| told.kind == 'E');
        let error = error.unwrap_or_else(|| panic!("{text}: {told:?}"));
        let found = [b's', b't', b'c', b'd', b'n'].map(|key| error.part(key));
        assert_eq!(found, wanted, "{text}");
    }
}
