//! Rows that a transaction gathers are what their inserts write: the same statements to a session that gathers and to one of
//! another store that plans everything give the same rows and the same errors, whatever comes between them.

use std::sync::Arc;

use arrow::datatypes::DataType;
use sql::{Instance, PreparedStatement, Session, TransactionStatus};
use workers::Workers;

use crate::{Outcome, drained, fixture, one, opened, outcome};

const TABLES: &str = "create table t (id bigint primary key, k integer check (k < 50), s varchar(5) unique, d date, b boolean, p numeric(6, 2), v double precision);
    create table u (a bigint not null, s text default 'none', c char(3), k numeric(4, 1) default -1.5, z double precision default 0, n smallint default 40000, y date default current_date);
    alter table u drop column n, alter column y drop default, alter column y set default '2020-02-29';
    create type mood as enum ('calm', 'wild');
    create table v (u uuid, m mood, n smallint, x numeric(40, 3), at timestamp);
    create table w (a bigint references t, n integer generated always as (a + 1) stored)";

/// An insert, the types that are declared, and what each value may be.
type Asked = (
    &'static str,
    &'static [Option<DataType>],
    &'static [&'static [&'static str]],
);

const INSERTS: [Asked; 10] = [
    (
        "insert into t values ($1, $2, $3, $4, $5, $6, $7)",
        &[],
        &[WHOLE, WHOLE, TEXTS, DAYS, SWITCHES, DECIMALS, FLOATS],
    ),
    (
        "insert into t (v, id, p, k) values ($4, $1, $3, $2)",
        &[
            Some(DataType::Int16),
            Some(DataType::Int32),
            Some(DataType::Int64),
            Some(DataType::Float64),
        ],
        &[WHOLE, WHOLE, WHOLE, FLOATS],
    ),
    ("insert into t (id, s) values ($1, 'same')", &[], &[WHOLE]),
    (
        "insert into public.t (id, p, v) values ($1, -1.5, 0.25)",
        &[],
        &[WHOLE],
    ),
    ("insert into u values ($1, $2)", &[], &[WHOLE, TEXTS]),
    (
        "insert into u (a, s, c) values ($1, $2, $2)",
        &[Some(DataType::Int64), Some(DataType::Utf8View)],
        &[WHOLE, TEXTS],
    ),
    ("insert into u (a) values ($1)", &[], &[WHOLE]),
    ("insert into w values ($1)", &[], &[WHOLE]),
    (
        "insert into v (u, m, n) values ($1, $2, $3)",
        &[],
        &[UUIDS, MOODS, WHOLE],
    ),
    (
        "insert into v (x, at, n) values ($1, $2, $3)",
        &[],
        &[DECIMALS, DAYS, WHOLE],
    ),
];

const WHOLE: &[&str] = &[
    "1",
    "2",
    "3",
    "4",
    "5",
    "6",
    "7",
    "8",
    "9",
    "10",
    "11",
    "12",
    "49",
    "50",
    "-7",
    "40000",
    "9223372036854775808",
    "x",
    "null",
];
const TEXTS: &[&str] = &["a", "b", "it's", "", "A", "abc  ", "toolong", "é", "null"];
const DAYS: &[&str] = &["2020-01-01", "2020-02-30", "infinity", "null"];
const SWITCHES: &[&str] = &["t", "f", "true", "yes", "null"];
const DECIMALS: &[&str] = &["0.5", "3", "-1.25", "0.125", "12345", "NaN", "null"];
const FLOATS: &[&str] = &["0.5", "3", "1e+20", "1e400", "-0", "NaN", "null"];

const UUIDS: &[&str] = &[
    "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
    "A0EEBC999C0B4EF8BB6D6BB9BD380A11",
    "null",
    "a0ee",
];
const MOODS: &[&str] = &["calm", "wild", "null", "Calm", ""];

/// What else may come, and how often.
const BETWEEN: [(&str, usize); 17] = [
    ("begin", 12),
    ("commit", 6),
    ("rollback", 2),
    ("savepoint a", 3),
    ("rollback to a", 6),
    ("release a", 2),
    ("select * from t", 2),
    ("select count(*), sum(a) from u", 2),
    ("select * from t where id = 3", 2),
    ("update t set k = k + 1 where id < 4", 1),
    ("delete from t where id > 6", 1),
    ("insert into t (id) values (20)", 2),
    ("insert into t (id) values (21), (22)", 1),
    ("insert into u values (7, 'text', 'c')", 2),
    ("set constraints all immediate", 1),
    ("truncate u", 1),
    (
        "insert into t (id) values (1) on conflict (id) do update set k = 9",
        1,
    ),
];

struct Side {
    _directory: tempfile::TempDir,
    instance: Arc<Instance>,
    session: Session,
    prepared: Vec<PreparedStatement>,
}

impl Side {
    fn new(workers: &Arc<Workers>, plans: bool) -> Side {
        let (directory, instance) = opened(workers);
        let session = instance.session();
        let made = workers.handle().block_on(session.execute(TABLES));
        made.unwrap();
        let prepare = |(text, declared, _): &Asked| {
            let prepared = workers.handle().block_on(session.prepare(text, declared));
            prepared.unwrap().unwrap()
        };
        let prepared = INSERTS.iter().map(prepare).collect();
        Side {
            session: if plans {
                session.clone().always_planning()
            } else {
                session.clone()
            },
            _directory: directory,
            instance,
            prepared,
        }
    }

    fn insert(&self, workers: &Workers, at: usize, values: &[Option<&str>]) -> Outcome {
        workers.handle().block_on(async {
            outcome(match self.session.run(&self.prepared[at], values).await {
                Ok(stream) => {
                    assert_eq!(stream.changed(), Some(1));
                    drained(stream).await
                }
                Err(e) => Err(e),
            })
        })
    }

    fn run(&self, workers: &Workers, text: &str) -> Outcome {
        workers.handle().block_on(async {
            outcome(match self.session.stream(text).await {
                Ok(stream) => drained(stream).await,
                Err(e) => Err(e),
            })
        })
    }
}

/// A statement with its weight.
fn between(random: &mut fastrand::Rng) -> &'static str {
    let all: usize = BETWEEN.iter().map(|(_, weight)| weight).sum();
    let mut at = random.usize(0..all);
    for (text, weight) in BETWEEN {
        match at.checked_sub(weight) {
            None => return text,
            Some(rest) => at = rest,
        }
    }
    "commit"
}

