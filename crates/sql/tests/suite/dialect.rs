//! Names of columns, texts of errors and plans: what people see of a statement beside its rows.

use std::sync::Arc;

use crate::fixture;

struct Database {
    workers: Arc<workers::Workers>,
    instance: Arc<sql::Instance>,
    directory: tempfile::TempDir,
}

impl Database {
    fn new(executor: sql::Executor) -> Database {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let mut store = store::Options::default();
        store.pool.nodes = vec![None; workers.nodes()];
        let mut options = sql::Options::spilling_to(directory.path());
        options.executor = executor;
        let path = directory.path().join("t.atoll");
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        let database = Database {
            workers,
            instance,
            directory,
        };
        database
            .answer("create table t (a int, b varchar, sum int); insert into t values (1, 'x', 7), (2, 'y', 8)")
            .unwrap();
        database
    }

    fn answer(&self, text: &str) -> Result<sql::Answer, String> {
        let session = self.instance.session();
        let answers = self.workers.handle().block_on(session.execute(text));
        Ok(answers.map_err(|e| e.to_string())?.pop().unwrap())
    }

    fn names(&self, text: &str) -> Vec<String> {
        let answer = self.answer(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        for batch in &answer.batches {
            assert_eq!(batch.schema(), answer.schema, "{text}");
        }
        let fields = answer.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn error(&self, text: &str) -> String {
        match self.answer(text) {
            Ok(_) => panic!("no error: {text}"),
            Err(e) => e,
        }
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "it is a table of cases")]
fn columns_are_called_as_postgresql_calls_them() {
    for executor in [sql::Executor::Fused, sql::Executor::Staged] {
        let database = Database::new(executor);
        for (query, names) in [
            (
                "select 1, 'a', 1 + 1, -a, a = 1, not true from t",
                "?column?,?column?,?column?,?column?,?column?,?column?",
            ),
            (
                "select count(*), sum(a), COUNT(a), count(distinct b) from t",
                "count,sum,count,count",
            ),
            ("select a, a, T.a, b as a from t", "a,a,a,a"),
            ("select *, a, count(*) over () from t", "a,b,sum,a,count"),
            ("select * from t x, t y", "a,b,sum,a,b,sum"),
            ("select x.a, y.a from t x, t y", "a,a"),
            (
                "select case when a = 1 then 2 end, case a when 1 then 2 else a end from t",
                "case,a",
            ),
            (
                "select cast(a as bigint), 1::bigint, '1'::int, cast(1 as double precision), 'a'::text from t",
                "a,int8,int4,float8,text",
            ),
            (
                "select date '2020-01-01', timestamp '2020-01-01', interval '1 day'",
                "date,timestamp,interval",
            ),
            (
                "select extract(year from date '2020-01-01'), substring('abc', 1, 2), trim(' a '), position('a' in 'b'), ceil(1.5)",
                "extract,substring,btrim,position,ceil",
            ),
            (
                "select (select max(a) from t), exists (select 1), coalesce(a, 1), nullif(a, 1) from t",
                "max,exists,coalesce,nullif",
            ),
            (
                "select row_number() over (order by a), sum(a) over () from t",
                "row_number,sum",
            ),
            (
                "select mod(a, 2), year(date '2020-01-01'), count_if(a > 1) from t group by a",
                "mod,year,count_if",
            ),
            ("select count(*) from t union all select a from t", "count"),
            ("select 1, 1 union select 2, 3", "?column?,?column?"),
            (
                "select * from (select count(*), sum(a) from t) q",
                "count,sum",
            ),
            ("select count from (select count(*) from t) q", "count"),
            (
                "with q as (select max(a) from t) select max + 1, max from q",
                "?column?,max",
            ),
            ("select \"?column?\" from (select 1) q", "?column?"),
            ("select * from (select 1, 2) q", "?column?,?column?"),
            ("select \"A b\" from (select 1 as \"A b\") q", "A b"),
            ("values (1, 2)", "column1,column2"),
            (
                "select count(*) from t group by sum order by count",
                "count",
            ),
            ("select sum(a) from t group by sum having sum > 7", "sum"),
            (
                "select upper(b), upper(b) from t order by upper",
                "upper,upper",
            ),
            (
                "select current_date, now(), current_user",
                "current_date,now,current_user",
            ),
        ] {
            assert_eq!(database.names(query).join(","), names, "{query}");
        }
    }
}

/// A name that a column got does not change what the rest of the statement means.
#[test]
fn names_do_not_shadow_columns() {
    for executor in [sql::Executor::Fused, sql::Executor::Staged] {
        let database = Database::new(executor);
        let rows = |text: &str| {
            let answer = database
                .answer(text)
                .unwrap_or_else(|e| panic!("{text}: {e}"));
            arrow::util::pretty::pretty_format_batches(&answer.batches)
                .unwrap()
                .to_string()
                .lines()
                .skip(3)
                .filter(|line| line.starts_with('|'))
                .map(|line| line.replace(['|', ' '], ""))
                .collect::<Vec<_>>()
                .join(";")
        };
        // The column `sum` of the table, which is 7 and 8, not the sum of `a`, which is 1 and 2.
        assert_eq!(
            rows("select sum(a) from t group by sum having sum > 7"),
            "2"
        );
        assert_eq!(
            rows("select sum(a) from t group by sum order by -sum"),
            "2;1"
        );
        // The output column, as in PostgreSQL.
        assert_eq!(rows("select -a as sum from t order by sum"), "-2;-1");
        assert_eq!(
            rows("select max(-a) from t group by b order by max"),
            "-2;-1"
        );
        assert_eq!(
            rows("select distinct upper(b) from t order by upper(b) desc"),
            "Y;X"
        );
        let error = database.error("select a as x, b as x from t order by x");
        assert!(error.contains("ambiguous"), "{error}");
    }
}

#[test]
fn tables_and_files_take_no_two_columns_of_a_name() {
    let database = Database::new(sql::Executor::Fused);
    let error = database.error("create table u as select a, a from t");
    assert_eq!(error, "column \"a\" appears twice; rename one with `as`");
    let file = database.directory.path().join("t.parquet");
    let copy = |query: &str| format!("copy ({query}) to '{}'", file.display());
    let error = database.error(&copy("select count(*), count(a) from t"));
    assert_eq!(
        error,
        "column \"count\" appears twice; rename one with `as`"
    );
    database
        .answer("create table u as select count(*), 1 from t")
        .unwrap();
    assert_eq!(database.names("select * from u"), ["count", "?column?"]);
    database.answer(&copy("select count(*), 1 from t")).unwrap();
    let read = format!("select * from '{}'", file.display());
    assert_eq!(database.names(&read), ["count", "?column?"]);
}

#[test]
fn information_schema_has_standard_types() {
    let database = Database::new(sql::Executor::Fused);
    database
        .answer("create table u (a smallint not null, b decimal(10, 2), c timestamp, d double, e timestamp with time zone, f boolean)")
        .unwrap();
    let answer = database
        .answer("select column_name, ordinal_position, is_nullable, data_type, numeric_precision, numeric_scale from information_schema.columns where table_name = 'u' order by ordinal_position")
        .unwrap();
    let text = arrow::util::pretty::pretty_format_batches(&answer.batches)
        .unwrap()
        .to_string();
    for line in [
        "| a           | 1                | NO          | smallint                    | 16                | 0             |",
        "| b           | 2                | YES         | numeric                     | 10                | 2             |",
        "| c           | 3                | YES         | timestamp without time zone |                   |               |",
        "| d           | 4                | YES         | double precision            | 53                |               |",
        "| e           | 5                | YES         | timestamp with time zone    |                   |               |",
        "| f           | 6                | YES         | boolean                     |                   |               |",
    ] {
        assert!(text.contains(line), "{line}\n{text}");
    }
}

/// Words of the planner's own: of its syntax trees, of its types, of its literals.
const JARGON: [&str; 14] = [
    "{",
    "}",
    "Some(",
    "Int64",
    "Int32",
    "Utf8",
    "Float64",
    "Decimal128",
    "Date32",
    "Timestamp(",
    "MonthDayNano",
    "Expr",
    "DataFusion",
    "\u{1f}",
];

#[test]
fn plans_and_errors_are_for_people() {
    for executor in [sql::Executor::Fused, sql::Executor::Staged] {
        let database = Database::new(executor);
        for query in [
            "select count(*), count(*) from t where a > 1 and b like 'x%'",
            "select a + 1.5, date '2020-01-01' + interval '90 days' from t",
            "select a from t where a = 1 or b = 'it''s' order by a limit 3",
            "select sum(a) over (order by b) from t",
            "select stddev(a), b from t group by b having count(*) > 1",
            "select cast(a as decimal(10, 2)) * 1.5, cast(a as double) from t where a * 0.5 < 1.25",
        ] {
            for explain in ["explain", "explain verbose", "explain analyze"] {
                let answer = database.answer(&format!("{explain} {query}")).unwrap();
                let plan = arrow::util::pretty::pretty_format_batches(&answer.batches)
                    .unwrap()
                    .to_string();
                for word in [
                    "Some(",
                    "Int64(",
                    "Utf8(",
                    "MonthDayNano",
                    "Decimal128(",
                    "Date32(",
                    "\u{1f}",
                ] {
                    assert!(!plan.contains(word), "{word} in {explain} {query}:\n{plan}");
                }
            }
        }
        for query in [
            "select a, count(*) from t",
            "select nosuch(a) from t",
            "select sum(b) from t",
            "select a + interval '1 day' from t",
            "select a and true from t",
            "select * from t where a",
            "select b + 1 from t where date '2020-01-01' = 1.5",
            "select date_trunc(1, 2)",
            "select substr(a) from t",
            "select (select a from t)",
            "select a from t where a in (select a, b from t)",
            "select x.a from t",
            "select cast(b as date) from t",
            "select a from t order by 9",
            "select a from t limit 'x'",
            "select -b from t",
            "select not a from t",
            "select sum(a, b) from t",
            "select lag(a, 'x') over (order by a) from t",
            "select count(*), count(*) from t order by nosuch",
            "insert into t (a, b) values (1)",
            "update t set nosuch = 1",
            "select percentile_cont('x') within group (order by a) from t",
            "select a from t where timestamp '2020-01-01' > 5",
            "select a from t group by rollup(a) having nosuch(a)",
            "select struct(1, 2)",
            "select * from unnest(1)",
            "select 1 from t join t on true",
        ] {
            let error = database.error(query);
            for word in JARGON {
                assert!(
                    !error.contains(word),
                    "{word} in the error of {query}: {error}"
                );
            }
            assert!(!error.contains("defect"), "{query}: {error}");
        }
    }
}
