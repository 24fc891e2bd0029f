//! Single-row inserts of values of all types, and updates and deletes by a key, are what a plan of them is: the same statements
//! to a session that plans none of them and to one of another store that plans everything give the same answers, the same
//! errors and the same tables.

use std::sync::Arc;

use arrow::datatypes::{DataType, TimeUnit};
use sql::{AnswerStream, Error, Instance, PreparedStatement, Session, TransactionStatus};
use workers::Workers;

use crate::written_columns::{COLUMNS, Column, LEFT_OUT};
use crate::{fixture, one, opened};

/// What an answer shows, or the state and the words of an error; and whether an index found its row.
pub(crate) type Said = (Result<String, (String, String)>, bool);

/// Values as statements may write them, of whatever type.
const WRITTEN: [&str; 17] = [
    "null",
    "5",
    "-2.50",
    "1e2",
    "true",
    "date '2020-02-29'",
    "timestamp '2020-01-02 03:04:05'",
    "'2020-01-02 03:04:05+02'::timestamptz",
    "'{}'::jsonb",
    "'[1]'::json",
    "array[1, null, 3]",
    "array['a', null]",
    "array[1]::int[]",
    "cast('7' as smallint)",
    "5::bigint",
    "'1.5'::numeric(8, 2)",
    "'abc'::varchar(2)",
];

const BETWEEN: [&str; 10] = [
    "select count(*), sum(n), min(p), max(ts) from k",
    "select id, n, p, tz from k where id < 4 order by id",
    "update k set n = n + 1 where n > 3",
    "set timezone = 'Europe/Berlin'",
    "set timezone = 'UTC'",
    "set datestyle = 'ISO, DMY'",
    "set datestyle = 'ISO, MDY'",
    "savepoint s",
    "rollback to s",
    "delete from parent where id = 3",
];

/// A store with the tables, and a session of it.
pub(crate) struct Side {
    _directory: tempfile::TempDir,
    _instance: Arc<Instance>,
    pub session: Session,
}

impl Side {
    /// One whose table has a computed column, or one that could be.
    pub(crate) fn new(workers: &Arc<Workers>, (plans, computes): (bool, bool)) -> Side {
        let (directory, instance) = opened(workers);
        let session = instance.session();
        let columns = COLUMNS
            .iter()
            .map(|own| format!("{} {}", own.name, own.declared));
        let columns = columns.collect::<Vec<_>>().join(", ");
        let left_out = if computes {
            LEFT_OUT.to_owned()
        } else {
            LEFT_OUT.replace("generated always as (n + 1) stored", "default 3")
        };
        let tables = format!(
            "create type mood as enum ('calm', 'wild');
             create table parent (id integer primary key, s text);
             insert into parent values (1, 'a'), (2, 'b'), (3, 'c');
             create table k (id integer primary key, {columns}, {left_out});
             create table pair (a bigint, b text, n numeric(6, 2) not null, primary key (a, b));
             create table child (k integer references k on delete cascade on update cascade, serial serial primary key)"
        );
        workers.handle().block_on(session.execute(&tables)).unwrap();
        Side {
            session: if plans {
                session.always_planning()
            } else {
                session
            },
            _directory: directory,
            _instance: instance,
        }
    }

    pub(crate) fn run(&self, workers: &Workers, text: &str) -> Said {
        workers.handle().block_on(async {
            match self.session.stream(text).await {
                Ok(stream) => shown(stream).await,
                Err(e) => (Err(error(&e)), false),
            }
        })
    }

    pub(crate) fn prepared(&self, workers: &Workers, text: &str, values: &[Option<&str>]) -> Said {
        workers.handle().block_on(async {
            let prepared = self.session.prepare(text, &[]).await;
            let prepared: PreparedStatement = match prepared {
                Ok(prepared) => prepared.unwrap(),
                Err(e) => return (Err(error(&e)), false),
            };
            match self.session.run(&prepared, values).await {
                Ok(stream) => shown(stream).await,
                Err(e) => (Err(error(&e)), false),
            }
        })
    }
}

