//! The answers to the 22 TPC-H queries: the published ones, and DataFusion's over the same rows.

mod digest;

use std::sync::Arc;

use atoll::{Database, Executor, NumaPolicy, Options, tpch};
use datafusion::datasource::MemTable;
use datafusion::prelude::{SessionConfig, SessionContext};
use digest::{Rows, difference};

/// A store with TPC-H at a scale, laid out for a machine; it goes when this does.
struct Loaded {
    database: Database,
    _folder: tempfile::TempDir,
}

fn load(scale: f64, machine: Option<&str>, executor: Executor) -> Loaded {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.machine = machine.map(str::to_owned);
    options.pool_bytes = Some(256 << 20);
    // On a synthetic machine more threads than cores: each node has workers of its own.
    options.threads = machine.map(|_| 4);
    options.executor = executor;
    let database = Database::create(folder.path().join("tpch.atoll"), &options).unwrap();
    let report = tpch::load(&database, scale, &()).unwrap();
    assert!(report.raw_bytes > 0 && report.rows > 0);
    Loaded {
        database,
        _folder: folder,
    }
}

fn check_published(scale: &str, machine: Option<&str>) {
    let loaded = load(scale.parse().unwrap(), machine, Executor::Fused);
    let nodes = machine.map_or(1, |_| 4);
    let differences = differences(&loaded.database, scale, nodes);
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// What is wrong with the answers to all queries, in SQL and in LAQ.
fn differences(database: &Database, scale: &str, nodes: usize) -> Vec<String> {
    let session = database.session();
    let mut differences = Vec::new();
    for (at, text) in tpch::QUERIES.iter().enumerate() {
        let answer = session.sql(text).unwrap().pop().unwrap();
        differences.extend(difference(scale, at + 1, &Rows::of(&answer.batches)));
        if answer.statistics.ran_on != "algebra" {
            differences.push(format!(
                "query {} ran on {}",
                at + 1,
                answer.statistics.ran_on
            ));
        }
        assert!(
            answer.statistics.bytes.len() >= nodes,
            "bytes are counted per node"
        );
        assert!(
            answer.statistics.total_bytes() > 0,
            "query {} read nothing",
            at + 1
        );
    }
    for (query, text) in atoll::laq::TPCH {
        let answer = session.laq(text).unwrap();
        let wrong = difference(scale, query, &Rows::of(&answer.batches));
        differences.extend(wrong.into_iter().map(|wrong| format!("in LAQ: {wrong}")));
    }
    differences
}

/// The same store with each executor, blocks of so many rows, and so many threads; of pages on several nodes, if
/// `machine` says so.
fn check_executors(scale: &str, machine: Option<&str>, runs: &[(Executor, usize, usize)]) {
    check_plan(scale, machine, NumaPolicy::Shard, runs);
}

fn check_plan(
    scale: &str,
    machine: Option<&str>,
    plan: NumaPolicy,
    runs: &[(Executor, usize, usize)],
) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tpch.atoll");
    let mut options = Options::default();
    options.pool_bytes = Some(256 << 20);
    options.machine = machine.map(str::to_owned);
    let database = Database::create(&path, &options).unwrap();
    tpch::load(&database, scale.parse().unwrap(), &()).unwrap();
    database.close().unwrap();
    let mut wrong = Vec::new();
    for (executor, block, threads) in runs {
        options.executor = *executor;
        options.threads = Some(*threads);
        options.execution.block_rows = Some(*block);
        options.execution.numa_policy = plan;
        // A ring of three, and channels of both kinds.
        options.execution.ring = Some(3);
        options.execution.lock_free = threads % 2 == 0;
        let database = Database::open(&path, &options).unwrap();
        for difference in differences(&database, scale, 1) {
            wrong.push(format!(
                "{plan:?}, {executor:?}, {block} rows, {threads} threads: {difference}"
            ));
        }
        database.close().unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn published_answers_of_the_other_executors() {
    use Executor::{Fused, Staged, Stream};
    check_executors(
        "0.01",
        None,
        &[
            (Stream, 2 << 10, 5),
            (Stream, 64 << 10, 1),
            (Stream, 1 << 20, 2),
            (Staged, 2 << 10, 5),
            (Staged, 64 << 10, 1),
            (Staged, 1 << 20, 2),
            (Fused, 2 << 10, 2),
        ],
    );
    check_executors(
        "0.01",
        Some("4x1"),
        &[(Stream, 4 << 10, 4), (Staged, 4 << 10, 4)],
    );
}

#[test]
fn published_answers_of_the_plans() {
    use Executor::{Fused, Staged, Stream};
    let all = [
        (Fused, 64 << 10, 4),
        (Stream, 4 << 10, 4),
        (Staged, 4 << 10, 4),
    ];
    for machine in ["2x1", "4x1"] {
        check_plan("0.01", Some(machine), NumaPolicy::Obliv, &all[..1]);
        check_plan("0.01", Some(machine), NumaPolicy::Distr, &all);
        check_plan("0.1", Some(machine), NumaPolicy::Distr, &all[..1]);
    }
}

#[test]
fn bytes_of_each_pair_of_nodes_are_shown_for_each_plan() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tpch.atoll");
    let mut options = Options::default();
    options.pool_bytes = Some(256 << 20);
    options.machine = Some("4x1".into());
    options.threads = Some(4);
    options.executor = Executor::Fused;
    let database = Database::create(&path, &options).unwrap();
    tpch::load(&database, 0.1, &()).unwrap();
    database.close().unwrap();
    for plan in [NumaPolicy::Obliv, NumaPolicy::Shard, NumaPolicy::Distr] {
        options.execution.numa_policy = plan;
        let database = Database::open(&path, &options).unwrap();
        for text in tpch::QUERIES {
            let lines = analyzed(&database, text);
            for node in 0..4 {
                let line = format!("  node {node} read ");
                let line = lines.iter().find(|l| l.starts_with(&line)).unwrap();
                let cells: Vec<&str> = line[14..].split(", ").collect();
                assert_eq!(cells.len(), 4, "{line}");
                for (page, cell) in cells.iter().enumerate() {
                    assert!(cell.ends_with(&format!("from node {page}")), "{line}");
                    // Nothing crosses between instances.
                    let may = plan != NumaPolicy::Distr || page == node;
                    assert!(may || cell.starts_with("0 "), "{plan:?}: {line}");
                }
            }
        }
        database.close().unwrap();
    }
}

/// What `explain analyze` says of a query, a line each.
fn analyzed(database: &Database, text: &str) -> Vec<String> {
    let answers = database.session().sql(&format!("explain analyze {text}"));
    let rows = Rows::of(&answers.unwrap().pop().unwrap().batches);
    rows.0.into_iter().flatten().collect()
}

#[test]
fn explain_analyze_shows_the_ring_and_who_waited() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = Options::default();
    options.pool_bytes = Some(256 << 20);
    options.threads = Some(2);
    options.executor = Executor::Staged;
    options.execution.ring = Some(3);
    options.execution.block_rows = Some(2 << 10);
    let database = Database::create(folder.path().join("tpch.atoll"), &options).unwrap();
    tpch::load(&database, 0.01, &()).unwrap();
    let lines = analyzed(&database, tpch::QUERIES[5]);
    let line = |of: &str| {
        let found = lines.iter().find(|line| line.contains(of));
        found.unwrap_or_else(|| panic!("no {of:?} in {lines:#?}"))
    };
    assert!(line("a ring of 3 blocks of 2048 rows").contains("morsels dropped by filters"));
    let states = line("blocks were empty for");
    for state in ["set up for", "ready for", "processed for"] {
        assert!(states.contains(state), "{states}");
    }
    assert!(line("order of filters, changed").contains("% of 60175 rows pass"));
    for task in ["setup, scan lineitem", "processing"] {
        assert!(line(task).contains("asleep for input"), "{task}");
    }
}

