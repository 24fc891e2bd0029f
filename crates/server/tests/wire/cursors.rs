//! Cursors: `declare`, `fetch`, `move`, `close`.

use std::time::Duration;

use crate::client::{Client, Served, bind, describe, execute, kinds, parse, sync};

/// The first values of rows.
fn firsts(client: &mut Client, text: &str) -> Vec<String> {
    let rows = client.rows(text).into_iter();
    rows.map(|row| row[0].clone().unwrap()).collect()
}

fn filled() -> (Served, Client) {
    let served = Served::new();
    let mut client = served.client();
    client.ask(
        "create table t as select x as a, 'row ' || x as b from generate_series(1, 100000) s(x)",
    );
    (served, client)
}

#[test]
fn rows_are_fetched_in_pieces() {
    let (_served, mut client) = filled();
    client.ask("begin");
    let declare = "declare c no scroll cursor for select a, b from t order by a";
    assert_eq!(client.tag(declare), "DECLARE CURSOR");
    assert_eq!(firsts(&mut client, "fetch c"), ["1"]);
    assert_eq!(firsts(&mut client, "fetch forward 2 from c"), ["2", "3"]);
    assert_eq!(client.tag("fetch 2 in c"), "FETCH 2");
    assert_eq!(client.tag("move 90000 in c"), "MOVE 90000");
    assert_eq!(firsts(&mut client, "fetch relative 5 from c"), ["90010"]);
    assert_eq!(
        firsts(&mut client, "fetch absolute 90012 from c"),
        ["90012"]
    );
    assert_eq!(client.tag("move forward 0 from c"), "MOVE 1");
    assert_eq!(kinds(&client.ask("fetch next from c")), "TDCZ");
    assert_eq!(client.tag("fetch all from c"), "FETCH 9987");
    assert_eq!(client.tag("fetch all from c"), "FETCH 0");
    assert_eq!(kinds(&client.ask("fetch c")), "TCZ");
    assert_eq!(client.tag("move c"), "MOVE 0");
    assert_eq!(client.tag("close c"), "CLOSE CURSOR");
    assert_eq!(client.code("fetch c"), "34000");
    assert_eq!(client.code("fetch c"), "25P02");
    assert_eq!(client.tag("rollback"), "ROLLBACK");
}

#[test]
fn a_cursor_is_what_its_transaction_saw() {
    let (served, mut client) = filled();
    let mut other = served.client();
    client.ask("begin");
    client.ask("declare c cursor for select a from t order by a");
    other.ask("delete from t where a < 50000");
    assert_eq!(firsts(&mut client, "fetch 2 c"), ["1", "2"]);
    assert_eq!(client.tag("fetch all c"), "FETCH 99998");
    client.ask("commit");
    client.ask("begin");
    client.ask("insert into t values (0, 'own')");
    client.ask("declare c cursor for select a from t order by a");
    client.ask("delete from t; insert into t values (-1, 'after')");
    assert_eq!(firsts(&mut client, "fetch 2 c"), ["0", "50000"]);
    assert_eq!(client.tag("fetch all c"), "FETCH 50000");
    assert_eq!(client.value("select count(*) from t"), "1");
    client.ask("rollback");
}

#[test]
fn cursors_end_with_their_transaction_and_savepoint() {
    let (_served, mut client) = filled();
    assert_eq!(client.code("declare c cursor for select 1"), "25P01");
    let names = |client: &mut Client| firsts(client, "select name from pg_cursors order by name");
    client.ask("begin");
    client.ask("declare a cursor for select a from t order by a");
    client.ask("savepoint s");
    client.ask("declare b cursor for select a from t");
    client.ask("fetch 3 a");
    client.ask("rollback to s");
    assert_eq!(names(&mut client), ["a"]);
    client.ask("declare b cursor for select a from t");
    client.ask("savepoint s2; release s");
    assert_eq!(client.code("declare b cursor for select 1"), "42P03");
    client.ask("rollback to s");
    client.ask("rollback");
    assert_eq!(names(&mut client), Vec::<String>::new());
    client.ask("begin; declare a cursor for select a from t");
    client.ask("commit");
    assert_eq!(client.code("fetch a"), "34000");
    // Statements of one text are one transaction.
    let all = client.ask("declare d cursor for select 7; fetch d");
    assert_eq!(kinds(&all), "CTDCZ");
    assert_eq!(client.code("fetch d"), "34000");
}

