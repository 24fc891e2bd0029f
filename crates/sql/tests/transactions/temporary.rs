//! Temporary tables: whose they are, and when they go.

use std::time::{Duration, Instant};

use crate::Sessions;

fn sessions() -> Sessions {
    Sessions::new(Duration::from_secs(10))
}

/// How many temporary tables there are in the store, of whomever.
fn left(sessions: &Sessions) -> usize {
    let tables = table::Catalog::new()
        .tables(&sessions.instance.store().snapshot())
        .unwrap();
    tables
        .names()
        .iter()
        .filter(|name| name.contains('\u{1}'))
        .count()
}

fn message(sessions: &Sessions, session: &sql::Session, text: &str) -> String {
    sessions.try_run(session, text).unwrap_err().to_string()
}

#[test]
fn each_session_has_its_own() {
    let sessions = sessions();
    let (first, second) = (sessions.session(), sessions.session());
    sessions.run(
        &first,
        "create table t (a bigint); insert into t values (1)",
    );
    sessions.run(
        &first,
        "create temporary table t (a bigint primary key, b int default 5 check (b > 0))",
    );
    sessions.run(&second, "create local temp table t as select 1000 as a");
    sessions.run(&first, "insert into t values (10, default), (20, 7)");
    assert_eq!(sessions.number(&first, "select sum(t.a) from t"), 30);
    assert_eq!(sessions.number(&first, "select a from t where a = 20"), 20);
    assert_eq!(sessions.number(&second, "select sum(a) from t"), 1000);
    assert_eq!(
        sessions.number(&sessions.session(), "select sum(a) from t"),
        1
    );
    assert_eq!(sessions.number(&first, "select a from public.t"), 1);
    sessions.run(
        &first,
        "update t set a = t.a + 1 where t.b = 7; delete from t where a = 10",
    );
    assert_eq!(sessions.number(&first, "select sum(a) from t"), 21);
    sessions.run(
        &first,
        "alter table t add column c int default 3, drop column b",
    );
    assert_eq!(sessions.number(&first, "select c + a from t"), 24);
    sessions.run(
        &first,
        "truncate t; insert into t (a) select 4 from t right join (values (1)) as v on true",
    );
    assert_eq!(
        sessions.number(&first, "with t as (select 99 as a) select a from t"),
        99
    );
    assert_eq!(
        sessions.number(
            &first,
            "select count(*) from information_schema.tables where table_name like '%t'"
        ),
        2
    );
    sessions.run(&first, "drop table t");
    assert_eq!(sessions.number(&first, "select sum(a) from t"), 1);
    sessions.run(&first, "drop table t");
    assert!(sessions.try_run(&first, "select * from t").is_err());
    assert_eq!(sessions.number(&second, "select sum(a) from t"), 1000);
}

#[test]
fn messages_call_them_as_the_session_does() {
    let sessions = sessions();
    let session = sessions.session();
    sessions.run(
        &session,
        "create temp table t (a int primary key, b int check (b > 0))",
    );
    sessions.run(&session, "insert into t values (1, 1)");
    for (text, wanted) in [
        (
            "insert into t values (1, 1)",
            "duplicate key value violates unique constraint \"t_pkey\"",
        ),
        (
            "insert into t values (2, 0)",
            "new row for relation \"t\" violates check constraint \"t_b_check\"",
        ),
        ("create temp table t (a int)", "table \"t\" exists already"),
        ("select c from t", "no column \"c\""),
        (
            "create table u (a int references t)",
            "constraints on permanent tables may reference only permanent tables",
        ),
        (
            "create view v as select * from t",
            "relation \"t\" does not exist",
        ),
        (
            "create table u (a int) on commit drop",
            "ON COMMIT can only be used on temporary tables",
        ),
    ] {
        let found = message(&sessions, &session, text);
        assert!(
            found.contains(wanted) && !found.contains("pg_temp"),
            "{text}: {found}"
        );
    }
}

#[test]
fn they_are_undone_and_go_with_the_session() {
    let sessions = sessions();
    let session = sessions.session();
    sessions.run(
        &session,
        "begin; create temp table t (a bigint); insert into t values (1)",
    );
    assert_eq!(sessions.number(&session, "select sum(a) from t"), 1);
    sessions.run(&session, "rollback");
    assert!(sessions.try_run(&session, "select * from t").is_err());
    sessions.run(
        &session,
        "create temp table t (id serial, a bigint); insert into t (a) values (1)",
    );
    assert_eq!(sessions.number(&session, "select max(a) from t"), 1);
    assert_eq!(left(&sessions), 1);
    drop(session);
    let begun = Instant::now();
    while left(&sessions) > 0 {
        assert!(begun.elapsed() < Duration::from_secs(20), "they stay");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn sequences_go_with_the_session_too() {
    let sessions = sessions();
    let own = |sessions: &Sessions| {
        let snapshot = sessions.instance.store().snapshot();
        let tables = table::Catalog::new().tables(&snapshot).unwrap();
        let names = tables.sequences();
        names.iter().filter(|n| n.contains('\u{1}')).count()
    };
    let first = sessions.session();
    sessions.run(
        &first,
        "create sequence s start 10; create temp sequence s; create temp table t (a serial)",
    );
    assert_eq!(own(&sessions), 2);
    assert_eq!(sessions.number(&first, "select nextval('s')"), 1);
    let second = sessions.session();
    assert_eq!(sessions.number(&second, "select nextval('s')"), 10);
    drop(first);
    let waiting = Instant::now();
    while own(&sessions) > 0 {
        assert!(waiting.elapsed().as_secs() < 5, "its sequences stay");
        std::thread::sleep(Duration::from_millis(5));
    }
    sessions.run(&second, "create temp sequence s");
    assert_eq!(sessions.number(&second, "select nextval('s')"), 1);
}