fn error(e: &Error) -> (String, String) {
    // Which of several wrong rows is named is for whoever finds one first.
    let said = e.to_string();
    let said = said.split(": Failing row").next().unwrap_or_default();
    let said = said.split(": Key (").next().unwrap_or_default();
    (e.sqlstate().to_string(), said.to_owned())
}

async fn shown(mut stream: AnswerStream) -> Said {
    let mut batches = Vec::new();
    while let Some(batch) = stream.next_batch().await {
        match batch {
            Ok(batch) => batches.push(batch),
            Err(e) => return (Err(error(&e)), false),
        }
    }
    let rows = arrow::util::pretty::pretty_format_batches(&batches).unwrap();
    let is_found = stream.statistics().ran_on == "index";
    (Ok(format!("{:?} {rows}", stream.changed())), is_found)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A text for a column: a good one mostly.
fn text(random: &mut fastrand::Rng, column: &Column) -> Option<&'static str> {
    match random.u8(0..100) {
        0..10 => None,
        10..94 => Some(*one(random, &column.values[..4.min(column.values.len())])),
        _ => Some(*one(random, column.values)),
    }
}

/// A value for a column as a statement may write it.
fn value(random: &mut fastrand::Rng, column: &Column) -> String {
    if random.u8(0..100) < 4 {
        return (*one(random, &WRITTEN)).to_owned();
    }
    let Some(text) = text(random, column) else {
        return "null".into();
    };
    let word = column.declared.split(" unique").next().unwrap();
    let word = word.split(" check").next().unwrap();
    let word = word.split(" references").next().unwrap();
    let is_number = text.parse::<f64>().is_ok_and(f64::is_finite) && text.trim() == text;
    match random.u8(0..6) {
        0 | 1 if is_number && ["n", "m", "f", "r", "p", "w", "nu"].contains(&column.name) => {
            text.to_owned()
        }
        2 => format!("{}::{word}", quoted(text)),
        3 => format!("cast({} as {word})", quoted(text)),
        _ => quoted(text),
    }
}

/// Some columns.
fn chosen(random: &mut fastrand::Rng, most: usize) -> Vec<&'static Column> {
    let mut all: Vec<&Column> = COLUMNS.iter().collect();
    random.shuffle(&mut all);
    all.truncate(random.usize(1..=most));
    all
}

/// A condition that names one row, or nearly so.
fn condition(random: &mut fastrand::Rng) -> String {
    let id = random.u8(1..15);
    let of = |at: usize| &COLUMNS[at];
    match random.u8(0..12) {
        0 => format!("code = {}", value(random, of(0))),
        1 => format!("k.u = {}", value(random, of(16))),
        2 => format!("ts = {}", value(random, of(11))),
        3 => match random.u8(0..4) {
            0 => format!("id = {id} and n > 0"),
            1 => format!("id = {id} and n = {id} and n = {id}"),
            2 => format!("n = {id} and id = {id} and m = 1"),
            _ => {
                let column = one(random, &COLUMNS);
                format!("id = {id} and {} = {}", column.name, value(random, column))
            }
        },
        4 => format!("id = {id}::bigint"),
        5 => format!("id = '{id}'"),
        6 => (*one(
            random,
            &["id = null", "id = 1.0", "id = 99999999999", "id = 'x'"],
        ))
        .to_owned(),
        _ => format!("(id = {id})"),
    }
}

/// What a statement may return: nothing, columns, which need no plan, and what does.
const RETURNING: [&str; 9] = [
    "",
    "",
    "",
    "",
    " returning id, n, p, tz, ai, jb, g",
    " returning *",
    " returning k.id as \"Id\", n, n as m, code, nothing",
    " returning id, n + 1, upper(code)",
    " returning no_such",
];

/// What an `update` assigns.
fn assignment(random: &mut fastrand::Rng) -> String {
    const COMPUTED: [&str; 22] = [
        "n = n + 5",
        "n = n - 1",
        "n = k.n + 2000000",
        "m = m + 30000",
        "m = (m - 1)",
        "n = m + 1",
        "p = p + 1.5",
        "p = p - 0.005",
        "p = p + 999999.99",
        "f = f + 1",
        "r = r * 2",
        "nu = nu + 1.5",
        "n = n * 3",
        "n = p",
        "code = code",
        "n = code",
        "ai = ai || 5",
        "jb = '{\"a\": 1}'::jsonb || '{}'",
        "n = default",
        "made = default",
        "g = 5",
        "id = id + 100",
    ];
    if random.u8(0..100) < 35 {
        return (*one(random, &COMPUTED)).to_owned();
    }
    let column = one(random, &COLUMNS);
    format!("{} = {}", column.name, value(random, column))
}

