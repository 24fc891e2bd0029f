//! Queries for the row of one key are answered without a plan: random ones, on random tables that change, give what the
//! same queries give when they are planned, their errors included.

mod columns;
#[path = "../fixture/mod.rs"]
mod fixture;
mod gathered;
mod generic;
mod returned;
mod written;
mod written_columns;

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::compute::{SortColumn, concat_batches, lexsort_to_indices, take_record_batch};
use arrow::datatypes::{DataType, SchemaRef};
use sql::{Error, Session, TransactionStatus};
use workers::Workers;

use crate::columns::{COLUMNS, OTHERS};

/// The rows of an answer, or what its error says; and whether it was found by an index.
type Outcome = (
    Result<(SchemaRef, Option<RecordBatch>), (String, String)>,
    bool,
    // Of a prepared statement: the types of its parameters, and its columns.
    Option<(Vec<DataType>, Option<SchemaRef>)>,
);

struct Setting {
    workers: Arc<Workers>,
    /// One whose queries for keys are not planned, and one of the same transaction whose are.
    sessions: [Session; 2],
    /// Columns of the table, and those of its keys, by their places.
    columns: Vec<usize>,
    keys: Vec<Vec<usize>>,
    table: &'static str,
}

/// A new store, for as long as its directory is kept.
fn opened(workers: &Arc<Workers>) -> (tempfile::TempDir, Arc<sql::Instance>) {
    let directory = tempfile::tempdir().unwrap();
    let options = sql::Options::spilling_to(directory.path());
    let path = directory.path().join("test.atoll");
    let instance = fixture::instance(
        workers,
        &path,
        256 << 20,
        store::Options::default(),
        options,
    );
    (directory, instance)
}

/// The rows in an order of their own: a query has none.
fn sorted(rows: &RecordBatch) -> RecordBatch {
    let columns = rows.columns().iter().map(|values| SortColumn {
        values: Arc::clone(values),
        options: None,
    });
    let order = lexsort_to_indices(&columns.collect::<Vec<_>>(), None).unwrap();
    take_record_batch(rows, &order).unwrap()
}

fn outcome(answer: Result<(SchemaRef, Vec<RecordBatch>, &'static str), Error>) -> Outcome {
    match answer {
        Err(e) => {
            let said = (e.sqlstate().to_string(), e.to_string());
            (Err(said), false, None)
        }
        Ok((schema, batches, ran_on)) => {
            let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            let all = (rows > 0).then(|| sorted(&concat_batches(&schema, &batches).unwrap()));
            (Ok((schema, all)), ran_on == "index", None)
        }
    }
}

impl Setting {
    fn run(&self, text: &str) -> Result<(), Error> {
        let done = self.sessions[0].execute(text);
        self.workers.handle().block_on(done).map(drop)
    }

    fn execute(&self, session: &Session, text: &str) -> Outcome {
        let done = self.workers.handle().block_on(session.execute(text));
        outcome(done.map(|mut answers| {
            let answer = answers.pop().unwrap();
            (answer.schema, answer.batches, answer.statistics.ran_on)
        }))
    }

    fn stream(&self, session: &Session, text: &str) -> Outcome {
        outcome(self.workers.handle().block_on(async {
            let stream = session.stream(text).await?;
            drained(stream).await
        }))
    }

    fn prepared(
        &self,
        session: &Session,
        (text, types): (&str, &[Option<DataType>]),
        values: &[Option<&str>],
    ) -> Outcome {
        let mut described = None;
        let done = self.workers.handle().block_on(async {
            let statement = session.prepare(text, types).await?.unwrap();
            let parameters = statement.parameters().to_vec();
            described = Some((parameters, statement.columns().cloned()));
            drained(session.run(&statement, values).await?).await
        });
        let (rows, found, _) = outcome(done);
        (rows, found, described)
    }
}

async fn drained(
    mut stream: sql::AnswerStream,
) -> Result<(SchemaRef, Vec<RecordBatch>, &'static str), Error> {
    let mut batches = Vec::new();
    while let Some(batch) = stream.next_batch().await {
        batches.push(batch?);
    }
    let ran_on = stream.statistics().ran_on;
    Ok((Arc::clone(stream.schema()), batches, ran_on))
}

/// One of a list.
fn one<'l, T>(random: &mut fastrand::Rng, all: &'l [T]) -> &'l T {
    &all[random.usize(0..all.len())]
}

fn value(random: &mut fastrand::Rng, column: usize) -> &'static str {
    match random.u8(0..8) {
        0 => "null",
        _ => one::<&'static str>(random, COLUMNS[column].values),
    }
}

