//! Random queries over random tables: Atoll's own engine, by each executor and plan, against DataFusion's operators, and in
//! the slow suite against DuckDB.
//!
//! A failure prints the query and the rows it needs, made as small as they get, and the seed: `ATOLL_QUERIES=n` runs
//! n queries, `ATOLL_SEED=s` others. Answers must have the same rows and types. What may differ: an overflow that one
//! engine meets and the other does not (an error or the exact value; predicates are evaluated in any order), and the
//! last digits of floats. In the slow suite DuckDB is asked where the two differ: DataFusion's answer with NaN depends
//! on the order of rows (`max`) or on the sign of the NaN (`>`).

mod answer;
mod data;
mod dependent;
#[cfg(feature = "slow")]
mod duckdb;
mod levels;
mod model;
#[path = "../peer/mod.rs"]
mod peer;
mod query;
mod random;
mod shrink;

use std::collections::BTreeMap;
use std::sync::Arc;

use answer::{Outcome, difference};
use data::{Table, tables};
use engine::NumaPolicy;
use query::{Maker, Query};

/// Both engines over one store.
pub(crate) struct Database {
    pub(crate) tables: Vec<Table>,
    _directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    ours: Arc<sql::Instance>,
    theirs: peer::Peer,
}

/// A machine, how Atoll's own engine runs queries on it, and whether there is room for only a few rows, so that it
/// spills all it gathers.
type Way = (&'static str, sql::Executor, NumaPolicy, Room);

#[derive(Clone, Copy, Debug, PartialEq)]
enum Room {
    Much,
    Little,
}

use Room::{Little, Much};

/// Sets of tables take these in turn.
const WAYS: [Way; 10] = [
    ("live", sql::Executor::Fused, NumaPolicy::Shard, Much),
    ("4x1", sql::Executor::Stream, NumaPolicy::Shard, Much),
    ("live", sql::Executor::Staged, NumaPolicy::Shard, Much),
    ("4x1", sql::Executor::Fused, NumaPolicy::Distr, Much),
    ("2x1", sql::Executor::Staged, NumaPolicy::Distr, Much),
    ("4x1", sql::Executor::Stream, NumaPolicy::Obliv, Much),
    ("live", sql::Executor::Fused, NumaPolicy::Shard, Little),
    ("4x1", sql::Executor::Stream, NumaPolicy::Shard, Little),
    ("4x1", sql::Executor::Fused, NumaPolicy::Distr, Little),
    ("live", sql::Executor::Staged, NumaPolicy::Obliv, Little),
];

impl Database {
    fn new(seed: u64, way: Way) -> Database {
        Database::over(tables(seed), way)
    }

    fn over(tables: Vec<Table>, (machine_name, executor, plan, room): Way) -> Database {
        let directory = tempfile::tempdir().unwrap();
        let live = topology::Machine::live().unwrap();
        let machine = topology::Machine::parse(machine_name).unwrap();
        let layout = workers::Layout::of(&machine, &live, machine.cpus().clamp(2, 4), false);
        let workers = workers::Workers::new(layout).unwrap();
        let budget = memory::Budget::new(2 << 30);
        let mut options = store::Options::default();
        options.pool.nodes = vec![None; workers.nodes()];
        options.pool.budget = Some(Arc::clone(&budget));
        let store = store::Store::create(directory.path().join("r.atoll"), &options).unwrap();
        let instance = |executor| {
            let mut options = sql::Options::spilling_to(directory.path());
            options.executor = executor;
            options.execution.numa_policy = plan;
            // With an even number the rows that probe a spilled join table are spilled, too; with an odd one they are made anew.
            let few = if machine_name == "live" { 6 } else { 5 };
            options.execution.max_rows_before_spill = (room == Little).then_some(few);
            // Few rows and places: queries over small tables see many blocks, too.
            options.execution.ring = Some(3);
            options.execution.block_rows = match executor {
                sql::Executor::Fused => None,
                _ => Some(1024),
            };
            options.execution.per_block = 2;
            let (workers, budget) = (Arc::clone(&workers), Arc::clone(&budget));
            sql::Instance::new(Arc::clone(&store), workers, budget, options).unwrap()
        };
        let ours = instance(executor);
        let database = Database {
            tables,
            workers,
            ours,
            theirs: peer::Peer::new(),
            _directory: directory,
        };
        for table in &database.tables {
            database.load(table);
        }
        database
    }

    fn load(&self, table: &Table) {
        let session = self.ours.session();
        self.workers.handle().block_on(async {
            session.execute(&table.create()).await.unwrap();
            let rows = futures::stream::iter([Ok(table.batch.clone())]);
            session.append(&table.name, rows).await.unwrap();
            if table.filler > 0 {
                let filler = format!("delete from {} where rid < 0", table.name);
                session.execute(&filler).await.unwrap();
            }
        });
    }

    pub(crate) fn ours(&self, text: &str) -> Outcome {
        let session = self.ours.session();
        Outcome::of(self.workers.handle().block_on(session.execute(text)))
    }

    pub(crate) fn theirs(&self, text: &str) -> Outcome {
        let session = self.ours.session();
        let found = self.theirs.answer(&session, text);
        Outcome::of_peer(self.workers.handle().block_on(found))
    }

    /// Runs the query by both.
    pub(crate) fn compare(&self, query: &Query) -> Verdict {
        let text = query.sql();
        let order: Vec<usize> = query.order.iter().map(|(at, _)| at - 1).collect();
        match (self.ours(&text), self.theirs(&text)) {
            (
                Outcome::Rows {
                    types,
                    rows,
                    ran_on,
                },
                Outcome::Rows {
                    types: wanted,
                    rows: expected,
                    ..
                },
            ) => {
                if types == wanted {
                    match difference(&rows, &expected, &order) {
                        None => Verdict::Same(ran_on),
                        Some(what) => Verdict::Different(what),
                    }
                } else {
                    Verdict::Different(format!("columns {types:?}, but {wanted:?}"))
                }
            }
            (
                Outcome::Arithmetic(_) | Outcome::Failed(_),
                Outcome::Arithmetic(_) | Outcome::Failed(_),
            ) => Verdict::BothFail,
            (Outcome::Arithmetic(e), Outcome::Rows { .. }) => {
                Verdict::OneOverflows(format!("ours: {e}"))
            }
            (Outcome::Rows { .. }, Outcome::Arithmetic(e)) => {
                Verdict::OneOverflows(format!("theirs: {e}"))
            }
            (Outcome::Rows { .. }, Outcome::Failed(e)) => Verdict::Refused(e),
            (Outcome::Failed(e), Outcome::Rows { .. }) => {
                Verdict::Different(format!("an error: {e}"))
            }
        }
    }
}

/// What became of a query.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// The same answer, and what ran it.
    Same(&'static str),
    BothFail,
    OneOverflows(String),
    /// DataFusion cannot do what we can.
    Refused(String),
    Different(String),
}

/// Whether a third engine answers a query as ours does.
type Arbiter<'a> = &'a mut dyn FnMut(&Query) -> bool;

/// Runs `count` queries; tells what became of them, and panics if any answer differs and `arbiter` does not say that
/// ours is right.
fn run(
    database: &Database,
    seed: u64,
    count: usize,
    arbiter: Arbiter<'_>,
) -> BTreeMap<&'static str, usize> {
    let mut maker = Maker::new(seed, &database.tables, false);
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for _ in 0..count {
        let query = maker.query();
        let begun = std::time::Instant::now();
        let verdict = database.compare(&query);
        if begun.elapsed().as_secs() >= 5 {
            eprintln!("{:?}: {}", begun.elapsed(), query.sql());
        }
        let kind = match &verdict {
            Verdict::Same(ran_on) => ran_on,
            Verdict::BothFail => "both fail",
            Verdict::OneOverflows(e) => {
                eprintln!("{e}: {}", query.sql());
                "one overflows"
            }
            Verdict::Refused(e) => {
                eprintln!("only ours runs: {e}: {}", query.sql());
                "only ours runs"
            }
            Verdict::Different(what) if arbiter(&query) => {
                eprintln!("DataFusion is alone: {what}: {}", query.sql());
                "datafusion is alone"
            }
            Verdict::Different(_) => {
                failures.push(shrink::smallest(database, query));
                if failures.len() >= 5 {
                    break;
                }
                "different"
            }
        };
        *counts.entry(kind).or_default() += 1;
    }
    assert!(
        failures.is_empty(),
        "seed {seed}\n{}",
        failures.join("\n\n")
    );
    counts
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

/// Runs queries on several sets of tables and demands that nearly all were ours.
fn check(sets: u64, queries: u64) {
    let seed = setting("ATOLL_SEED", 20_261_121);
    let queries = setting("ATOLL_QUERIES", queries);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for set in 0..sets {
        let way = WAYS[set as usize % WAYS.len()];
        eprintln!("set {set}: {way:?}");
        let database = Database::new(seed + set, way);
        let count = (queries / sets) as usize;
        #[cfg(feature = "slow")]
        let counted = {
            let mut arbiter = duckdb::arbiter(&database);
            run(&database, seed + set, count, &mut arbiter)
        };
        #[cfg(not(feature = "slow"))]
        let counted = run(&database, seed + set, count, &mut |_| false);
        for (kind, count) in counted {
            *counts.entry(kind).or_default() += count;
        }
    }
    eprintln!("queries by what became of them: {counts:?}");
    let all: usize = counts.values().sum();
    let share = |kind: &str| counts.get(kind).copied().unwrap_or(0) as f64 / all as f64;
    assert!(share("algebra") >= 0.85, "{counts:?}");
    assert!(
        share("both fail") <= 0.10,
        "the queries are bad: {counts:?}"
    );
    assert!(share("one overflows") <= 0.03, "{counts:?}");
    assert!(share("datafusion is alone") <= 0.003, "{counts:?}");
}

#[test]
fn answers_are_those_of_datafusion() {
    check(WAYS.len() as u64, 480);
}

#[test]
fn the_engine_runs_what_datafusion_once_ran() {
    let database = Database::new(1, WAYS[0]);
    let ran = |text: &str, wanted: &str| match (database.ours(text), database.theirs(text)) {
        (Outcome::Rows { rows, ran_on, .. }, Outcome::Rows { rows: expected, .. }) => {
            assert_eq!(difference(&rows, &expected, &[]), None, "{text}");
            assert!(!rows.is_empty(), "{text}");
            assert_eq!(ran_on, wanted, "{text}");
        }
        other => panic!("{text}: {other:?}"),
    };
    // Conditions of joins that differ each time.
    ran(
        "select x.rid, y.rid, z.rid from blocks x join few y on x.rid = y.rid + 1 left join few z on z.rid = y.rid and random() >= 0",
        "algebra",
    );
    ran(
        "select x.rid, z.rid from blocks x left join few z on z.rid = x.rid and random() >= 0",
        "algebra",
    );
    let inner = "select rid, rank() over (order by rid % 3) r, sum(rid) over (order by rid rows 2 preceding) s from blocks";
    ran(inner, "algebra");
    ran(
        &format!(
            "select r, s, z.rid from ({inner}) t left join few z on z.rid = r and random() >= 0"
        ),
        "algebra",
    );
    ran(
        "select x.rid, y.rid, bit_and(y.rid) over (order by y.rid) from blocks x join few y on x.rid = y.rid + 1",
        "algebra",
    );
    ran(
        "select x.rid, avg(x.rid) over (partition by y.rid order by x.rid) from blocks x join few y on x.rid = y.rid + 1",
        "algebra",
    );
    ran(
        "select corr(x.rid, y.rid) from blocks x join few y on x.rid = y.rid",
        "algebra",
    );
    ran(
        "select x.rid from few x where x.rid not in (select y.rid from many y where y.rid > 3)",
        "algebra",
    );
    ran(
        "select rid from few intersect select rid from blocks",
        "algebra",
    );
    ran(
        "select * from (values (1, 'a'), (2, null)) t (a, b) join few on a = rid",
        "algebra",
    );
}

/// Both engines have rows for a query, the same, and ours found them by itself.
fn agree(database: &Database, way: Way, text: &str) {
    match (database.ours(text), database.theirs(text)) {
        (Outcome::Rows { rows, ran_on, .. }, Outcome::Rows { rows: expected, .. }) => {
            assert_eq!(difference(&rows, &expected, &[]), None, "{way:?}: {text}");
            assert!(!rows.is_empty(), "{way:?}: {text}");
            assert_eq!(ran_on, "algebra", "{way:?}: {text}");
        }
        other => panic!("{way:?}: {text}: {other:?}"),
    }
}

/// More rows than a worker keeps before it looks for the best of them.
#[test]
fn the_best_of_many_rows_are_found() {
    let orders = [
        "a.rid, b.rid desc, c.rid limit 10",
        "a.rid % 13 desc, b.rid, c.rid, a.rid limit 7 offset 30",
        "case when a.rid % 5 = 0 then null else a.rid % 13 end desc nulls last, c.rid, b.rid, a.rid limit 50",
        "case when a.rid % 50 = 0 then null else b.rid end nulls first, a.rid, b.rid, c.rid limit 900",
        "cast(a.rid % 100 as varchar) desc, b.rid, c.rid, a.rid limit 33",
        "a.rid * 0.5 - b.rid, c.rid, b.rid, a.rid limit 3000",
    ];
    for way in WAYS {
        let database = Database::new(5, way);
        for order in orders {
            let text = format!(
                "select a.rid, b.rid, c.rid from many a, few b, few c where c.rid < 8 order by {order}"
            );
            agree(&database, way, &text);
        }
    }
}

#[test]
fn sums_of_one_number_are_those_of_all() {
    let queries = [
        "select sum(n), sum(n + 1), sum(2 + n), sum(n - 3), count(n), min(n + 1) from t",
        "select k, sum(n + 1) as a, sum(n - 40000) as b from t group by k order by k",
        "select sum(n + 1), sum(n + 5) from t where n is null",
        "select sum(n + 1), sum(n + 5) from t where k > 1000",
        "select k, sum(n + 1) + sum(n + 2), sum(distinct n + 1) from t group by k having sum(n + 7) > 10",
        "select sum(n + 1) filter (where k = 2), sum(n + 1), sum(n + 3), sum(n * 2), sum(n + k) from t",
        "select sum(n + 3000000000), sum(n + 3000000001) from t",
    ];
    let t = "with t as (select case when rid % 11 = 0 then null else cast(rid * 1000 as int) end as n, rid % 7 as k from many)";
    for way in WAYS {
        let database = Database::new(5, way);
        for query in queries {
            let text = format!("{t} {query}");
            agree(&database, way, &text);
        }
        let text = format!("explain {t} {}", queries[0]);
        match database.ours(&text) {
            Outcome::Rows { rows, .. } => {
                let shown = format!("{rows:?}");
                assert!(
                    shown.contains("fold: sum(") && !shown.contains("= (n + 2)"),
                    "{shown}"
                );
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn groups_that_are_read_twice_are_found_once() {
    let groups =
        "with r as (select rid % 7 as k, sum(rid) as s, avg(rid) as a from many group by rid % 7)";
    let queries = [
        "select k, s from r where s = (select max(s) from r)",
        "select x.k, x.s, y.s, y.a from r x join r y on x.k = y.k + 1",
        "select x.k, y.s from r x left join r y on x.k = y.k + 2 and y.a > x.a",
        "select s from r union all select s from r where k > 3",
        "select rid, s from few left join r on rid = k where rid in (select k + 1 from r)",
        "select x.k from r x where not exists (select 1 from r y where y.s > x.s)",
    ];
    for way in WAYS {
        let database = Database::new(5, way);
        for query in queries {
            let text = format!("{groups} {query}");
            agree(&database, way, &text);
        }
        let scans = |query: &str| match database.ours(&format!("explain {query}")) {
            Outcome::Rows { rows, .. } => format!("{rows:?}").matches("scan many").count(),
            other => panic!("{other:?}"),
        };
        assert_eq!(scans(&format!("{groups} {}", queries[0])), 1);
    }
}

#[cfg(feature = "slow")]
#[test]
fn answers_to_ten_thousand_queries_are_those_of_datafusion() {
    check(20, 10_000);
}

/// As [`run`], with DuckDB as the other engine and queries that both read alike.
#[cfg(feature = "slow")]
fn run_with_duckdb(
    database: &Database,
    duck: &mut duckdb::Duck,
    seed: u64,
    count: usize,
) -> BTreeMap<&'static str, usize> {
    let mut maker = Maker::new(seed, &database.tables, true);
    let mut counts: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for _ in 0..count {
        let query = maker.query();
        let text = query.sql();
        let kind = match (database.ours(&text), duck.answer(&text)) {
            (Outcome::Rows { rows, ran_on, .. }, Ok(expected)) => {
                match duckdb::difference(rows, expected, &query) {
                    None => ran_on,
                    Some(what) => {
                        failures.push(format!(
                            "{what}\n{text}\ndatafusion: {:?}",
                            database.compare(&query)
                        ));
                        "different"
                    }
                }
            }
            (Outcome::Rows { .. }, Err(e)) => {
                eprintln!("only ours runs: {e}: {text}");
                "only ours runs"
            }
            (Outcome::Arithmetic(_) | Outcome::Failed(_), Err(_)) => "both fail",
            (Outcome::Arithmetic(_), Ok(_)) => "one overflows",
            (Outcome::Failed(e), Ok(_)) => {
                eprintln!("only duckdb runs: {e}: {text}");
                "only duckdb runs"
            }
        };
        *counts.entry(kind).or_default() += 1;
        if failures.len() >= 5 {
            break;
        }
    }
    assert!(
        failures.is_empty(),
        "seed {seed}\n{}",
        failures.join("\n\n")
    );
    counts
}

#[cfg(feature = "slow")]
#[test]
fn answers_to_ten_thousand_queries_are_those_of_duckdb() {
    let (sets, queries) = (20, setting("ATOLL_QUERIES", 10_000));
    let seed = setting("ATOLL_SEED", 7);
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for set in 0..sets {
        let database = Database::new(seed + set, WAYS[0]);
        let Some(mut duck) = duckdb::Duck::start(&database) else {
            return notrun::not_run(
                "no Python with the module duckdb; run bench/run once, or set ATOLL_PYTHON",
            );
        };
        for (kind, count) in
            run_with_duckdb(&database, &mut duck, seed + set, (queries / sets) as usize)
        {
            *counts.entry(kind).or_default() += count;
        }
    }
    eprintln!("queries by what became of them: {counts:?}");
    let all: usize = counts.values().sum();
    let same = counts.get("algebra").copied().unwrap_or_default();
    assert!(same as f64 >= 0.75 * all as f64, "{counts:?}");
}
