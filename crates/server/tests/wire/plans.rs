//! A plan that was made to describe a statement runs it only as long as planning again would make the same one.

use crate::client::{Client, Served, bind, describe, execute, kinds, parse, sync};
use crate::flight_client;

/// The rows of a prepared statement, or the code of its error.
type Found = Result<Vec<Vec<Option<String>>>, String>;

fn prepare(client: &mut Client, name: &str, text: &str) {
    client.send(&parse(name, text, &[]));
    client.send(&describe(b'S', name));
    client.send(&sync());
    let told = client.answers();
    assert_eq!(kinds(&told), "1tTZ", "{text}");
}

fn run(client: &mut Client, name: &str) -> Found {
    client.send(&bind("", name, false, &[], false));
    client.send(&execute("", 0));
    client.send(&sync());
    found(&client.answers())
}

fn ask(client: &mut Client, text: &str) -> Found {
    found(&client.ask(text))
}

fn found(told: &[crate::client::Told]) -> Found {
    match told.iter().find(|told| told.kind == 'E') {
        Some(error) => Err(error.part(b'C')),
        None => {
            let rows = told.iter().filter(|told| told.kind == 'D');
            Ok(rows.map(crate::client::Told::texts).collect())
        }
    }
}

#[test]
fn a_query_is_planned_once() {
    let served = Served::new();
    let mut client = served.client();
    client.tag("create table t (a int)");
    client.tag("insert into t values (1), (2)");
    let again = || served.database.plans_used_again();
    let text = "select sum(a) from t where a > 0";
    prepare(&mut client, "p", text);
    assert_eq!(again(), 0);
    for round in 1..=3 {
        assert_eq!(run(&mut client, "p"), Ok(vec![vec![Some("3".into())]]));
        assert_eq!(again(), round);
    }
    // A text that was described before is not looked at again, and has the plan that was made.
    prepare(&mut client, "q", text);
    assert!(run(&mut client, "q").is_ok());
    assert_eq!(again(), 4);
    // What may say something else later is planned again.
    for (name, text) in [
        ("now", "select now(), count(*) from t"),
        ("random", "select random() from t"),
        ("pid", "select pid from pg_stat_activity"),
        ("series", "select * from generate_series(1, 2) x"),
        ("user", "select current_user, a from t"),
        (
            "with",
            "with x as (select random() as r from t) select a.r from x a, x b",
        ),
    ] {
        prepare(&mut client, name, text);
        assert!(run(&mut client, name).is_ok(), "{text}");
        assert_eq!(again(), 4, "{text}");
    }
    client.tag("insert into t values (3)");
    assert_eq!(run(&mut client, "p"), Ok(vec![vec![Some("6".into())]]));
    assert_eq!(again(), 4);
}

#[test]
fn a_ticket_has_the_plan_of_its_query() {
    let served = flight_client::served();
    served
        .database
        .session()
        .sql("create table t (a int)")
        .unwrap();
    served
        .database
        .session()
        .sql("insert into t values (1), (2)")
        .unwrap();
    let mut flight = flight_client::Flight::connect(&served);
    let query = flight_client::query("select sum(a) as s from t", None);
    let (ticket, _) = flight.info(&query);
    assert_eq!(flight.call("DoGet", &ticket).ok().rows(), ["3"]);
    assert_eq!(served.database.plans_used_again(), 1);
    // A ticket is good twice, and for what there is when it is shown.
    served
        .database
        .session()
        .sql("insert into t values (3)")
        .unwrap();
    assert_eq!(flight.call("DoGet", &ticket).ok().rows(), ["6"]);
    let (ticket, _) = flight.info(&query);
    served
        .database
        .session()
        .sql("insert into t values (4)")
        .unwrap();
    assert_eq!(flight.call("DoGet", &ticket).ok().rows(), ["10"]);
    assert_eq!(served.database.plans_used_again(), 1);
    let (ticket, _) = flight.info(&query);
    served.database.session().sql("drop table t").unwrap();
    let refused = flight.call("DoGet", &ticket);
    assert_ne!(refused.status(), 0, "{refused:?}");
}

