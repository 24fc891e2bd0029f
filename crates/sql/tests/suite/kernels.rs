//! What the engine computes by kernels, and what it does not compute for each pair of rows.

use std::sync::Arc;

use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::fixture;

struct Fixture {
    _directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
}

impl Fixture {
    fn new() -> Fixture {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let options = sql::Options::spilling_to(directory.path());
        let path = directory.path().join("k.atoll");
        let store = store::Options::default();
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        let fixture = Fixture {
            _directory: directory,
            workers,
            instance,
        };
        fixture.text(
            "create table m (host text, at timestamp, z timestamptz, d date, v double precision, i bigint);
            insert into m
            select 'host ' || i % 7, timestamp '2026-01-01' + i * interval '1 minute', timestamptz '2026-01-01 00:00:00+00' + i * interval '1 minute',
                date '2026-01-01' + i % 400, i * 0.25, i
            from generate_series(1, 20000) as g(i);
            create table e (id int, at timestamp);
            insert into e select i, timestamp '2026-01-02' + i * interval '3 hours' from generate_series(1, 50) as g(i);
            create table j (id int, doc jsonb);
            insert into j select i, jsonb_build_object('a', jsonb_build_object('b', i % 5), 'n', i) from generate_series(1, 1000) as g(i);
            select 1",
        );
        fixture
    }

    /// The rows of the last of some statements, a line each.
    fn text(&self, text: &str) -> String {
        let session = self.instance.session();
        let answers = self.workers.handle().block_on(session.execute(text));
        let answer = answers.unwrap().pop().unwrap();
        let options = FormatOptions::default().with_null("NULL");
        let mut lines = Vec::new();
        for batch in &answer.batches {
            let columns = batch.columns().iter();
            let columns = columns.map(|column| ArrayFormatter::try_new(column, &options).unwrap());
            let columns: Vec<_> = columns.collect();
            for row in 0..batch.num_rows() {
                let values = columns.iter().map(|column| column.value(row).to_string());
                lines.push(values.collect::<Vec<_>>().join("|"));
            }
        }
        lines.join("\n")
    }
}

#[test]
fn moments_and_quotients_have_kernels() {
    let fixture = Fixture::new();
    for (expression, wanted) in [
        ("date_trunc('hour', at)", "bin(at, 3600000000, 0)"),
        ("date_trunc('month', z)", "months(z, 1)"),
        (
            "date_trunc('day', d)",
            "bin((d * 86400000000), 86400000000, 0)",
        ),
        (
            "date_bin('15 minutes', at, timestamp '2020-01-01')",
            "bin(at, 900000000,",
        ),
        ("extract(hour from z)", "cycle(z, 3600000000, 24"),
        ("extract(dow from d)", "cycle(d, 1, 7"),
        ("extract(month from at)", "month(at)"),
        ("extract(epoch from at)", "(at + 0)"),
        (
            "floor(extract(epoch from at) / 300)",
            "floor((at + 0) / 300000000)",
        ),
        ("at + interval '5 minutes'", "(at + 300000000)"),
        ("z - interval '1 month'", "later(z, -1, 0)"),
        ("at::date", "floor(at / 86400000000)"),
        ("i / 60", "(i / 60)"),
        ("i % 7", "(i % 7)"),
        ("floor(v)", "floor(v)"),
        ("width_bucket(v, 0, 100, 10)", "bucket(v, 0.0, 100.0, 10)"),
    ] {
        let plan = fixture.text(&format!(
            "explain select {expression}, count(*) from m group by 1"
        ));
        assert!(
            plan.contains(&format!("= {wanted}")),
            "{expression}\n{plan}"
        );
    }
}

#[test]
fn ranges_are_bands() {
    let fixture = Fixture::new();
    let query = "select e.id, count(*) from e join m on m.at >= e.at and m.at < e.at + interval '5 minutes' group by e.id";
    let plan = fixture.text(&format!("explain {query}"));
    assert!(plan.contains("in bands of at"), "{plan}");
    let found = fixture.text(&format!("select count(*), sum(count) from ({query}) as q"));
    assert_eq!(found, "50|250");
}

#[test]
fn what_reads_json_runs_on_the_engine() {
    let fixture = Fixture::new();
    let query = "select doc->'a'->>'b' as b, count(*), sum((doc->>'n')::bigint) from j where doc->>'n' <> '7' group by 1 order by 1";
    let plan = fixture.text(&format!("explain {query}"));
    assert!(plan.contains("in one pass"), "{plan}");
    assert!(plan.contains("->> 'n' in ('7')"), "{plan}");
    assert!(
        !plan.contains("AggregateExec") && !plan.contains("datafusion"),
        "{plan}"
    );
    let found = fixture.text(query);
    let wanted = [
        "0|200|100500",
        "1|200|99700",
        "2|199|99893",
        "3|200|100100",
        "4|200|100300",
    ];
    assert_eq!(found, wanted.join("\n"));
}

#[test]
fn the_last_rows_of_a_lateral_subquery_are_not_sorted() {
    let fixture = Fixture::new();
    let query = "select e.id, x.v from e cross join lateral (select v from m where m.at <= e.at order by m.at desc limit 1) as x where e.id < 4 order by 1";
    let plan = fixture.text(&format!("explain {query}"));
    // Neither sorted nor joined to pairs: each row finds its own.
    assert!(
        plan.contains("nearest at <= at") && !plan.contains("window by"),
        "{plan}"
    );
    let found = fixture.text(query);
    assert_eq!(found, "1|405.0\n2|450.0\n3|495.0");
}