/// Each executor with each block size and number of threads.
#[cfg(feature = "slow")]
#[test]
fn published_answers_of_all_executors_with_all_blocks_and_threads() {
    let mut runs = Vec::new();
    for executor in [Executor::Fused, Executor::Stream, Executor::Staged] {
        for block in [2 << 10, 64 << 10, 1 << 20] {
            runs.extend([1, 2, 5].map(|threads| (executor, block, threads)));
        }
    }
    check_executors("0.1", None, &runs);
}

#[test]
fn published_answers_at_scale_0_01() {
    check_published("0.01", None);
}

#[test]
fn published_answers_at_scale_0_01_on_four_nodes() {
    check_published("0.01", Some("4x1"));
}

/// The programs of a page of the documentation.
fn programs_of(page: &str) -> Vec<&str> {
    let blocks = page.split("```laq\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn the_page_on_laq_is_right() {
    let loaded = load(0.01, None, Executor::Fused);
    let programs = programs_of(include_str!("../../../docs/reference/laq.md"));
    assert!(programs.len() >= 4);
    for text in programs {
        let answer = loaded.database.laq(text);
        let answer = answer.unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert!(
            answer.rows() > 0 && answer.statistics.ran_on == "algebra",
            "{text}"
        );
    }
}

#[test]
fn published_answers_at_scale_0_1() {
    check_published("0.1", None);
}

#[test]
fn published_answers_at_scale_0_1_on_four_nodes() {
    check_published("0.1", Some("node:4 core:2 pu:1"));
}

/// Minutes in the profile of the tests: `./test --slow` has it compiled.
#[cfg(feature = "slow")]
#[test]
fn published_answers_at_scale_1() {
    check_published("1", None);
    check_published("1", Some("4x1"));
    let runs = [Executor::Stream, Executor::Staged].map(|executor| (executor, 64 << 10, 2));
    check_executors("1", None, &runs);
}

/// The rows of DataFusion's own answer, from memory, without any of Atoll's code.
async fn reference(context: &SessionContext, text: &str) -> Rows {
    Rows::of(&context.sql(text).await.unwrap().collect().await.unwrap())
}

fn context(scale: f64) -> SessionContext {
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(2));
    for name in tpch::tables() {
        let batches: Vec<_> = tpch::generate(name, scale).collect();
        let table = MemTable::try_new(batches[0].schema(), vec![batches]).unwrap();
        context.register_table(name, Arc::new(table)).unwrap();
    }
    context
}

