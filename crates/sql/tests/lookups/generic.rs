//! Prepared queries that run by a plan for any values of their parameters give what they give when they are planned with
//! the values, their errors included.

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use sql::{Error, PreparedStatement, Session};

use crate::{Outcome, drained, fixture, one, opened, outcome};

/// Queries, what their parameters may be, and whether a plan for any values is to serve them.
const QUERIES: [(&str, &[&[&str]], bool); 28] = [
    (
        "select count(*), sum(v) from t where id between $1 and $1 + 16",
        &[WHOLE],
        true,
    ),
    (
        "select * from t where id > $1 and k <= $2 order by id",
        &[WHOLE, WHOLE],
        true,
    ),
    (
        "select id, k + 1 from t where k = $1 or not id = $2",
        &[WHOLE, WHOLE],
        true,
    ),
    (
        "select s, count(*) from t where id < $1 group by s",
        &[WHOLE],
        true,
    ),
    (
        "select id from t where id in ($1, $2, 7)",
        &[WHOLE, WHOLE],
        true,
    ),
    ("select id from t where s = $1", &[TEXTS], true),
    (
        "select id from t where s in ($1, $2) and id >= $3",
        &[TEXTS, TEXTS, WHOLE],
        true,
    ),
    (
        "select id from t where s > $1 order by id desc limit 3",
        &[TEXTS],
        true,
    ),
    ("select max(id) from t where d >= $1", &[DAYS], true),
    (
        "select id from t where d between $1 and $2",
        &[DAYS, DAYS],
        true,
    ),
    ("select id from t where b = $1", &[SWITCHES], true),
    (
        "select t.id, u.k from t join t u on t.id = u.k where t.id < $1",
        &[WHOLE],
        true,
    ),
    ("select count(*) from t where $1 = 3", &[WHOLE], true),
    (
        "select id from t where k > $2 and $1 > 3",
        &[WHOLE, WHOLE],
        true,
    ),
    ("select id from t where id = $1 or $1 = 3", &[WHOLE], true),
    (
        "select count(*), max(k) from t where $1 and b",
        &[SWITCHES],
        true,
    ),
    (
        "select id from t where not $1::boolean or k = 2",
        &[SWITCHES],
        true,
    ),
    (
        "select k, sum(id) from t where id <> $1 group by k having k > $1",
        &[WHOLE],
        false,
    ),
    (
        "select id from t where k < (select max(k) from t u where u.id = $1)",
        &[WHOLE],
        true,
    ),
    ("select id from t where id * $1 > 10", &[WHOLE], true),
    ("select id from t where p > $1", &[DECIMALS], true),
    ("select id from t where v < $1", &[DECIMALS], false),
    ("select id + $1 from t where id = 3", &[WHOLE], false),
    ("select id from t order by id limit $1", &[WHOLE], false),
    ("select id from t where s like $1", &[TEXTS], true),
    ("select id from t where length(s) = $1", &[WHOLE], true),
    (
        "select id from t where k is not distinct from $1",
        &[WHOLE],
        false,
    ),
    ("select id from t where d = $1::date + 1", &[DAYS], true),
];

const WHOLE: &[&str] = &[
    "0",
    "1",
    "3",
    "7",
    "-5",
    "40",
    "100",
    "2000000000",
    "-9223372036854775808",
    "9223372036854775807",
    "9223372036854775808",
    " 4",
    "+4",
    "x",
    "",
    "1.5",
    "null",
];
const TEXTS: &[&str] = &["a", "b", "it's", "", "A", "2020-01-01", "5", "null", "%"];
const DAYS: &[&str] = &[
    "2020-01-01",
    "2020-01-20",
    "1999-12-31",
    "infinity",
    "2020-02-30",
    "2020-1-5",
    "null",
    "x",
];
const SWITCHES: &[&str] = &["t", "f", "true", "yes", "0", "maybe", "null"];
const DECIMALS: &[&str] = &["0.5", "3", "-1.25", "NaN", "null", "x", "1e2"];

