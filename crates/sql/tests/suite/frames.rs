//! Data frames as tables: whichever executor runs a statement, beside tables of the store, in transactions, and where they
//! are not seen.

use std::sync::Arc;

use arrow::array::*;
use arrow::compute::{cast, concat_batches};
use arrow::datatypes::DataType;
use arrow::error::ArrowError;
use sql::{Executor, Frames, Session};

use crate::fixture;

struct Fixture {
    _directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    session: Session,
}

impl Fixture {
    fn new(executor: Executor) -> Fixture {
        let directory = tempfile::tempdir().unwrap();
        let workers = fixture::workers();
        let mut store = store::Options::default();
        store.pool.bytes = 8 << 20;
        let mut options = sql::Options::spilling_to(directory.path());
        options.executor = executor;
        let path = directory.path().join("frames.atoll");
        let session = fixture::instance(&workers, &path, 1 << 30, store, options).session();
        let fixture = Fixture {
            _directory: directory,
            workers,
            session,
        };
        let text =
            "create table t (a bigint, b varchar); insert into t values (1, 'one'), (2, 'two');
             create view v as select a from t";
        fixture.rows(Frames::default(), text).unwrap();
        fixture
    }

    /// What the last statement of `text` returns, as texts.
    fn rows(&self, frames: Frames, text: &str) -> Result<Vec<Vec<String>>, String> {
        let session = self.session.clone().with_frames(frames);
        let done = self.workers.handle().block_on(session.execute(text));
        let answer = done.map_err(|e| e.to_string())?.pop().unwrap();
        let all = concat_batches(&answer.schema, &answer.batches).unwrap();
        let texts = all
            .columns()
            .iter()
            .map(|column| cast(column, &DataType::Utf8).unwrap());
        let texts: Vec<ArrayRef> = texts.collect();
        let value = |column: &ArrayRef, row: usize| {
            if column.is_null(row) {
                "NULL".to_string()
            } else {
                column.as_string::<i32>().value(row).to_string()
            }
        };
        let rows = 0..all.num_rows();
        Ok(rows
            .map(|row| texts.iter().map(|column| value(column, row)).collect())
            .collect())
    }

    fn missing(&self, text: &str) -> Vec<String> {
        let names = self.session.missing(text);
        self.workers.handle().block_on(names).unwrap()
    }
}

fn batch(rows: std::ops::Range<i64>) -> RecordBatch {
    let texts = rows
        .clone()
        .map(|n| (n % 3 != 0).then(|| format!("text {n}")));
    let texts: ArrayRef = Arc::new(texts.collect::<StringArray>());
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
    RecordBatch::try_from_iter_with_nullable([("a", numbers, true), ("b", texts, true)]).unwrap()
}

fn held(name: &str, rows: i64) -> Frames {
    let mut frames = Frames::default();
    let (first, rest) = (batch(0..rows / 3), batch(rows / 3..rows));
    frames
        .add_batches(name, &first.schema(), vec![first, rest])
        .unwrap();
    frames
}

#[test]
fn every_executor_reads_frames() {
    for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
        let fixture = Fixture::new(executor);
        let rows = |text| fixture.rows(held("df", 200_000), text).unwrap();
        let sums = rows("select count(*), count(b), sum(a), max(b) from df where a >= 7");
        let texts = (7..200_000).filter(|n| n % 3 != 0).count().to_string();
        let sum = (7..200_000).sum::<i64>().to_string();
        assert_eq!(
            sums,
            [["199993", texts.as_str(), sum.as_str(), "text 99998"]],
            "{executor:?}"
        );
        let joined = rows("select t.b, df.b from df join t on df.a = t.a order by t.a");
        assert_eq!(
            joined,
            [["one", "text 1"], ["two", "text 2"]],
            "{executor:?}"
        );
        let twice = rows("select count(*) from df x join df y on x.a = y.a where x.a < 1000");
        assert_eq!(twice, [["1000"]], "{executor:?}");
        let few = rows("select a from df where b = 'text 5' limit 1");
        assert_eq!(few, [["5"]], "{executor:?}");
    }
}