/// Makes a table of some columns with some keys.
fn table(random: &mut fastrand::Rng, workers: &Arc<Workers>, session: Session) -> Setting {
    let mut columns: Vec<usize> = (0..COLUMNS.len()).collect();
    random.shuffle(&mut columns);
    columns.truncate(random.usize(2..7));
    let mut keys = Vec::new();
    while keys.is_empty() || random.u8(0..3) == 0 {
        let mut key: Vec<usize> = columns.iter().copied().filter(|at| *at < 11).collect();
        random.shuffle(&mut key);
        key.truncate(random.usize(1..3));
        key.sort_unstable();
        if !keys.contains(&key) && !key.is_empty() {
            keys.push(key);
        }
    }
    let name = *one(random, &["t", "\"Table\"", "s.t", "data", "tmp"]);
    let names = |of: &[usize]| {
        let names: Vec<&str> = of.iter().map(|at| COLUMNS[*at].name).collect();
        names.join(", ")
    };
    let mut parts: Vec<String> = columns
        .iter()
        .map(|at| format!("{} {}", COLUMNS[*at].name, COLUMNS[*at].sql_type))
        .collect();
    for (number, key) in keys.iter().enumerate() {
        let kind = if number == 0 && random.bool() {
            "primary key"
        } else {
            "unique"
        };
        parts.push(format!("{kind} ({})", names(key)));
    }
    let temporary = if name == "tmp" { "temporary " } else { "" };
    let setting = Setting {
        workers: Arc::clone(workers),
        sessions: [session.clone(), session.clone().always_planning()],
        columns,
        keys,
        table: name,
    };
    setting
        .run("create schema if not exists s")
        .and_then(|()| setting.run(&format!("drop table if exists {name}")))
        .and_then(|()| {
            let text = format!("create {temporary}table {name} ({})", parts.join(", "));
            setting.run(&text)
        })
        .unwrap();
    setting
}

/// Changes rows, and what surrounds the statements. What fails is undone.
fn change(random: &mut fastrand::Rng, setting: &Setting) {
    let table = setting.table;
    let column = *one(random, &setting.columns);
    let name = COLUMNS[column].name;
    let text = match random.u8(0..12) {
        0 => format!(
            "delete from {table} where {name} = {}",
            value(random, column)
        ),
        1 => format!("update {table} set {name} = {}", value(random, column)),
        2 => "begin".to_string(),
        3 => "commit".to_string(),
        4 => "rollback".to_string(),
        5 => "savepoint a".to_string(),
        6 => "rollback to a".to_string(),
        7 => "set search_path = s, public".to_string(),
        8 => "reset search_path".to_string(),
        _ => {
            let rows: Vec<String> = (0..random.usize(1..4))
                .map(|_| {
                    let values: Vec<&str> = setting
                        .columns
                        .iter()
                        .map(|at| value(random, *at))
                        .collect();
                    format!("({})", values.join(", "))
                })
                .collect();
            let rows = rows.join(", ");
            format!("insert into {table} values {rows} on conflict do nothing")
        }
    };
    if setting.run(&text).is_err() {
        let _ = setting.run("rollback");
    }
}

/// A query, most often for a key, and the values that stand in it.
fn query(random: &mut fastrand::Rng, setting: &Setting) -> (String, Vec<String>) {
    let mut wanted = one(random, &setting.keys).clone();
    random.shuffle(&mut wanted);
    match random.u8(0..20) {
        0 => wanted.push(*one(random, &setting.columns)),
        1 => wanted.truncate(1),
        _ => {}
    }
    let base = setting.table.trim_start_matches("s.");
    let (alias, qualifier) = match random.u8(0..6) {
        0 => (" as x", "x"),
        1 => (" x", "x"),
        2 => ("", base),
        3 => (" x", base),
        _ => ("", base),
    };
    let column = |random: &mut fastrand::Rng, at: usize| match random.u8(0..4) {
        0 => format!("{qualifier}.{}", COLUMNS[at].name),
        1 => COLUMNS[at].name.to_string(),
        2 if !COLUMNS[at].name.starts_with('"') => COLUMNS[at].name.to_uppercase(),
        _ => COLUMNS[at].name.to_string(),
    };
    let items = if random.bool() {
        "*".to_string()
    } else {
        let items: Vec<String> = (0..random.usize(1..4))
            .map(|_| {
                let at = *one(random, &setting.columns);
                let name = column(random, at);
                match random.u8(0..5) {
                    0 => format!("{name} as \"An Alias\""),
                    1 => format!("{name} as value"),
                    2 => format!("{name} other"),
                    _ => name,
                }
            })
            .collect();
        items.join(", ")
    };
    let mut values = Vec::new();
    let mut conditions = Vec::new();
    for at in &wanted {
        let other = random.u8(0..4) == 0;
        let value = if other {
            *one(random, &OTHERS)
        } else {
            value(random, *at)
        };
        values.push(value.to_string());
        conditions.push(format!("{} = \u{0}", column(random, *at)));
    }
    let (open, close) = if random.u8(0..8) == 0 {
        ("(", ")")
    } else {
        ("", "")
    };
    let conditions = conditions.join(" and ");
    let rest = *one(random, &["", "", "", "", ";", " limit 1", " order by 1"]);
    let table = setting.table;
    let text = format!("select {items} from {table}{alias} where {open}{conditions}{close}{rest}");
    (text, values)
}