/// An `insert`, an `update` or a `delete` that says its values.
fn written(random: &mut fastrand::Rng, step: usize) -> String {
    let returning = *one(random, &RETURNING);
    match random.u8(0..10) {
        0..5 => {
            let columns = chosen(random, 8);
            let rows = (0..*one(random, &[1, 1, 1, 1, 3])).map(|row| {
                let values = columns.iter().map(|own| value(random, own));
                let values = values.collect::<Vec<_>>().join(", ");
                let id = match step % 4 {
                    0 => step % 14 + 1,
                    _ => 10 * step + row,
                };
                format!("({id}, {values})")
            });
            let rows = rows.collect::<Vec<_>>().join(", ");
            let names: Vec<&str> = columns.iter().map(|own| own.name).collect();
            let names = names.join(", ");
            format!("insert into k (id, {names}) values {rows}{returning}")
        }
        5..8 => {
            let all = (0..random.usize(1..4)).map(|_| assignment(random));
            let all = all.collect::<Vec<_>>().join(", ");
            format!("update k set {all} where {}{returning}", condition(random))
        }
        8 => format!("delete from k where {}{returning}", condition(random)),
        _ => {
            let (a, b) = (random.u8(1..4), *one(random, &["x", "y"]));
            let more = *one(random, &["1", "0.25", "-9999", "0.125"]);
            let by = format!("where b = '{b}' and a = {a}");
            match random.u8(0..6) {
                0 => format!("delete from pair {by}"),
                1 => format!("update pair set n = null {by}"),
                2 => format!("insert into pair values ({a}, '{b}', {more})"),
                3 => format!("insert into child (k) values ({a})"),
                _ => format!("update pair set n = n + {more} {by} returning *"),
            }
        }
    }
}

/// The same with parameters: the text, and their values.
fn with_parameters(random: &mut fastrand::Rng, step: usize) -> (String, Vec<Option<String>>) {
    let columns = chosen(random, 6);
    let texts = columns
        .iter()
        .map(|own| text(random, own).map(str::to_owned));
    let mut values: Vec<Option<String>> = texts.collect();
    let place = |at: usize, own: &Column| match own.name {
        "jb" | "tz" if step.is_multiple_of(2) => {
            format!("${}::{}", at + 1, own.declared)
        }
        _ => format!("${}", at + 1),
    };
    let last = columns.len() + 1;
    let places = columns.iter().enumerate().map(|(at, own)| place(at, own));
    let places: Vec<String> = places.collect();
    let text = match random.u8(0..10) {
        0..6 => {
            values.push(Some((10 * step + 5).to_string()));
            let names: Vec<&str> = columns.iter().map(|own| own.name).collect();
            let (names, places) = (names.join(", "), places.join(", "));
            let returning = one(random, &RETURNING);
            format!("insert into k ({names}, id) values ({places}, ${last}){returning}")
        }
        6..9 => {
            values.push(Some(random.u8(1..15).to_string()));
            let all = columns.iter().zip(&places);
            let mut all: Vec<String> = all
                .map(|(own, at)| format!("{} = {at}", own.name))
                .collect();
            if !columns.iter().any(|own| own.name == "n") {
                all.push(format!("n = n + ${}", last + 1));
                values.push(Some("3".into()));
            }
            let returning = one(random, &RETURNING);
            format!(
                "update k set {} where id = ${last}{returning}",
                all.join(", ")
            )
        }
        _ => {
            values = vec![Some(random.u8(1..15).to_string())];
            "delete from k where id = $1".to_owned()
        }
    };
    (text, values)
}