#[test]
fn what_is_held_outlives_its_transaction() {
    let (served, mut client) = filled();
    let mut other = served.client();
    client.ask("begin");
    client.ask("declare h cursor with hold for select a from t order by a");
    assert_eq!(firsts(&mut client, "fetch h"), ["1"]);
    client.ask("commit");
    other.ask("drop table t");
    assert_eq!(firsts(&mut client, "fetch 2 h"), ["2", "3"]);
    client.ask("begin; savepoint s; rollback to s; rollback");
    assert_eq!(client.code("select nothing"), "42703");
    assert_eq!(client.tag("fetch all h"), "FETCH 99997");
    let shown = "select name, is_holdable, is_binary, is_scrollable, statement like 'declare h%' from pg_cursors";
    let yes = |text: &str| Some(text.to_string());
    assert_eq!(
        client.rows(shown),
        [[yes("h"), yes("t"), yes("f"), yes("t"), yes("t")]]
    );
    assert_eq!(client.tag("close h"), "CLOSE CURSOR");
    // One that is undone is not held.
    client.ask("begin; declare h cursor with hold for select 1");
    client.ask("rollback");
    assert_eq!(client.code("fetch h"), "34000");
    assert_eq!(
        client.tag("declare h cursor with hold for values (5)"),
        "DECLARE CURSOR"
    );
    assert_eq!(client.tag("close all"), "CLOSE CURSOR ALL");
    assert_eq!(client.code("close h"), "34000");
    client.ask("declare h cursor with hold for values (5)");
    client.ask("discard all");
    assert_eq!(client.code("fetch h"), "34000");
}

#[test]
fn what_cannot_be_is_refused() {
    let (_served, mut client) = filled();
    let cases = [
        ("fetch prior c", "55000"),
        ("fetch last c", "55000"),
        ("move backward 2 c", "55000"),
        ("move backward all c", "55000"),
        ("fetch absolute 2 c", "55000"),
        ("move absolute 0 c", "55000"),
        ("fetch 0 c", "55000"),
        ("fetch nothing from c", "42601"),
        ("declare d scroll no scroll cursor for select 1", "42P11"),
        ("declare c cursor for select 1", "42P03"),
        ("declare d cursor for insert into t values (1)", "42601"),
        (
            "declare d cursor for with x as (insert into t values (1) returning a) select * from x",
            "42601",
        ),
        ("declare d cursor for select nothing from t", "42703"),
        ("declare d cursor for", "42601"),
        ("close d", "34000"),
    ];
    for (text, code) in cases {
        client.ask("begin; declare c no scroll cursor for select a from t order by a; move 3 c");
        assert_eq!(client.code(text), code, "{text}");
        assert_eq!(client.code("close c"), "25P02", "{text}");
        client.ask("rollback");
    }
    assert_eq!(client.value("select count(*) from t"), "100000");
    let text = "begin; declare d cursor for select nothing from t";
    let all = client.ask(text);
    let error = all.iter().find(|told| told.kind == 'E').unwrap();
    let at = text.find("nothing").unwrap() + 1;
    assert_eq!(error.part(b'P'), at.to_string());
    client.ask("rollback");
}