#[test]
fn frames_are_seen_by_statements_of_their_handle_alone() {
    let fixture = Fixture::new(Executor::Fused);
    assert_eq!(
        fixture
            .rows(held("df", 9), "select count(*) from df")
            .unwrap(),
        [["9"]]
    );
    let error = fixture
        .rows(Frames::default(), "select count(*) from df")
        .unwrap_err();
    assert!(
        error.starts_with("relation \"df\" does not exist"),
        "{error}"
    );
    for text in [
        "create view w as select a from df",
        "insert into df values (1, 'x')",
        "delete from df",
        "update df set a = 1",
        "drop table df",
        "select * from public.df",
    ] {
        let error = fixture.rows(held("df", 9), text).unwrap_err();
        assert!(error.contains("df\" does not exist"), "{text}: {error}");
    }
    for name in ["t", "v"] {
        let error = fixture.rows(held(name, 9), "select 1").unwrap_err();
        assert!(error.contains("has the name of a table"), "{error}");
    }
    // A view that names what is a frame elsewhere does not see it.
    fixture
        .rows(
            Frames::default(),
            "create table df (a bigint); create view w as select a from df",
        )
        .unwrap();
    assert_eq!(
        fixture
            .rows(held("other", 9), "select count(*) from w")
            .unwrap(),
        [["0"]]
    );
}

#[test]
fn frames_go_into_tables_within_transactions() {
    let fixture = Fixture::new(Executor::Fused);
    let all = "select count(*) from t";
    fixture.rows(Frames::default(), "begin").unwrap();
    fixture
        .rows(held("df", 9), "insert into t select * from df")
        .unwrap();
    assert_eq!(fixture.rows(Frames::default(), all).unwrap(), [["11"]]);
    fixture.rows(Frames::default(), "rollback").unwrap();
    assert_eq!(fixture.rows(Frames::default(), all).unwrap(), [["2"]]);
    fixture
        .rows(
            held("df", 9),
            "create table u as select a from df where a > 3",
        )
        .unwrap();
    assert_eq!(
        fixture
            .rows(Frames::default(), "select sum(a) from u")
            .unwrap(),
        [["30"]]
    );
}

#[test]
fn streams_are_read_once() {
    let fixture = Fixture::new(Executor::Fused);
    let stream = |last: Option<ArrowError>| {
        let batches = (0..20).map(|n| Ok(batch(n * 10_000..(n + 1) * 10_000)));
        let batches: Vec<_> = batches.chain(last.map(Err)).collect();
        let schema = batch(0..1).schema();
        let mut frames = Frames::default();
        let reader = RecordBatchIterator::new(batches, schema);
        frames.add_reader("df", Box::new(reader)).unwrap();
        frames
    };
    let sum = (0..200_000).sum::<i64>().to_string();
    assert_eq!(
        fixture.rows(stream(None), "select sum(a) from df").unwrap(),
        [[sum.as_str()]]
    );
    let twice = "select count(*) from df x join df y on x.a = y.a";
    let error = fixture.rows(stream(None), twice).unwrap_err();
    assert!(error.contains("df: was read already"), "{error}");
    let failed = stream(Some(ArrowError::ComputeError("no more".into())));
    let error = fixture.rows(failed, "select sum(a) from df").unwrap_err();
    assert!(error.contains("df: Compute error: no more"), "{error}");
}

#[test]
fn names_that_nothing_has_are_told() {
    let fixture = Fixture::new(Executor::Fused);
    let cases: &[(&str, &[&str])] = &[
        ("select * from Df, \"Df\", public.x, t, v", &["Df", "df"]),
        ("with x as (select * from df) select * from x", &["df"]),
        (
            "insert into t select * from df where a in (select a from u)",
            &["df", "u"],
        ),
        ("create table n as select * from df", &["df"]),
        ("explain analyze select * from df", &["df"]),
        ("copy (select * from df) to 'x.csv'", &["df"]),
        ("select a from df where a = $1", &["df"]),
        ("delete from t where a in (select a from df)", &["df"]),
        ("create table n (a int)", &[]),
        ("insert into n values (1)", &[]),
        ("create view n as select * from df", &[]),
        ("drop table n", &[]),
        ("select 1; select * from df", &[]),
        ("this is no statement", &[]),
        ("begin", &[]),
        ("", &[]),
    ];
    for (text, names) in cases {
        assert_eq!(fixture.missing(text), *names, "{text}");
    }
    // Asking is no statement of a transaction: it does not fail it.
    fixture
        .rows(
            Frames::default(),
            "begin; insert into t values (3, 'three')",
        )
        .unwrap();
    assert_eq!(fixture.missing("select * from df, t"), ["df"]);
    assert_eq!(
        fixture.missing("select * from t, nothing where x ="),
        [""; 0]
    );
    fixture
        .rows(Frames::default(), "create table made (a int)")
        .unwrap();
    assert_eq!(fixture.missing("select * from made"), [""; 0]);
    fixture.rows(Frames::default(), "commit").unwrap();
    let counted = fixture
        .rows(Frames::default(), "select count(*) from t")
        .unwrap();
    assert_eq!(counted, [["3"]]);
}