#[test]
fn what_is_gathered_is_what_is_inserted() {
    let workers = fixture::workers();
    let mut gathered = 0;
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (own, other) = (Side::new(&workers, false), Side::new(&workers, true));
        let mut log: Vec<String> = Vec::new();
        for step in 0..150 {
            let (mut own_said, mut other_said);
            let status = own.session.transaction();
            let failed = status == TransactionStatus::Failed;
            let ends = failed && random.u8(0..100) < 80;
            let begins = status == TransactionStatus::Idle && random.u8(0..100) < 60;
            if !ends && !begins && random.u8(0..100) < 80 {
                let at = random.usize(0..own.prepared.len());
                let (text, _, all) = INSERTS[at];
                let fresh = [(100 + step).to_string(), format!("t{step}")];
                let values = all.iter().enumerate().map(|(place, all)| {
                    // Most rows are to be good ones.
                    let good = random.u8(0..100) < 90;
                    match place {
                        0 if good && *all == WHOLE => fresh[0].as_str(),
                        2 if good && *all == TEXTS => fresh[1].as_str(),
                        _ => *one(&mut random, &all[..if good { 3 } else { all.len() }]),
                    }
                });
                let values: Vec<Option<&str>> = values
                    .map(|value| (value != "null").then_some(value))
                    .collect();
                log.push(format!("{text} {values:?}"));
                own_said = own.insert(&workers, at, &values);
                other_said = other.insert(&workers, at, &values);
                if failed && own_said.0.is_err() {
                    // Of two reasons each may tell one: the transaction, and a value.
                    for said in [&mut own_said, &mut other_said] {
                        said.0 = said.0.clone().map_err(|_| Default::default());
                    }
                }
            } else {
                let text = match (ends, begins) {
                    (true, _) => *one(&mut random, &["rollback", "rollback to a"]),
                    (_, true) => "begin",
                    _ => between(&mut random),
                };
                log.push(text.to_owned());
                own_said = own.run(&workers, text);
                other_said = other.run(&workers, text);
            }
            gathered += own.session.rows_gathered();
            assert_eq!(own_said.0, other_said.0, "seed {seed}: {log:#?}");
            assert_eq!(own.session.transaction(), other.session.transaction());
        }
        for side in [&own, &other] {
            let _ = side.run(&workers, "commit");
        }
        for table in ["t", "u", "v", "w"] {
            let query = format!("select * from {table}");
            let (own, other) = (own.run(&workers, &query), other.run(&workers, &query));
            assert_eq!(own.0, other.0, "seed {seed}, {table}: {log:#?}");
        }
        assert_eq!(own.session.rows_gathered(), 0);
    }
    assert!(gathered > 200, "{gathered} rows waited");
}