/// The positions before the first row and behind the last one are PostgreSQL's.
#[test]
fn a_cursor_goes_back() {
    let served = Served::new();
    let mut client = served.client();
    client.ask("create table n as select x as a from generate_series(1, 5) s(x)");
    for scroll in ["", "scroll "] {
        client.ask(&format!(
            "begin; declare c {scroll}cursor for select a from n order by a"
        ));
        for (text, wanted) in [
            ("fetch prior c", &[][..]),
            ("fetch 2 c", &["1", "2"]),
            ("fetch 0 c", &["2"]),
            ("fetch backward 1 c", &["1"]),
            ("fetch backward 1 c", &[]),
            ("fetch next c", &["1"]),
            ("fetch last c", &["5"]),
            ("fetch next c", &[]),
            ("fetch next c", &[]),
            ("fetch prior c", &["5"]),
            ("fetch backward 2 c", &["4", "3"]),
            ("fetch relative -1 c", &["2"]),
            ("fetch relative 2 c", &["4"]),
            ("fetch absolute 2 c", &["2"]),
            ("fetch absolute 9 c", &[]),
            ("fetch backward all c", &["5", "4", "3", "2", "1"]),
            ("fetch first c", &["1"]),
            ("fetch absolute -2 c", &["4"]),
            ("fetch absolute 0 c", &[]),
            ("fetch -1 c", &[]),
            ("fetch all c", &["1", "2", "3", "4", "5"]),
            ("fetch absolute -7 c", &[]),
            ("fetch forward -1 c", &[]),
            ("fetch backward -2 c", &["1", "2"]),
        ] {
            assert_eq!(firsts(&mut client, text), wanted, "{scroll}{text}");
        }
        for (text, wanted) in [
            ("move 0 c", "MOVE 1"),
            ("move backward all c", "MOVE 1"),
            ("move 0 c", "MOVE 0"),
            ("move all c", "MOVE 5"),
            ("move backward all c", "MOVE 5"),
            ("move last c", "MOVE 1"),
            ("move absolute 3 c", "MOVE 1"),
            ("move relative -5 c", "MOVE 0"),
            ("fetch backward all c", "FETCH 0"),
        ] {
            assert_eq!(client.tag(text), wanted, "{scroll}{text}");
        }
        client.ask("rollback");
    }
    client.ask("begin; declare e scroll cursor for select 1 where false");
    for text in [
        "fetch all e",
        "fetch prior e",
        "fetch next e",
        "fetch last e",
    ] {
        assert_eq!(client.tag(text), "FETCH 0", "{text}");
    }
    client.ask("rollback");
}

#[test]
fn what_is_kept_to_go_back_is_limited() {
    let (_served, mut client) = filled();
    client.ask("begin; declare c scroll cursor for select a, b from t order by a; move all c");
    assert_eq!(firsts(&mut client, "fetch first c"), ["1"]);
    assert_eq!(firsts(&mut client, "fetch absolute -50000 c"), ["50001"]);
    client.ask("rollback");
    // Of one of which nothing is said, the last rows.
    let wide = "select x as a, repeat('x', 100) as b from generate_series(1, 300000) s(x)";
    client.ask(&format!(
        "begin; declare c cursor for {wide}; move 299999 c"
    ));
    assert_eq!(firsts(&mut client, "fetch last c"), ["300000"]);
    assert_eq!(firsts(&mut client, "fetch prior c"), ["299999"]);
    assert_eq!(client.code("fetch first c"), "55000");
    client.ask("rollback");
    // In pieces, by messages of the protocol.
    client.ask("begin; declare c scroll cursor for select a from t order by a; move all c");
    client.send(
        &[
            parse("f", "fetch backward 3 from c", &[]),
            bind("p", "f", false, &[], false),
            describe(b'P', "p"),
            execute("p", 2),
            execute("p", 2),
            sync(),
        ]
        .concat(),
    );
    let all = client.answers();
    assert_eq!(kinds(&all), "12TDDsDCZ", "{all:?}");
    assert_eq!(all[3].texts(), [Some("100000".to_string())]);
    assert_eq!(firsts(&mut client, "fetch next c"), ["99999"]);
    client.ask("rollback");
}

#[test]
fn cursors_are_used_by_messages_of_the_protocol() {
    let (_served, mut client) = filled();
    client.ask("begin");
    // As psycopg does: the query has a parameter, and the portal of its name is described.
    let declare = "declare \"My c\" cursor for select a, b from t where a > $1 order by a";
    client.send(
        &[
            parse("", declare, &[]),
            bind("", "", false, &[Some(b"10")], false),
            describe(b'P', ""),
            execute("", 0),
            describe(b'P', "My c"),
            sync(),
        ]
        .concat(),
    );
    let all = client.answers();
    assert_eq!(kinds(&all), "12nCTZ", "{all:?}");
    // In binary, in pieces.
    client.send(
        &[
            parse("f", "fetch forward 5 from \"My c\"", &[]),
            bind("p", "f", true, &[], true),
            describe(b'P', "p"),
            execute("p", 2),
            execute("p", 2),
            execute("p", 2),
            sync(),
        ]
        .concat(),
    );
    let all = client.answers();
    assert_eq!(kinds(&all), "12TDDsDDsDCZ", "{all:?}");
    let rows: Vec<_> = all.iter().filter(|told| told.kind == 'D').collect();
    let first = |at: usize| rows[at].fields()[0].clone().unwrap();
    assert_eq!(first(0), 11i64.to_be_bytes());
    assert_eq!(first(4), 15i64.to_be_bytes());
    // A batch that is half sent in binary goes on as text.
    assert_eq!(firsts(&mut client, "fetch 1 from \"My c\""), ["16"]);
    client.send(
        &[
            parse("", "select 1", &[]),
            bind("My c", "", false, &[], false),
            sync(),
        ]
        .concat(),
    );
    let all = client.answers();
    let error = all.iter().find(|told| told.kind == 'E').unwrap();
    assert_eq!(error.part(b'C'), "42P03");
    client.ask("rollback");
    client.ask("begin");
    client.ask("declare b binary cursor for select 7::int as n");
    let all = client.ask("fetch b");
    assert_eq!(all[1].fields()[0].clone().unwrap(), 7i32.to_be_bytes());
    client.ask("rollback");
}