#[test]
fn what_is_written_without_a_plan_is_what_a_plan_writes() {
    let workers = fixture::workers();
    let (mut gathered, mut found) = (0, 0);
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        // Rows of a table with computed columns do not wait.
        let computes = seed % 3 == 0;
        let own = Side::new(&workers, (false, computes));
        let other = Side::new(&workers, (true, computes));
        let mut log: Vec<String> = Vec::new();
        for id in 1..12 {
            let text = format!(
                "insert into k (id, n, m, p, ts) values ({id}, {id}, 1, 0.25, '2021-01-{id:02}')"
            );
            assert!(own.run(&workers, &text).0.is_ok());
            assert!(other.run(&workers, &text).0.is_ok());
        }
        for step in 1..150 {
            let status = own.session.transaction();
            let failed = status == TransactionStatus::Failed;
            let (said, wanted);
            if failed || random.u8(0..100) < 85 && random.bool() {
                let text = match status {
                    TransactionStatus::Failed => "rollback".to_owned(),
                    TransactionStatus::Idle if random.u8(0..10) < 3 => "begin".to_owned(),
                    TransactionStatus::Open if random.u8(0..10) < 1 => "commit".to_owned(),
                    _ if random.u8(0..10) < 2 => (*one(&mut random, &BETWEEN)).to_owned(),
                    _ => written(&mut random, step),
                };
                said = own.run(&workers, &text);
                wanted = other.run(&workers, &text);
                log.push(text);
            } else {
                let (text, values) = with_parameters(&mut random, step);
                log.push(format!("{text} {values:?}"));
                let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
                said = own.prepared(&workers, &text, &values);
                wanted = other.prepared(&workers, &text, &values);
            }
            found += usize::from(said.1);
            gathered += own.session.rows_gathered();
            assert_eq!(said.0, wanted.0, "seed {seed}: {log:#?}");
            assert_eq!(own.session.transaction(), other.session.transaction());
        }
        for side in [&own, &other] {
            let _ = side.run(&workers, "commit");
            side.run(&workers, "set timezone = 'UTC'").0.unwrap();
        }
        for query in [
            "select * from k order by id",
            "select * from pair order by a, b",
            "select * from child order by serial",
        ] {
            let (own, other) = (own.run(&workers, query), other.run(&workers, query));
            assert_eq!(own.0, other.0, "seed {seed}: {log:#?}");
        }
    }
    assert!(gathered > 30, "{gathered} rows waited");
    assert!(found > 60, "{found} rows were found by a key");
}

/// Which statements need no plan: those that programs send.
#[test]
fn plain_updates_and_deletes_find_their_row_by_its_key() {
    let workers = fixture::workers();
    let side = Side::new(&workers, (false, true));
    let run = |text: &str| side.run(&workers, text);
    run("insert into k (id, code, n, p, u) values (1, 'a', 5, 1.25, 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'), (2, 'b', 6, 2, null)").0.unwrap();
    for (text, wanted) in [
        ("update k set n = 7 where id = 1", true),
        ("update k set n = n + 1, p = p - 0.25 where id = 1", true),
        (
            "update k set tz = '2020-01-02 03:04+02', ai = '{1,2}', jb = '{\"a\": 1}', i = '1 day' where code = 'a'",
            true,
        ),
        (
            "update k set ai = array[1, 2], y = '\\x00ff' where u = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'",
            true,
        ),
        ("update k set n = n * 2 where id = 2", true),
        (
            "update k set m = 3 where id = 1 and n = 8 and code = 'a'",
            true,
        ),
        ("update k set m = 4 where id = 1 and n = 9", false),
        ("update k set n = n + 1 where id = 77", false),
        ("update k set tz = now() where id = 2", false),
        ("update k set n = 1 where n = 14", false),
        ("update k as t set n = 1 where t.id = 2", false),
        ("update k set n = p where id = 2", false),
        ("delete from k where n = 20", false),
        ("delete from k where id = 2", true),
    ] {
        let (said, found) = run(text);
        assert_eq!(found, wanted, "{text}: {said:?}");
        said.unwrap();
    }
    let left = run("select n, p, tz, ai, jb, i, y, g from k").0.unwrap();
    for value in [
        "| 8 ",
        "1.00",
        "2020-01-02T01:04:00Z",
        "[1, 2]",
        "00ff",
        "| 9 ",
    ] {
        assert!(left.contains(value), "{value}: {left}");
    }
    for (text, values, wanted) in [
        (
            "update k set n = n + $1, tz = $2 where id = $3",
            vec![Some("3"), None, Some("1")],
            true,
        ),
        (
            "update k set at = $1, u = $2 where id = $3",
            vec![Some("{a}"), None, Some("1")],
            true,
        ),
        ("delete from k where id = $1", vec![Some("1")], true),
    ] {
        let (said, found) = side.prepared(&workers, text, &values);
        assert_eq!(found, wanted, "{text}: {said:?}");
        said.unwrap();
    }
}