#[test]
fn a_plan_is_never_stale() {
    let served = Served::new();
    let (mut client, mut other) = (served.client(), served.client());
    for text in [
        "create schema reef",
        "create table t (a int)",
        "create table reef.t (a int)",
        "insert into t values (1), (2)",
        "insert into reef.t values (10)",
        "create view v as select a from t where a > 1",
    ] {
        other.ask(text);
    }
    let texts = [
        "select sum(a) from t",
        "select * from v order by 1",
        "select count(*), max(a) from public.t join reef.t r using (a)",
        "select a from t where a in (select a from v) order by a",
        "select timestamp '2024-07-01 12:00' at time zone 'UTC' + interval '1 day', '01/02/2024'::date, a from t order by a",
    ];
    // Each changes something between the description of a statement and its run: by the session itself, or by another.
    let changes: [(bool, &str); 24] = [
        (true, "insert into t values (3)"),
        (false, "insert into t values (4)"),
        (true, "set search_path = reef, public"),
        (true, "insert into reef.t values (1)"),
        (true, "reset search_path"),
        (true, "begin"),
        (true, "insert into t values (5)"),
        (true, "savepoint s"),
        (true, "delete from t where a = 1"),
        (true, "rollback to s"),
        (true, "rollback"),
        (
            false,
            "create or replace view v as select (a + 100)::int as a from t",
        ),
        (true, "create temporary table t (a int)"),
        (true, "insert into t values (77)"),
        (true, "drop table t"),
        (false, "update t set a = a * 2"),
        (true, "begin"),
        (false, "delete from t where a = 4"),
        (true, "commit"),
        (true, "set datestyle = dmy"),
        (true, "set timezone = 'Europe/Zurich'"),
        (true, "set timezone = 'UTC'"),
        (false, "truncate reef.t"),
        (false, "delete from t"),
    ];
    for (round, (own, change)) in changes.into_iter().enumerate() {
        for (at, text) in texts.iter().enumerate() {
            prepare(&mut client, &format!("p{round}_{at}"), text);
        }
        let who = if own { &mut client } else { &mut other };
        let told = ask(who, change);
        assert!(told.is_ok(), "{change}: {told:?}");
        for (at, text) in texts.iter().enumerate() {
            for before in 0..=round {
                let kept = run(&mut client, &format!("p{before}_{at}"));
                assert_eq!(kept, ask(&mut client, text), "{change}: {text}");
            }
        }
    }
    // Other columns, other rights, nothing left.
    prepare(&mut client, "columns", "select * from t");
    other.ask("alter table t add column b int");
    assert_eq!(run(&mut client, "columns"), Err("0A000".into()));
    prepare(&mut client, "gone", "select a from t");
    other.ask("drop view v");
    other.ask("drop table t");
    assert_eq!(run(&mut client, "gone"), Err("42P01".into()));
    assert!(served.database.plans_used_again() > 0);
}

#[test]
fn who_has_lost_a_right_has_no_plan() {
    let served = Served::new();
    let connect = |user| Client::try_connect(served.address, &[("user", user)]).unwrap();
    let (mut bob, mut eve) = (connect("bob"), connect("eve"));
    let owner = served.database.session();
    for text in [
        "create table t (a int)",
        "insert into t values (1)",
        "create role boss superuser login password 'x'",
        "create role bob login password 'x'",
        "create role staff",
        "create role eve login password 'x' in role staff",
        "grant select on t to bob, staff",
    ] {
        owner.sql(text).unwrap();
    }
    for client in [&mut bob, &mut eve] {
        prepare(client, "p", "select sum(a) from t");
        assert!(run(client, "p").is_ok());
    }
    owner.sql("revoke select on t from bob").unwrap();
    assert_eq!(run(&mut bob, "p"), Err("42501".into()));
    assert!(run(&mut eve, "p").is_ok());
    owner.sql("create role nothing").unwrap();
    owner.sql("grant nothing to eve").unwrap();
    prepare(&mut eve, "q", "select sum(a) from t");
    eve.tag("set role nothing");
    assert_eq!(run(&mut eve, "q"), Err("42501".into()));
    eve.tag("reset role");
    assert!(run(&mut eve, "q").is_ok());
    owner.sql("revoke staff from eve").unwrap();
    assert_eq!(run(&mut eve, "q"), Err("42501".into()));
}