/// More bytes than may wait, in two tables, and all of them are there when their transaction has ended.
#[test]
fn many_rows_are_gathered() {
    let workers = fixture::workers();
    let side = Side::new(&workers, false);
    let run = |text: &str| side.run(&workers, text).0.map(drop);
    run("begin").unwrap();
    let long = "x".repeat(8 << 10);
    let mut most = 0;
    for row in 0..2_500 {
        let text = row.to_string();
        // Another insert every now and then, once as many have come as may wait.
        let values = match row {
            2_400 => vec![Some(text.as_str())],
            _ => vec![Some(text.as_str()), Some(long.as_str())],
        };
        let at = if values.len() == 1 { 6 } else { 4 };
        side.insert(&workers, at, &values).0.unwrap();
        most = most.max(side.session.rows_gathered());
    }
    assert!((1_000..=2_100).contains(&most), "{most} rows waited");
    let another = side.instance.session();
    let count = |session: &Session| {
        let query = "select count(*), count(distinct a), min(s), max(s) from u";
        let rows = workers.handle().block_on(session.execute(query));
        let rows = rows.unwrap().pop().unwrap().batches;
        arrow::util::pretty::pretty_format_batches(&rows)
            .unwrap()
            .to_string()
    };
    let nothing = count(&another);
    let all = count(&side.session);
    assert!(all.contains("| 2500 ") && all.contains("| none"), "{all}");
    assert_eq!(count(&another), nothing);
    run("commit").unwrap();
    assert_eq!(count(&another), all);
}

/// A table that another transaction writes to is waited for by the insert, and not by what comes later.
#[test]
fn who_gathers_has_the_turn() {
    let workers = fixture::workers();
    let side = Side::new(&workers, false);
    let other = side.instance.session();
    let execute = |text: &str| workers.handle().block_on(other.execute(text)).map(drop);
    side.run(&workers, "begin; select 1").0.unwrap_err();
    side.run(&workers, "begin").0.unwrap();
    side.run(&workers, "select count(*) from u").0.unwrap();
    execute("insert into u values (5)").unwrap();
    let late = side.insert(&workers, 6, &[Some("1")]).0.unwrap_err();
    assert_eq!(late.0, "40001", "{late:?}");
    assert_eq!(side.session.rows_gathered(), 0);
    side.run(&workers, "rollback").0.unwrap();
    side.run(&workers, "begin read only").0.unwrap();
    let refused = side.insert(&workers, 6, &[Some("1")]).0.unwrap_err();
    assert_eq!(refused.0, "25006", "{refused:?}");
}

/// A key that waits by another name of its table is refused by the statement that brings it again.
#[test]
fn keys_hold_for_all_names_of_a_table() {
    let workers = fixture::workers();
    let side = Side::new(&workers, false);
    side.run(&workers, "begin").0.unwrap();
    side.insert(&workers, 3, &[Some("1")]).0.unwrap();
    assert_eq!(side.session.rows_gathered(), 1);
    let values = [Some("1"), None, None, None, None, None, None];
    let twice = side.insert(&workers, 0, &values).0.unwrap_err();
    assert_eq!(twice.0, "23505", "{twice:?}");
}