#[test]
fn a_fetch_is_cancelled_and_waits_for_its_client() {
    let served = Served::new();
    let mut client = served.client();
    let endless = "select x from generate_series(1, 100000000000) s(x)";
    client.ask("begin");
    client.ask(&format!("declare c cursor for {endless}"));
    assert_eq!(firsts(&mut client, "fetch 2 c"), ["1", "2"]);
    client.ask("set statement_timeout = 300");
    // It takes its time whether its rows are sent or not.
    assert_eq!(client.code("move all c"), "57014");
    client.ask("rollback");
    client.ask("begin");
    client.ask(&format!("declare c cursor for {endless}"));
    assert!(!client.is_answered(Duration::from_millis(50)));
    client.ask("rollback");
    assert_eq!(client.value("select 1"), "1");
}

#[test]
fn what_is_skipped_is_told() {
    let served = Served::new();
    let mut client = served.client();
    let mut notice = |text: &str| {
        let all = client.ask(text);
        let notice = all.iter().find(|told| told.kind == 'N');
        notice.map_or_else(String::new, |notice| notice.part(b'M'))
    };
    assert_eq!(notice("create table t (a int)"), "");
    for (text, wanted) in [
        (
            "drop table if exists x",
            "table \"x\" does not exist, skipping",
        ),
        (
            "drop view if exists x",
            "view \"x\" does not exist, skipping",
        ),
        (
            "drop materialized view if exists x",
            "materialized view \"x\" does not exist, skipping",
        ),
        (
            "drop sequence if exists x",
            "sequence \"x\" does not exist, skipping",
        ),
        (
            "drop schema if exists x",
            "schema \"x\" does not exist, skipping",
        ),
        (
            "drop role if exists x",
            "role \"x\" does not exist, skipping",
        ),
        (
            "drop index if exists x",
            "index \"x\" does not exist, skipping",
        ),
        (
            "create table if not exists t (a int)",
            "relation \"t\" already exists, skipping",
        ),
        (
            "create table if not exists t as select 1",
            "relation \"t\" already exists, skipping",
        ),
        (
            "create sequence if not exists t",
            "relation \"t\" already exists, skipping",
        ),
        (
            "create schema if not exists public",
            "schema \"public\" already exists, skipping",
        ),
        (
            "alter table if exists x add column a int",
            "relation \"x\" does not exist, skipping",
        ),
        (
            "alter table t add column if not exists a int",
            "column \"a\" of relation \"t\" already exists, skipping",
        ),
        (
            "alter table t drop column if exists b",
            "column \"b\" of relation \"t\" does not exist, skipping",
        ),
    ] {
        assert_eq!(notice(text), wanted, "{text}");
    }
}

#[test]
fn sessions_know_and_stop_each_other_within_queries() {
    let served = Served::new();
    let (mut client, mut other) = (served.client(), served.client());
    let process = client.process.to_string();
    let text = "select pid from pg_stat_activity where pid = pg_backend_pid()";
    assert_eq!(client.value(text), process);
    assert_eq!(client.value("select pg_backend_pid() + 0, 1"), process);
    // By a parameter.
    let number = other.process.to_string();
    client.send(
        &[
            parse("", "select pg_terminate_backend($1)", &[23]),
            bind("", "", false, &[Some(number.as_bytes())], false),
            describe(b'P', ""),
            execute("", 0),
            sync(),
        ]
        .concat(),
    );
    let all = client.answers();
    assert_eq!(kinds(&all), "12TDCZ", "{all:?}");
    assert_eq!(all[3].texts(), [Some("t".to_string())]);
    while let Some(told) = other.receive() {
        assert_eq!(told.part(b'C'), "57P01");
    }
    assert_eq!(
        client.value("select pg_cancel_backend(x) from (values (-1)) v(x)"),
        "f"
    );
}