const TABLE: &str = "create table t (id bigint primary key, k integer, s varchar, d date, b boolean, p numeric(10, 2), v double precision);
    insert into t select n, case when n % 7 = 0 then null else n % 10 end, case n % 4 when 0 then 'a' when 1 then 'b' when 2 then null else 'it''s' end,
        date '2020-01-01' + n, n % 3 = 0, n / 8.0, n / 4.0 from generate_series(1, 60) as g(n);
    delete from t where id = 5;
    update t set s = '' where id = 9";

#[test]
fn plans_for_any_values_give_what_planning_with_them_gives() {
    let workers = fixture::workers();
    let (_directory, instance) = opened(&workers);
    let session = instance.session();
    let block_on = |work: futures::future::BoxFuture<'_, Outcome>| workers.handle().block_on(work);
    workers.handle().block_on(session.execute(TABLE)).unwrap();
    let mut random = fastrand::Rng::with_seed(11);
    let mut others: Vec<String> = Vec::new();
    for (text, parameters, generic) in QUERIES {
        let slow = session.clone().always_planning();
        let prepare = |session: &Session| {
            let statement = workers.handle().block_on(session.prepare(text, &[]));
            statement.unwrap().unwrap()
        };
        let (fast_statement, slow_statement) = (prepare(&session), prepare(&slow));
        let before = instance.plans_used_again();
        for turn in 0..24 {
            let values: Vec<Option<&str>> = parameters
                .iter()
                // The first run is one that can be planned.
                .map(|all| if turn == 0 { all[0] } else { one(&mut random, all) })
                .map(|value| (value != "null").then_some(value))
                .collect();
            let run = |session: &Session, statement: &PreparedStatement| {
                block_on(Box::pin(async {
                    outcome(match session.run(statement, &values).await {
                        Ok(stream) => drained(stream).await,
                        Err(e) => Err(e),
                    })
                }))
            };
            let fast = run(&session, &fast_statement);
            let slow = run(&slow, &slow_statement);
            assert_eq!(fast.0, slow.0, "{text} with {values:?}");
        }
        let used = instance.plans_used_again() - before;
        if (used > 0) != generic {
            others.push(format!("{text}: {used} runs by a plan that was kept"));
        }
    }
    assert!(others.is_empty(), "{others:#?}");
}

/// Rows that come, tables that change and transactions are seen at once.
#[test]
fn plans_for_any_values_see_what_has_changed() {
    let workers = fixture::workers();
    let (_directory, instance) = opened(&workers);
    let session = instance.session();
    let run = |text: &str| workers.handle().block_on(session.execute(text)).map(drop);
    run(TABLE).unwrap();
    let text = "select count(*) from t where id >= $1";
    let prepared = workers.handle().block_on(session.prepare(text, &[]));
    let prepared = prepared.unwrap().unwrap();
    let count = |from: &str| {
        let values = [Some(from)];
        let rows = workers.handle().block_on(async {
            let stream = session.run(&prepared, &values).await?;
            drained(stream).await
        });
        let (_, batches, _) = rows?;
        let counts = batches[0].column(0).as_primitive::<Int64Type>().clone();
        Ok::<i64, Error>(counts.value(0))
    };
    for _ in 0..3 {
        assert_eq!(count("51").unwrap(), 10);
        assert_eq!(count("61").unwrap(), 0);
    }
    run("insert into t (id) values (61), (62)").unwrap();
    for _ in 0..3 {
        assert_eq!(count("61").unwrap(), 2);
    }
    run("begin; delete from t where id > 55").unwrap();
    assert_eq!(count("51").unwrap(), 5);
    run("rollback").unwrap();
    assert_eq!(count("51").unwrap(), 12);
    run("alter table t alter column id type integer").unwrap();
    assert_eq!(count("51").unwrap(), 12);
    run("drop table t").unwrap();
    assert_eq!(count("51").unwrap_err().sqlstate(), "42P01");
}