/// The types of parameters are those of the columns that they stand for, whether a plan tells them or not.
#[test]
fn parameters_have_the_types_of_their_columns() {
    let workers = fixture::workers();
    let side = Side::new(&workers, (false, true));
    let instant = DataType::Timestamp(TimeUnit::Microsecond, Some("+00:00".into()));
    let text = DataType::Utf8View;
    for (statement, wanted) in [
        (
            "update k set n = n + $1, tz = $2, code = $4 where id = $3",
            vec![
                DataType::Int64,
                instant.clone(),
                DataType::Int32,
                text.clone(),
            ],
        ),
        (
            "update k set m = $1, d = $2::date where k.code = $3",
            vec![DataType::Int16, DataType::Date32, text.clone()],
        ),
        (
            "update k set n = $1 where id = $2 and n > 0",
            vec![DataType::Int64, DataType::Int32],
        ),
        (
            "update k set m = $1 where id = $2 returning *",
            vec![DataType::Int16, DataType::Int32],
        ),
        (
            "insert into k (id, tz) values ($1, $2) returning id, tz as at",
            vec![DataType::Int32, instant.clone()],
        ),
        (
            "delete from k where tz = $1 returning k.id",
            vec![instant.clone()],
        ),
        ("delete from k where tz = $1", vec![instant.clone()]),
        (
            "insert into k (id, tz, code) values ($1, $3, $2)",
            vec![DataType::Int32, text, instant],
        ),
    ] {
        let prepared = side.session.prepare(statement, &[]);
        let prepared = workers.handle().block_on(prepared).unwrap().unwrap();
        assert_eq!(prepared.parameters(), wanted, "{statement}");
    }
}

/// Who may change a table and not read it may not name its rows, and a row that others refer to stays.
#[test]
fn what_a_table_asks_for_holds_for_rows_that_a_key_finds() {
    let workers = fixture::workers();
    let side = Side::new(&workers, (false, true));
    let run = |text: &str| side.run(&workers, text).0;
    let state = |text: &str| run(text).unwrap_err().0;
    run("insert into k (id, n, up) values (1, 5, 1), (2, 6, 2)").unwrap();
    assert_eq!(state("update k set n = 2000000 where id = 1"), "23514");
    assert_eq!(state("update k set id = 2 where id = 1"), "23505");
    assert_eq!(state("update k set id = null where id = 1"), "23502");
    assert_eq!(state("update k set up = 9 where id = 1"), "23503");
    assert_eq!(
        state("update k set code = 'abcdefghij' where id = 1"),
        "22001"
    );
    assert_eq!(state("update k set g = 1 where id = 1"), "428C9");
    assert_eq!(state("update k set n = 'x' where id = 1"), "22P02");
    assert_eq!(state("delete from parent where id = 1"), "23503");
    run("insert into child (k) values (1)").unwrap();
    run("update k set id = 10 where id = 1").unwrap();
    let moved = run("select k from child").unwrap();
    assert!(moved.contains("| 10"), "{moved}");
    run("delete from k where id = 10").unwrap();
    let left = run("select count(*) from child").unwrap();
    assert!(left.contains("| 0"), "{left}");
    run("create role editor login").unwrap();
    run("grant update, delete on k to editor").unwrap();
    run("set role editor").unwrap();
    assert_eq!(state("update k set n = 1 where id = 2"), "42501");
    assert_eq!(state("delete from k where id = 2"), "42501");
    run("reset role").unwrap();
    let kept = run("select n from k where id = 2").unwrap();
    assert!(kept.contains("| 6"), "{kept}");
}
