//! Statements that change rows find them through the engine, and change the rows that a model changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow::array::AsArray;
use arrow::datatypes::Int64Type;
use sql::{Answer, Executor, Session};

use crate::answers::rows;
use crate::fixture;

/// Rows that tables begin with: of more than one block.
const ROWS: i64 = 70_000;
/// Steps of a history.
const STEPS: u32 = 30;

/// Whoever runs statements on a store.
struct Fixture {
    directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    session: Session,
}

impl Fixture {
    fn new(executor: Executor) -> Fixture {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let mut store = store::Options::default();
        store.pool.bytes = 16 << 20;
        let mut options = sql::Options::spilling_to(directory.path());
        options.executor = executor;
        let path = directory.path().join("c.atoll");
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        Fixture {
            directory,
            workers,
            session: instance.session(),
        }
    }

    /// The answer of the last of some statements.
    fn run(&self, text: &str) -> Answer {
        let answers = self.workers.handle().block_on(self.session.execute(text));
        let mut answers = answers.unwrap_or_else(|e| panic!("{text}: {e}"));
        answers.pop().unwrap()
    }

    /// The lines of an answer, in their order.
    fn lines(&self, text: &str) -> String {
        let answer = self.run(text);
        let columns = answer.batches.iter().map(|batch| batch.column(0));
        let lines = columns.flat_map(|column| column.as_string::<i32>().iter().flatten());
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// The table `t`: a value for each key.
type Rows = BTreeMap<i64, i64>;

/// The rows of the table `u`, which stays as it is: every 97th key, and some that `t` does not have at first.
fn others() -> impl Iterator<Item = (i64, i64)> {
    (1..=900).map(|i| (i * 97, i * 7 % 1_000))
}

/// A statement, and what it does with the model: how many rows it changes.
struct Change {
    text: String,
    apply: Box<dyn Fn(&mut Rows) -> usize>,
}

fn change(text: impl Into<String>, apply: impl Fn(&mut Rows) -> usize + 'static) -> Change {
    Change {
        text: text.into(),
        apply: Box::new(apply),
    }
}

/// An update of the rows that are `wanted`.
fn updated(
    text: String,
    wanted: impl Fn(i64, i64) -> bool + 'static,
    new: impl Fn(i64) -> i64 + 'static,
) -> Change {
    change(text, move |rows| {
        let mut count = 0;
        for (_, value) in rows.iter_mut().filter(|(k, v)| wanted(**k, **v)) {
            *value = new(*value);
            count += 1;
        }
        count
    })
}

fn deleted(text: String, wanted: impl Fn(i64, i64) -> bool + 'static) -> Change {
    change(text, move |rows| {
        let before = rows.len();
        rows.retain(|key, value| !wanted(*key, *value));
        before - rows.len()
    })
}

fn merged(rows: &mut Rows) -> usize {
    let mut count = 0;
    for (key, value) in others() {
        count += 1;
        if rows.contains_key(&key) && value % 5 == 0 {
            rows.remove(&key);
        } else {
            rows.insert(key, value);
        }
    }
    count
}

/// A change of random kind.
fn any(random: &mut fastrand::Rng) -> Change {
    let (m, from) = (random.i64(2..40), random.i64(-5_000..ROWS));
    let (r, to) = (random.i64(0..m), from + random.i64(0..9_000));
    let key = random.i64(1..ROWS);
    match random.u32(..14) {
        0 => updated(
            format!("update t set v = v + 1 where k % {m} = {r}"),
            move |k, _| k % m == r,
            |v| v + 1,
        ),
        1 => updated(
            format!("update t set v = 5 - v, s = s || '.' where k between {from} and {to}"),
            move |k, _| (from..=to).contains(&k),
            |v| 5 - v,
        ),
        2 => updated(
            format!("update t set v = v * 2 where k in ({key}, {key} + 3, {r}) and v < 1000"),
            move |k, v| [key, key + 3, r].contains(&k) && v < 1_000,
            |v| v * 2,
        ),
        3 => change(
            "update t set v = u.w - t.v from u where u.k = t.k",
            |rows| {
                let all: Vec<(i64, i64)> = others().filter(|(k, _)| rows.contains_key(k)).collect();
                for (key, w) in &all {
                    rows.entry(*key).and_modify(|v| *v = w - *v);
                }
                all.len()
            },
        ),
        // The other rows have their values of before.
        4 => change(
            "update t set v = b.v + 1 from t b where b.k = t.k + 1",
            |rows| {
                let before = rows.clone();
                let mut count = 0;
                for (key, value) in rows.iter_mut() {
                    if let Some(next) = before.get(&(key + 1)) {
                        *value = next + 1;
                        count += 1;
                    }
                }
                count
            },
        ),
        5 => change(
            "update t set v = 0 where v >= (select max(v) from t) or v <= (select min(v) from t)",
            |rows| {
                let (least, most) = (rows.values().min().copied(), rows.values().max().copied());
                let at_ends = |v: &i64| Some(*v) == least || Some(*v) == most;
                let mut count = 0;
                for value in rows.values_mut().filter(|v| at_ends(v)) {
                    *value = 0;
                    count += 1;
                }
                count
            },
        ),
        6..=9 => removal(random.u32(6..10), (m, r), from),
        _ => addition(random),
    }
}

/// A statement that removes rows, of the `kind` of these numbers.
fn removal(kind: u32, (m, r): (i64, i64), from: i64) -> Change {
    match kind {
        6 => deleted(
            format!("delete from t where k % {m} = {r} and v % 3 = 1"),
            move |k, v| k % m == r && v % 3 == 1,
        ),
        7 => deleted(
            format!("delete from t where k between {from} and {}", from + 300),
            move |k, _| (from..=from + 300).contains(&k),
        ),
        // Each row is found several times.
        8 => {
            let gone = others().filter(|(_, w)| w % m == r);
            let gone: BTreeSet<i64> = gone.map(|(key, _)| key).collect();
            deleted(
                format!(
                    "delete from t using u, u as more where t.k = u.k and more.k < 500 and u.w % {m} = {r}"
                ),
                move |k, _| gone.contains(&k),
            )
        }
        _ => change(
            "delete from t where k in (select k + 1 from t where v % 17 = 3)",
            |rows| {
                let gone = rows.iter().filter(|(_, v)| **v % 17 == 3);
                let gone: Vec<i64> = gone.map(|(k, _)| k + 1).collect();
                gone.iter().filter(|k| rows.remove(*k).is_some()).count()
            },
        ),
    }
}

/// A statement that adds rows, or changes what is there.
fn addition(random: &mut fastrand::Rng) -> Change {
    match random.u32(..4) {
        0 => change(
            "merge into t using u on t.k = u.k when matched and u.w % 5 = 0 then delete \
            when matched then update set v = u.w \
            when not matched then insert (k, v, s) values (u.k, u.w, 'merged')",
            merged,
        ),
        1 => change(
            "insert into t select k, w, 'again' from u on conflict (k) do update set v = t.v + excluded.v",
            |rows| {
                let mut count = 0;
                for (key, w) in others() {
                    *rows.entry(key).or_insert(0) += w;
                    count += 1;
                }
                count
            },
        ),
        _ => {
            let many = if random.bool() { 3 } else { 900 };
            let first = 1_000_000 + random.i64(0..1_000) * 1_000;
            change(
                format!(
                    "insert into t select g, g % 50, 'new' from generate_series({first}, {first} + {many} - 1) g(g) on conflict do nothing"
                ),
                move |rows| {
                    let new = (first..first + many).filter(|k| !rows.contains_key(k));
                    let new: Vec<i64> = new.collect();
                    rows.extend(new.iter().map(|k| (*k, k % 50)));
                    new.len()
                },
            )
        }
    }
}

/// The rows of `t`.
fn look(fixture: &Fixture) -> Vec<(i64, i64)> {
    let answer = fixture.run("select k, v from t");
    let mut found = Vec::new();
    for batch in &answer.batches {
        let columns = [0, 1].map(|at| batch.column(at).as_primitive::<Int64Type>().values());
        found.extend(columns[0].iter().copied().zip(columns[1].iter().copied()));
    }
    found.sort_unstable();
    found
}

fn history(executor: Executor, seed: u64) {
    let fixture = Fixture::new(executor);
    let mut random = fastrand::Rng::with_seed(seed);
    fixture.run(&format!(
        "create table t (k bigint primary key, v bigint, s text);
        insert into t select g, g % 1000, 'row ' || g % 90 from generate_series(1, {ROWS}) g(g);
        create table u (k bigint, w bigint);
        insert into u select g * 97, g * 7 % 1000 from generate_series(1, 900) g(g)"
    ));
    let mut model: Rows = (1..=ROWS).map(|k| (k, k % 1_000)).collect();
    // What there was before the open transaction.
    let mut before: Option<Rows> = None;
    let mut log = vec![format!("{executor:?}, ATOLL_SEED={seed}")];
    for _ in 0..STEPS {
        match (random.u32(..8), before.take()) {
            (0 | 1, None) => {
                fixture.run("begin");
                before = Some(model.clone());
                log.push("begin".into());
            }
            (2, Some(committed)) => {
                fixture.run("rollback");
                model = committed;
                log.push("rollback".into());
            }
            (3, Some(_)) => {
                fixture.run("commit");
                log.push("commit".into());
            }
            (_, open) => {
                before = open;
                let Change { text, apply } = any(&mut random);
                log.push(text.clone());
                let changed = fixture.run(&text).changed;
                let expected = apply(&mut model);
                assert_eq!(changed, Some(expected as u64), "{}", log.join("\n"));
            }
        }
        let expected: Vec<(i64, i64)> = model.iter().map(|(k, v)| (*k, *v)).collect();
        // Not the thousands of rows that are the same.
        let found = look(&fixture);
        let differs = found.iter().zip(&expected).find(|(a, b)| a != b);
        let same = found.len() == expected.len() && differs.is_none();
        assert!(
            same,
            "{differs:?}, {} rows: {}",
            found.len(),
            log.join("\n")
        );
    }
}

#[test]
fn rows_are_changed_as_the_model_says() {
    let seeds = match std::env::var("ATOLL_SEED") {
        Ok(seed) => vec![seed.parse().unwrap()],
        Err(_) => vec![1, 2],
    };
    for seed in seeds {
        for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
            history(executor, seed);
        }
    }
}

#[test]
fn the_engine_finds_the_rows_that_change() {
    let fixture = Fixture::new(Executor::Fused);
    fixture.run(
        "create table t (a bigint, x bigint, s text);
        insert into t select g, g * 2, 'v' || g % 7 from generate_series(1, 1000) g(g);
        create table u (a bigint, y bigint);
        insert into u select g, g * 3 from generate_series(1, 100) g(g)",
    );
    let finds = [
        "update t set x = x + 1 where a > 5",
        "update t set x = 1",
        "update t set x = default, s = s || '!' where s like 'v1%'",
        "update t set x = u.y from u where u.a = t.a",
        "update t as b set x = 2 where b.a in (select a from u)",
        "update t set (x, s) = (select y, 'new' from u where u.a = t.a)",
        "update t set x = (select max(x) from t) where ctid = '(0,1)'",
        "delete from t where a > 5 and s <> 'v3'",
        "delete from t as b where b.a = 7",
        "delete from t using u where u.a = t.a and u.y > 10",
        "delete from t where exists (select 1 from u where u.a = t.a)",
        "delete from t where a = 9 returning *",
        "merge into t using u on u.a = t.a when matched then update set x = u.y \
            when not matched then insert (a, x) values (u.a, u.y)",
    ];
    let others = [
        "insert into t select a + 1000, x, s from t where x > 10",
        "create table c as select a, count(*) as n from t group by a",
    ];
    for text in finds.into_iter().chain(others) {
        let plan = fixture.lines(&format!("explain {text}"));
        assert!(plan.contains("stage 0"), "{text}\n{plan}");
        assert!(
            !plan.contains("Exec") && !plan.contains("datafusion"),
            "{text}\n{plan}"
        );
        assert_eq!(
            plan.contains("__row"),
            finds.contains(&text),
            "{text}\n{plan}"
        );
    }
    let kept = "select count(*), sum(a), sum(x) from t";
    assert_eq!(rows(&fixture.run(kept)), ["1000|500500|1001000"]);

    for name in ["c.csv", "c.json", "c.parquet", "c.arrow"] {
        let path = fixture.directory.path().join(name);
        let path = path.display();
        let copied = fixture.run(&format!(
            "copy (select a, x from t where a > 900) to '{path}'"
        ));
        assert_eq!(copied.changed, Some(100));
        assert_eq!(copied.statistics.ran_on, "algebra", "{name}");
        let read = format!("select count(*), sum(a), sum(x) from '{path}'");
        assert_eq!(rows(&fixture.run(&read)), ["100|95050|190100"], "{name}");
    }
    for text in finds {
        assert_eq!(fixture.run(text).statistics.ran_on, "algebra", "{text}");
    }
}

#[test]
fn a_change_that_is_analysed_is_made() {
    let fixture = Fixture::new(Executor::Fused);
    fixture.run(
        "create table t (a bigint primary key, x bigint);
        insert into t select g, g * 2 from generate_series(1, 5000) g(g)",
    );
    let all = "select count(*), sum(x) from t";
    let told = fixture.lines("explain analyze update t set x = x + 1 where x > 10");
    for part in [
        "update t\nstage 0",
        "scan t (a, x, __row)",
        "filter t.x > 10",
        "run by the fused executor",
        "\n  collect rows: 4995 rows, ",
        "\n  4995 rows came, about ",
        "rows: 4995",
        "bytes read: ",
        "  node 0 read ",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_eq!(rows(&fixture.run(all)), ["5000|25009995"]);

    let told = fixture.lines("explain (analyze, format json) delete from t where x % 4 = 1");
    for part in [
        "delete from t",
        "\"algebra\"",
        "\"Plan Rows\": ",
        "\"Rows\": ",
        "\"Relation Name\": \"t\"",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
    assert_ne!(rows(&fixture.run(all)), ["5000|25009995"]);

    // As any change it goes with its transaction.
    let before = rows(&fixture.run(all));
    fixture.run("begin");
    fixture.lines("explain analyze delete from t where x % 3 = 1");
    assert_ne!(rows(&fixture.run(all)), before);
    fixture.run("rollback");
    assert_eq!(rows(&fixture.run(all)), before);

    let told = fixture.lines("explain analyze insert into t values (9999, 1) returning a");
    assert!(told.starts_with("insert\nno plan"), "{told}");
    assert!(told.contains("rows: 1"), "{told}");
    let told = fixture.lines("explain analyze create table c as select x from t where a < 100");
    assert!(told.starts_with("create table c\nstage 0"), "{told}");
    assert!(rows(&fixture.run("select count(*) > 0 from c")) == ["true"]);

    // Nothing is planned where a key finds the row.
    let told = fixture.lines("explain analyze update t set x = 7 where a = 9999");
    assert!(told.contains("rows: 1"), "{told}");
    assert_eq!(rows(&fixture.run("select x from t where a = 9999")), ["7"]);
    fixture.run("begin read only");
    let text = "explain analyze update t set x = 0";
    let failed = fixture
        .workers
        .handle()
        .block_on(fixture.session.execute(text));
    assert!(failed.is_err());
    fixture.run("rollback");
}
