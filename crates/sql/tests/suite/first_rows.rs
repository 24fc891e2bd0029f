//! The first rows of groups are kept by the engine: nothing sorts all rows, and the answer is what numbering all finds.

use std::sync::Arc;

use arrow::util::display::{ArrayFormatter, FormatOptions};

use crate::fixture;

/// A table `m` of measurements: 300 hosts, 20,000 rows, some values NULL. `at` is unique.
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
        let path = directory.path().join("f.atoll");
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        let fixture = Fixture {
            _directory: directory,
            workers,
            instance,
        };
        fixture.rows(
            "create table m (host text, at timestamp, cpu double precision, mem numeric(20,2), up boolean, note text);
            insert into m
            select 'host ' || i * 7 % 300, timestamp '2026-01-01' + (i * 7919 % 20000) * interval '1 minute',
                case when i % 9 > 0 then i * 31 % 100 * 0.5 end, i * 37 % 1000 * 1234567890.25, case when i % 5 > 0 then i % 3 = 0 end,
                case when i % 4 > 0 then 'a note with the number ' || i * 11 % 60 end
            from generate_series(1, 20000) as g(i);
            select 1",
        );
        fixture
    }

    /// The rows of the last of some statements, sorted.
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
        rows.sort();
        rows
    }
}

#[test]
fn the_engine_finds_the_first_rows_of_groups_without_a_sort() {
    let fixture = Fixture::new();
    let all = "host, at, cpu, mem, up, note";
    let number = "row_number() over (partition by host order by at desc)";
    let queries = [
        format!("select distinct on (host) {all} from m order by host, at desc"),
        format!("select {all} from (select *, {number} as n from m) as s where n = 1"),
        format!("select {all} from (select *, {number} as n from m) as s where n <= 5"),
        format!("select {all} from (select *, rank() over (partition by host order by cpu desc) as n from m) as s where n = 1"),
        format!("select {all} from (select *, dense_rank() over (partition by host order by cpu desc) as n from m) as s where n < 4"),
        format!("select {all} from (select *, {number} as n from m) as s where n in (1, 3)"),
        format!("select {all} from (select *, {number} as n from m) as s where n between 1 and 3"),
        "select host, (array_agg(cpu order by at))[1], (array_agg(cpu order by at desc))[1], max(cpu) from m group by host".into(),
        "select h.host, l.at, l.cpu from (select distinct host from m) as h, lateral (select at, cpu from m where m.host = h.host order by at desc limit 3) as l".into(),
        "select host, max_by(note, at), min_by(cpu, at), count(*) from m group by host".into(),
    ];
    for query in queries {
        let plan = fixture.rows(&format!("explain {query}")).join("\n");
        assert!(plan.contains("first("), "{query}\n{plan}");
        assert!(!plan.contains("run by datafusion"), "{query}\n{plan}");
        assert!(
            !plan.contains("WindowAgg") && !plan.contains("SortExec"),
            "{query}\n{plan}"
        );
    }
}

/// Blocks are read from the end where that has the first rows; what is found stays the same.
#[test]
fn the_last_rows_of_many_blocks() {
    let fixture = Fixture::new();
    fixture.rows(
        "create table b (k int, at bigint, v text, n bigint);
        insert into b select i * 31 % 1000, i / 2, case when i % 3 > 0 then 'v ' || i end, i from generate_series(1, 400000) as g(i);
        select 1",
    );
    for (order, wanted) in [("desc", "max"), ("", "min")] {
        let own = fixture.rows(&format!(
            "select count(*), sum(n), count(v) from (select distinct on (k) k, at, v, n from b order by k, at {order}) as s"
        ));
        let plain = fixture.rows(&format!(
            "select count(*), sum(b.n), count(v) from b join (select k, {wanted}(n) as n from b group by k) as s on s.n = b.n"
        ));
        assert_eq!(own, plain, "{order}");
        let own = fixture.rows(&format!(
            "select k, at, v from (select *, row_number() over (partition by k order by at {order}) as r from b) as s where r <= 3 and k % 50 = 7"
        ));
        let plain = fixture.rows(&format!(
            "select k, at, v from (select *, row_number() over (partition by k order by at {order}) as r from b) as s where r + 0 <= 3 and k % 50 = 7"
        ));
        assert_eq!(own.len(), 60);
        assert_eq!(own, plain, "{order}");
    }
}

#[test]
fn the_first_rows_of_groups_are_those_with_the_first_numbers() {
    let fixture = Fixture::new();
    let groups = ["host", "up", "note, up", "extract(hour from at)", "mem % 7"];
    let orders = [
        "at",
        "at desc",
        "cpu desc, at",
        "note nulls first, mem, at desc",
        "up desc nulls last, cpu, at",
    ];
    for groups in groups {
        for order in orders {
            let numbered = format!(
                "(select *, row_number() over (partition by {groups} order by {order}) as n from m) as s"
            );
            for most in [1, 2, 10, 300] {
                let own = fixture.rows(&format!("select * from {numbered} where n <= {most}"));
                let plain =
                    fixture.rows(&format!("select * from {numbered} where n + 0 <= {most}"));
                assert!(!own.is_empty());
                assert_eq!(own, plain, "{most} by {groups} in order of {order}");
            }
            for rank in ["rank", "dense_rank"] {
                let ranked = format!(
                    "(select *, {rank}() over (partition by {groups} order by {}) as n from m) as s",
                    order.split(',').next().unwrap()
                );
                for most in [1, 3, 40] {
                    let own = fixture.rows(&format!("select * from {ranked} where n <= {most}"));
                    let plain =
                        fixture.rows(&format!("select * from {ranked} where n + 0 <= {most}"));
                    assert!(!own.is_empty());
                    assert_eq!(own, plain, "{rank} {most} by {groups} in order of {order}");
                }
            }
        }
    }
}
