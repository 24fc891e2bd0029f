//! What a query has more than once is computed once, and `explain` tells who reads it. That the rows are right is in
//! `slt/common_subplans.slt`.

use std::sync::Arc;

use crate::fixture;

/// Two tables of the same columns.
struct Database {
    _directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
}

impl Database {
    fn new() -> Database {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let mut store = store::Options::default();
        store.pool.bytes = 8 << 20;
        let options = sql::Options::spilling_to(directory.path());
        let path = directory.path().join("c.atoll");
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        let database = Database {
            _directory: directory,
            workers,
            instance,
        };
        database.lines(
            "create table s (o int, w int, i int, p int);
             create table z (o int, w int, i int, p int);
             create table d (i int primary key, c int);
             insert into s select g / 4, g * 7 % 5, g % 11, g from generate_series(1, 4000) g;
             insert into z select g / 4, g * 7 % 5, g % 11, g from generate_series(1, 4000) g;
             insert into d select g, g % 3 from generate_series(0, 10) g",
        );
        database
    }

    /// The texts of the first column of the last statement.
    fn lines(&self, text: &str) -> Vec<String> {
        let session = self.instance.session();
        let answers = self.workers.handle().block_on(session.execute(text));
        let answer = answers.unwrap_or_else(|e| panic!("{text}: {e}")).pop();
        let mut lines = Vec::new();
        for batch in &answer.unwrap().batches {
            let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8);
            let column = column.unwrap();
            let texts: &arrow::array::StringArray = column.as_any().downcast_ref().unwrap();
            lines.extend(texts.iter().flatten().map(str::to_owned));
        }
        lines
    }

    /// Demands that the plan of a query scans `s` so often, and has a line with each of `told`.
    fn expect(&self, query: &str, scans: usize, told: &[&str]) {
        let lines = self.lines(&format!("explain {query}"));
        let plan = lines.join("\n");
        let found = lines.iter().filter(|line| {
            let line = line.trim_start();
            line.starts_with("scan s ") || line.starts_with("TableScan: s ")
        });
        assert_eq!(found.count(), scans, "{query}\n{plan}");
        for part in told {
            assert!(plan.contains(part), "{part} is missing: {query}\n{plan}");
        }
    }
}

#[test]
fn equal_subplans_are_computed_once() {
    let database = Database::new();
    let groups = "with v as (select w, i, sum(p) a, count(*) b, max(o) c from s group by w, i)";
    let twice =
        "with x as (select a.o, a.w one, b.w two from s a, s b where a.o = b.o and a.w <> b.w)";
    let joined = "with j as (select d.c, s.w, s.p from s join d using (i) where d.c = 1)";
    let cases: [(String, usize, &[&str]); 9] = [
        // By other names, of other columns, in another order.
        (
            format!("{groups} select y.w, x.a, x.b, x.c, y.b from v x, v y where x.i = y.i + 1"),
            1,
            &["read 2 times"],
        ),
        (
            "select (select count(*) from (select w, i, sum(p) from s group by w, i having sum(p) > 9) x), \
             (select max(b) from (select t.i, t.w, count(*) b from s t group by t.i, t.w having sum(t.p) > 9) y)"
                .into(),
            1,
            &["read 2 times"],
        ),
        (
            "select count(*) from (select distinct w, i from s) x, (select i, w from s group by i, w) y where x.w = y.i"
                .into(),
            1,
            &["read 2 times"],
        ),
        // Distinct rows of a join of which only that they are there is asked.
        (
            format!(
                "{twice} select count(*) from z where o in (select o from x) and o in (select d.i from d, x where d.i = x.o)"
            ),
            2,
            &["read 2 times", "fold by krao(o)"],
        ),
        // A join with few rows, by groups of it.
        (
            format!("{joined} select w, sum(p) from j group by w union all select c, max(p) from j group by c"),
            1,
            &["read 2 times"],
        ),
        // Three readers in parts of a plan whose rest is no part.
        (
            format!(
                "{groups}, n as (select i, w, a, percent_rank() over (partition by w order by i) r from v) \
                 select count(*) from n x, n y, n z where x.w = y.w and x.w = z.w and x.r < y.r and y.r < z.r"
            ),
            1,
            &[],
        ),
        // A value.
        (
            "select count(*) from z where p > (select avg(p) from s) and w < (select avg(p) from s)".into(),
            1,
            &[],
        ),
        // What `not in` looks into.
        (
            "select i from d where c not in (select s.w from s join z on s.o = z.o where z.p > 5)".into(),
            1,
            &["read 3 times"],
        ),
        // Common subplans within common subplans.
        (
            format!(
                "{groups}, t as (select i, sum(a) a from v group by i) \
                 select (select sum(x.a) from t x, t y where x.i = y.i + 1), (select sum(b) from v)"
            ),
            1,
            &["read 2 times"],
        ),
    ];
    for (query, scans, told) in &cases {
        database.expect(query, *scans, told);
    }
}

#[test]
fn other_subplans_are_computed_each() {
    let database = Database::new();
    let joined = "with x as (select a.o, a.w one, b.w two, a.p from s a, s b where a.o = b.o)";
    let cases: [(String, usize); 7] = [
        // Another table of the same columns, another filter, function, key.
        (
            "select count(*) from (select i, sum(p) a from s group by i) x, (select i, sum(p) a from z group by i) y where x.i = y.i".into(),
            1,
        ),
        (
            "select count(*) from (select i, sum(p) a from s group by i) x, (select i, sum(p) a from s where w > 1 group by i) y where x.a = y.a".into(),
            2,
        ),
        (
            "select count(*) from (select i, sum(p) a from s group by i) x, (select i, min(p) a from s group by i, w) y where x.a = y.a".into(),
            2,
        ),
        // A bare scan with a filter.
        (
            "with v as (select w, p from s where i = 3) select (select max(p) from v), (select min(w) from v where p > 7)".into(),
            2,
        ),
        // A join that multiplies rows, each of which counts.
        (
            format!("{joined} select (select sum(one) from x), (select count(*) from (select p from x group by p) y)"),
            4,
        ),
        // Functions of one such join are one aggregate.
        (
            format!("{joined} select (select sum(one) from x), (select sum(two * p) from x)"),
            2,
        ),
        // A join that becomes part of another.
        (
            "with j as (select s.o, s.p, d.c from s join d using (i)) select count(*), sum(x.p + y.c) from j x, j y where x.o = y.o".into(),
            2,
        ),
    ];
    for (query, scans) in &cases {
        database.expect(query, *scans, &[]);
    }
}