/// Whether a value of ours is one of DataFusion's: as text, as a quotient of which that has cut more digits, or as a number
/// within 1e-9.
fn equal(a: &str, b: &str) -> bool {
    let numbers = (a.parse::<f64>(), b.parse::<f64>());
    let is_cut = b.contains('.') && a.starts_with(b);
    a == b
        || is_cut
        || matches!(numbers, (Ok(a), Ok(b)) if (a - b).abs() <= 1e-9 * a.abs().max(b.abs()))
}

#[test]
fn answers_are_those_of_datafusion() {
    let (scale, loaded) = (0.02, load(0.02, Some("4x1"), Executor::Fused));
    let session = loaded.database.session();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let context = context(scale);
    for (at, text) in tpch::QUERIES.iter().enumerate() {
        let mut ours = Rows::of(&session.sql(text).unwrap().pop().unwrap().batches).0;
        let mut theirs = runtime.block_on(reference(&context, text)).0;
        assert_eq!(ours.len(), theirs.len(), "rows of query {}", at + 1);
        ours.sort();
        theirs.sort();
        for (a, b) in ours.iter().flatten().zip(theirs.iter().flatten()) {
            assert!(equal(a, b), "query {}: {a:?} should be {b:?}", at + 1);
        }
    }
}

#[test]
fn a_second_load_finds_the_first() {
    let loaded = load(0.01, None, Executor::Fused);
    let present = tpch::present(&loaded.database).unwrap();
    assert!(
        matches!(present, tpch::Present::All { scale, raw_bytes } if scale == 0.01 && raw_bytes > 10_000_000)
    );
    loaded
        .database
        .session()
        .sql("delete from nation where n_nationkey = 3")
        .unwrap();
    let error = tpch::present(&loaded.database).unwrap_err().to_string();
    assert!(error.contains("nation has 24 rows"), "{error}");
}

#[test]
fn tables_have_their_keys() {
    let lineitem = tpch::definition("lineitem").unwrap();
    assert_eq!(lineitem.primary_key, [0, 3]);
    let parents: Vec<_> = lineitem
        .foreign_keys
        .iter()
        .map(|key| key.parent.as_str())
        .collect();
    assert_eq!(parents, ["orders", "part", "supplier", "partsupp"]);
    assert_eq!(tpch::tables().count(), 8);
}