/// The query with its values, or with parameters in their places.
fn filled(text: &str, values: &[String], parameters: bool) -> String {
    let mut parts = text.split('\u{0}');
    let mut filled = parts.next().unwrap().to_string();
    for (at, (part, value)) in parts.zip(values).enumerate() {
        if parameters {
            filled.push_str(&format!("${}", at + 1));
        } else {
            filled.push_str(value);
        }
        filled.push_str(part);
    }
    filled
}

/// The text of a value for a parameter.
fn plain(value: &str) -> Option<String> {
    match value {
        "null" => None,
        value => match value.strip_prefix('\'').and_then(|v| v.strip_suffix('\'')) {
            Some(text) => Some(text.replace("''", "'")),
            None => Some(value.to_string()),
        },
    }
}

/// Asks in all ways, planned and not; says how many were found by an index.
fn ask(random: &mut fastrand::Rng, setting: &Setting) -> usize {
    let (text, values) = query(random, setting);
    let whole = filled(&text, &values, false);
    let placed = filled(&text, &values, true);
    let texts: Vec<Option<String>> = values.iter().map(|value| plain(value)).collect();
    let texts: Vec<Option<&str>> = texts.iter().map(|text| text.as_deref()).collect();
    let declared = [
        DataType::Int32,
        DataType::Int64,
        DataType::Int16,
        DataType::Utf8View,
        DataType::Date32,
        DataType::Boolean,
        DataType::Decimal128(38, 10),
    ];
    let types: Vec<Option<DataType>> = values
        .iter()
        .map(|_| (random.u8(0..3) == 0).then(|| one(random, &declared).clone()))
        .collect();
    let mut found = 0;
    for way in 0..3 {
        let [fast, slow] = [0, 1].map(|which| {
            let session = &setting.sessions[which];
            // Both begin from the same.
            if session.transaction() != TransactionStatus::Idle {
                setting.run("savepoint q").unwrap();
            }
            let outcome = match way {
                0 => setting.execute(session, &whole),
                1 => setting.stream(session, &whole),
                _ => setting.prepared(session, (&placed, &types), &texts),
            };
            let after = session.transaction();
            if after == TransactionStatus::Failed {
                setting.run("rollback to q").unwrap();
            }
            (outcome.0, outcome.1, (outcome.2, after))
        });
        assert_eq!(
            (&fast.0, fast.2),
            (&slow.0, slow.2),
            "way {way}: {whole}; {placed} with {texts:?} of {types:?}"
        );
        assert!(!slow.1, "{whole}");
        found += usize::from(fast.1);
    }
    found
}

#[test]
fn what_is_looked_up_is_what_a_plan_gives() {
    let seed = std::env::var("ATOLL_SEED").map_or(1, |seed| seed.parse().unwrap());
    let rounds = std::env::var("ATOLL_QUERIES").map_or(12, |rounds| rounds.parse().unwrap());
    let mut random = fastrand::Rng::with_seed(seed);
    let workers = fixture::workers();
    let (_directory, instance) = opened(&workers);
    let (mut asked, mut found) = (0, 0);
    for _ in 0..rounds {
        let setting = table(&mut random, &workers, instance.session());
        for _ in 0..25 {
            for _ in 0..random.usize(1..4) {
                change(&mut random, &setting);
            }
            found += ask(&mut random, &setting);
            asked += 3;
        }
        let _ = setting.run("rollback");
    }
    // Else nothing was tested.
    assert!(found * 8 > asked, "{found} of {asked} were looked up");
}

