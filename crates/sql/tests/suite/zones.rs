//! Time zones and styles of dates: what sessions set, and that all that depends on it follows.

use std::sync::Arc;

use arrow::array::{Array, AsArray};

use crate::fixture;

struct Database {
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
    _directory: tempfile::TempDir,
}

impl Database {
    fn new() -> Database {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let store = store::Options::default();
        let options = sql::Options::spilling_to(directory.path());
        let path = directory.path().join("t.atoll");
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        Database {
            workers,
            instance,
            _directory: directory,
        }
    }

    /// The first row of the last statement, whose values are texts.
    fn row(&self, session: &sql::Session, text: &str) -> Result<Vec<String>, String> {
        let answers = self.workers.handle().block_on(session.execute(text));
        let answer = answers.map_err(|e| format!("!{}", e.sqlstate()))?;
        let answer = answer.last().unwrap();
        let Some(batch) = answer.batches.iter().find(|batch| batch.num_rows() > 0) else {
            return Ok(Vec::new());
        };
        let value = |column: &arrow::array::ArrayRef| {
            let texts = arrow::compute::cast(column, &arrow::datatypes::DataType::Utf8).unwrap();
            let texts = texts.as_string::<i32>();
            if texts.is_null(0) {
                String::new()
            } else {
                texts.value(0).to_owned()
            }
        };
        Ok(batch.columns().iter().map(value).collect())
    }
}

/// Expressions drawn at random in sessions drawn at random, and what PostgreSQL 15 makes of them: a line with `#` tells the
/// zone, the style of dates and that of intervals of those that follow, each with its answer as a text.
const ANSWERS: &str = include_str!("zones/answers.tsv");

#[test]
fn random_expressions_are_those_of_postgresql() {
    let database = Database::new();
    let session = database.instance.session();
    let (mut settings, mut wrong, mut count) = (String::new(), Vec::new(), 0);
    let mut group: Vec<(&str, &str)> = Vec::new();
    let mut run = |group: &mut Vec<(&str, &str)>, settings: &str| {
        let items: Vec<String> = group
            .iter()
            .map(|(expression, _)| format!("({expression})::text"))
            .collect();
        let all = database.row(&session, &format!("select {}", items.join(", ")));
        for (at, (expression, wanted)) in group.iter().enumerate() {
            let found = match &all {
                Ok(row) => row[at].clone(),
                Err(_) => match database.row(&session, &format!("select {}", items[at])) {
                    Ok(row) => row[0].clone(),
                    Err(e) => e,
                },
            };
            if found != *wanted {
                wrong.push(format!(
                    "{settings}: {expression}: {found}, and not {wanted}"
                ));
            }
        }
        count += group.len();
        group.clear();
    };
    for line in ANSWERS.lines() {
        let parts: Vec<&str> = line.split('\t').collect();
        if let ["#", zone, dates, intervals] = parts[..] {
            run(&mut group, &settings);
            settings = format!(
                "set timezone = '{zone}'; set datestyle = '{dates}'; set intervalstyle = '{intervals}'"
            );
            database.row(&session, &settings).unwrap();
            continue;
        }
        let [expression, wanted] = parts[..] else {
            panic!("{line:?}");
        };
        group.push((expression, wanted));
    }
    run(&mut group, &settings);
    assert!(count > 3_000, "{count}");
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(200)].join("\n")
    );
}

#[test]
fn settings_end_with_their_transaction() {
    let database = Database::new();
    let session = database.instance.session();
    let show = || database.row(&session, "show timezone").unwrap().remove(0);
    let run = |text: &str| database.row(&session, text).map(drop);
    assert_eq!(show(), "UTC");
    run("set time zone 'europe/berlin'").unwrap();
    assert_eq!(show(), "Europe/Berlin");
    run("begin").unwrap();
    run("set local timezone = 'Asia/Tokyo'").unwrap();
    assert_eq!(show(), "Asia/Tokyo");
    run("commit").unwrap();
    assert_eq!(show(), "Europe/Berlin");
    run("begin").unwrap();
    run("set timezone to -8").unwrap();
    assert_eq!(show(), "<-08>+08");
    run("rollback").unwrap();
    assert_eq!(show(), "Europe/Berlin");
    run("set time zone interval '-08:30' hour to minute").unwrap();
    assert_eq!(show(), "<-08:30>+08:30");
    run("reset timezone").unwrap();
    assert_eq!(show(), "UTC");
    assert_eq!(run("set timezone = 'Nowhere'"), Err("!22023".to_owned()));
    run("set datestyle to german").unwrap();
    let style = database.row(&session, "show datestyle").unwrap();
    assert_eq!(style, ["German, DMY"]);
}

#[test]
fn what_is_kept_does_not_depend_on_who_made_it() {
    let database = Database::new();
    let (berlin, tokyo) = (database.instance.session(), database.instance.session());
    let run = |session: &sql::Session, text: &str| database.row(session, text).unwrap();
    run(&berlin, "set timezone = 'Europe/Berlin'");
    run(&tokyo, "set timezone = 'Asia/Tokyo'");
    run(
        &berlin,
        "create table t (at timestamptz, local timestamp default now(), day date generated always as (at::date) stored, \
         check (at < '2100-01-01'))",
    );
    // Midnight there is another instant here.
    run(&berlin, "insert into t (at) values ('2024-07-01')");
    run(&tokyo, "insert into t (at) values ('2024-07-01')");
    run(
        &berlin,
        "create view v as select at::text as shown, day::text as day from t order by at",
    );
    let shown = |session: &sql::Session, offset: u32| {
        run(session, &format!("select * from v limit 1 offset {offset}"))
    };
    assert_eq!(shown(&berlin, 0), ["2024-06-30 17:00:00+02", "2024-06-30"]);
    assert_eq!(shown(&berlin, 1), ["2024-07-01 00:00:00+02", "2024-06-30"]);
    assert_eq!(shown(&tokyo, 0), ["2024-07-01 00:00:00+09", "2024-06-30"]);
    assert_eq!(shown(&tokyo, 1), ["2024-07-01 07:00:00+09", "2024-06-30"]);
    let day = |session: &sql::Session| {
        run(
            session,
            "select count(*)::text from t where at::date = '2024-07-01'",
        )
    };
    assert_eq!(day(&berlin), ["1"]);
    assert_eq!(day(&tokyo), ["2"]);
    // What is compiled for one session is not used by another.
    for (session, count) in [(&berlin, "1"), (&tokyo, "2"), (&berlin, "1")] {
        run(
            session,
            "prepare p as select count(*)::text from t where at >= '2024-07-01'",
        );
        assert_eq!(run(session, "execute p"), [count]);
        run(session, "deallocate p");
    }
    // Nor is what was prepared before the zone was another.
    run(
        &berlin,
        "prepare q as select '2024-07-01'::timestamptz::text",
    );
    assert_eq!(run(&berlin, "execute q"), ["2024-07-01 00:00:00+02"]);
    run(&berlin, "set timezone = 'Asia/Tokyo'");
    assert_eq!(run(&berlin, "execute q"), ["2024-07-01 00:00:00+09"]);
}
