//! Windows run in the engine, and those whose keys begin alike share a sort.

use std::sync::Arc;

use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::fixture;

/// A table `m` of 5,000 rows.
struct Fixture {
    _directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
}

impl Fixture {
    fn new() -> Fixture {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let mut store = store::Options::default();
        store.pool.bytes = 8 << 20;
        let options = sql::Options::spilling_to(directory.path());
        let path = directory.path().join("w.atoll");
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        let fixture = Fixture {
            _directory: directory,
            workers,
            instance,
        };
        fixture.rows(
            "create table m (i int, g int, x int, f double precision, d date, at timestamp, ok boolean, t text);
            insert into m
            select i, i % 7, case when i % 9 > 0 then i * 31 % 100 end, i * 37 % 50 * 0.5, date '2024-01-01' + i % 400,
                timestamp '2024-01-01' + i * 7919 % 5000 * interval '1 hour', case when i % 5 > 0 then i % 3 = 0 end, 'text ' || i % 11
            from generate_series(1, 5000) as g(i);
            select 1",
        );
        fixture
    }

    /// The rows of the last of some statements, in their order.
    fn rows(&self, text: &str) -> Vec<String> {
        let session = self.instance.session();
        let answers = self.workers.handle().block_on(session.execute(text));
        let answer = answers.unwrap().pop().unwrap();
        let options = FormatOptions::default().with_null("NULL");
        let mut rows = Vec::new();
        for batch in &answer.batches {
            let columns = batch.columns().iter();
            let columns = columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap());
            let columns: Vec<_> = columns.collect();
            for row in 0..batch.num_rows() {
                let values = columns.iter().map(|column| column.value(row).to_string());
                rows.push(values.collect::<Vec<_>>().join("|"));
            }
        }
        rows
    }

    /// The plan, which the engine runs alone, and how many of its stages are windows.
    fn windows(&self, query: &str) -> usize {
        let plan = self.rows(&format!("explain {query}"));
        let other = |line: &&String| {
            line.contains("datafusion") || line.contains("WindowAgg") || line.contains("SortExec")
        };
        assert_eq!(plan.iter().find(other), None, "{query}\n{plan:#?}");
        plan.iter().filter(|line| line.contains(": window")).count()
    }
}

#[test]
fn frames_and_aggregates_of_all_kinds_run_in_the_engine() {
    let fixture = Fixture::new();
    let calls = [
        "sum(x) filter (where ok) over (partition by g order by i rows 3 preceding)",
        "count(*) filter (where x > 3) over (order by i)",
        "max(t) filter (where ok) over (partition by g)",
        "sum(x) over (order by x groups between 2 preceding and 1 following exclude ties)",
        "avg(f) over (order by i rows between 1000 preceding and current row exclude current row)",
        "sum(f) over (order by i rows between current row and unbounded following)",
        "count(x) over (order by x range between 3 preceding and 5 following)",
        "count(x) over (order by f desc range between 3.5 preceding and current row)",
        "min(x) over (order by d range between interval '1 month' preceding and current row)",
        "max(x) over (order by at range between interval '3 days' preceding and interval '90 minutes' following exclude group)",
        "stddev(f) over (partition by g order by i rows 10 preceding)",
        "var_pop(f) over (partition by g)",
        "bool_and(ok) over (order by i rows 2 preceding)",
        "nth_value(x, 2) over (partition by g order by i groups 1 preceding)",
        "last_value(x) ignore nulls over (partition by g order by i)",
        "lag(x, 2, 0) ignore nulls over (partition by g order by i)",
    ];
    for call in calls {
        assert_eq!(
            fixture.windows(&format!("select i, {call} from m")),
            1,
            "{call}"
        );
    }
}

#[test]
fn windows_whose_keys_begin_alike_share_a_sort() {
    let fixture = Fixture::new();
    let shared = [
        "select i, sum(x) over (partition by g order by x), rank() over (partition by g order by x, i) from m",
        "select i, count(*) over (partition by g), row_number() over (partition by t, g order by x desc) from m",
        "select i, sum(x) over (order by g), min(x) over (partition by g order by i), max(x) over (partition by g, i) from m",
        "select i, rank() over (partition by g order by f), dense_rank() over (partition by g order by f desc) from m",
    ];
    let stages: Vec<usize> = shared.iter().map(|query| fixture.windows(query)).collect();
    assert_eq!(stages, [1, 1, 1, 2]);
    // Each alone gives the same.
    let both = fixture.rows(
        "select i, sum(x) over (partition by g order by x), row_number() over (partition by t, g order by x desc, i), count(*) over (partition by g) from m order by i",
    );
    let sums = fixture.rows("select sum(x) over (partition by g order by x) from m order by i");
    let numbers = fixture
        .rows("select row_number() over (partition by t, g order by x desc, i) from m order by i");
    let counts = fixture.rows("select count(*) over (partition by g) from m order by i");
    for (at, row) in both.iter().enumerate() {
        let wanted = format!("{}|{}|{}|{}", at + 1, sums[at], numbers[at], counts[at]);
        assert_eq!(*row, wanted);
    }
    assert_eq!(both.len(), 5_000);
}

/// Over one partition of many rows, in which each frame has many: the time does not grow with the square of the rows.
#[test]
fn long_frames_over_one_partition_are_quick() {
    let fixture = Fixture::new();
    fixture.rows(
        "create table n (i bigint);
        insert into n select i from generate_series(1, 300000) as g(i);
        select 1",
    );
    let query = "select sum(s)::bigint, sum(c)::bigint, min(l), max(m), sum(n)::bigint from (
            select sum((i % 8)::double precision) over w as s, count(*) over w as c, min(i) over w as l, max(-i) over w as m,
                sum(i % 8) over (order by i rows between 100000 preceding and current row exclude current row) as n
            from n
            window w as (order by i rows between 100000 preceding and current row)) as q";
    assert_eq!(fixture.windows(query), 1);
    let (mut sums, mut counts, mut others) = (0, 0, 0);
    let mut running = 0;
    for i in 1..=300_000i64 {
        running += i % 8;
        if i > 100_001 {
            running -= (i - 100_001) % 8;
        }
        sums += running;
        counts += i.min(100_001);
        others += running - i % 8;
    }
    let wanted = format!("{sums}|{counts}|1|-1|{others}");
    assert_eq!(fixture.rows(query), [wanted]);
}