/// Rows that lie in blocks, in the key's order and not, and the time of both ways.
#[test]
fn rows_of_blocks_are_looked_up() {
    let workers = fixture::workers();
    let (_directory, instance) = opened(&workers);
    let session = instance.session();
    let setting = Setting {
        workers: Arc::clone(&workers),
        sessions: [session.clone(), session.clone().always_planning()],
        columns: Vec::new(),
        keys: Vec::new(),
        table: "t",
    };
    setting
        .run(
            "create table t (id bigint primary key, n bigint unique, a int, b double precision, s varchar);
             insert into t select n, n * 48271 % 2147483647, n % 1000, n / 7.0, 'text ' || (n % 977) from generate_series(1, 70000) as g(n);
             delete from t where id % 10 = 3;
             update t set a = null where id % 10 = 4",
        )
        .unwrap();
    let mut random = fastrand::Rng::with_seed(7);
    let mut took = [std::time::Duration::ZERO; 2];
    for _ in 0..60 {
        let id = random.u64(1..70_010);
        let text = if random.bool() {
            format!("select * from t where id = {id}")
        } else {
            let n = id * 48271 % 2_147_483_647;
            format!("select s, a from t where n = {n}")
        };
        let outcomes = [0, 1].map(|which| {
            let begun = std::time::Instant::now();
            let outcome = setting.execute(&setting.sessions[which], &text);
            took[which] += begun.elapsed();
            outcome
        });
        assert!(outcomes[0].1 && !outcomes[1].1, "{text}");
        assert_eq!(outcomes[0].0, outcomes[1].0, "{text}");
    }
    println!("looked up: {:?}, planned: {:?}", took[0] / 60, took[1] / 60);
    // What was read is counted.
    let answer = workers
        .handle()
        .block_on(session.execute("select * from t where id = 5"))
        .unwrap()
        .pop()
        .unwrap();
    assert_eq!(answer.statistics.ran_on, "index");
    assert!(answer.statistics.total_bytes() > 0);
    let before: u64 = instance.bytes().iter().flatten().sum();
    let again = session.execute("select * from t where id = 5");
    workers.handle().block_on(again).unwrap();
    let after: u64 = instance.bytes().iter().flatten().sum();
    assert!(after > before);
}

/// Whom a table is not granted to does not read it by its key either.
#[test]
fn rows_are_looked_up_by_rights() {
    let workers = fixture::workers();
    let (_directory, instance) = opened(&workers);
    let run = |session: &Session, text: &str| workers.handle().block_on(session.execute(text));
    let own = instance.session();
    let made = "create table t (id int primary key, a int); insert into t values (1, 2); create role ann; create role eve; grant select on t to ann";
    run(&own, made).unwrap();
    let query = "select a from t where id = 1";
    for (user, code) in [
        ("ann", None),
        ("eve", Some("42501")),
        ("nobody", Some("42501")),
    ] {
        let session = instance.session().of_user(user);
        let prepared = |session: &Session| {
            workers.handle().block_on(async {
                let text = "select a from t where id = $1";
                let statement = own.prepare(text, &[]).await?.unwrap();
                session.run(&statement, &[Some("1")]).await.map(drop)
            })
        };
        for session in [session.clone(), session.always_planning()] {
            let done = run(&session, query);
            assert_eq!(
                done.err().map(|e| e.sqlstate().to_string()).as_deref(),
                code
            );
            let done = prepared(&session);
            assert_eq!(
                done.err().map(|e| e.sqlstate().to_string()).as_deref(),
                code
            );
        }
    }
    let ann = instance.session().of_user("ann");
    run(&ann, "begin").unwrap();
    assert_eq!(run(&ann, query).unwrap()[0].rows(), 1);
    run(&own, "revoke select on t from ann").unwrap();
    let other = instance.session().of_user("ann");
    assert!(run(&other, query).is_err());
}

/// A panic and a failed transaction behave as with other statements.
#[test]
fn a_failed_transaction_looks_nothing_up() {
    let workers = fixture::workers();
    let (_directory, instance) = opened(&workers);
    let session = instance.session();
    let run = |text: &str| workers.handle().block_on(session.execute(text));
    run("create table t (id int primary key); insert into t values (1)").unwrap();
    run("begin").unwrap();
    run("insert into t values (2)").unwrap();
    assert_eq!(run("select id from t where id = 2").unwrap()[0].rows(), 1);
    assert!(run("select nothing from t where id = 2").is_err());
    let error = run("select id from t where id = 2").unwrap_err();
    assert_eq!(error.sqlstate(), "25P02");
    run("rollback").unwrap();
    assert_eq!(run("select id from t where id = 2").unwrap()[0].rows(), 0);
    run("begin transaction isolation level serializable").unwrap();
    assert_eq!(run("select id from t where id = 1").unwrap()[0].rows(), 1);
    run("commit").unwrap();
}
