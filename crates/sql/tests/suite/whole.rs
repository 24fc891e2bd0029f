//! What the engine runs, and what it refuses.

use std::sync::Arc;

use arrow::array::AsArray;

use crate::fixture;

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
        fixture.last(
            "create table staff (id bigint, name text, dept integer, boss bigint, salary numeric(10, 2), bonus double precision, \
                 rate real, tag bytea, u uuid, gap interval, skills text[], doc jsonb, active boolean); \
             insert into staff select i, 'name ' || i % 40, i % 7, i % 11, i % 50, i * 0.5, i % 3, '\\x01ff', \
                 gen_random_uuid(), i % 4 * interval '1 day', array['a', 'b'], '{\"a\": 1}', i % 2 = 0 \
                 from generate_series(1, 5000) as g(i); \
             create sequence tickets; \
             create table room (id integer, title text, low numeric(10, 2), high numeric(10, 2)); \
             insert into room values (1, 'x', 0, 15), (2, 'y', 10, 30), (3, 'z', 0, 0); \
             select 1",
        );
        fixture
    }

    /// The last answer of some statements.
    fn last(&self, text: &str) -> sql::Answer {
        let session = self.instance.session();
        let answers = self.workers.handle().block_on(session.execute(text));
        let answers = answers.unwrap_or_else(|e| panic!("{text}: {e}"));
        answers.into_iter().next_back().unwrap()
    }

    /// What a statement fails with.
    fn error(&self, text: &str) -> String {
        let session = self.instance.session();
        let answers = self.workers.handle().block_on(session.execute(text));
        answers.expect_err(text).to_string()
    }

    /// The lines of a plan.
    fn plan(&self, text: &str) -> String {
        let mut lines = String::new();
        for batch in &self.last(text).batches {
            let column = arrow::compute::cast(batch.column(0), &arrow::datatypes::DataType::Utf8);
            for line in column.unwrap().as_string::<i32>().iter().flatten() {
                lines.push_str(line);
                lines.push('\n');
            }
        }
        lines
    }
}

/// Statements no part of which DataFusion runs.
const WHOLE: &[&str] = &[
    "select dept, string_agg(name, ',' order by id desc), array_agg(salary) from staff group by dept",
    "select string_agg(distinct name, ',') filter (where active) from staff",
    "select dept, array_agg(distinct boss) from staff group by dept",
    "select percentile_cont(0.5) within group (order by bonus), mode() within group (order by name) from staff",
    "select dept, percentile_disc(0.9) within group (order by salary), median(bonus) from staff group by dept",
    "select dept, bit_and(id), bit_or(id), bit_xor(id) from staff group by dept",
    "select jsonb_agg(name), jsonb_object_agg(id, dept) from staff where id < 5",
    "select rate, count(*), sum(rate), min(rate), max(rate) from staff group by rate",
    "select tag, u, count(*) from staff group by tag, u",
    "select gap, max(gap), sum(gap) from staff group by gap",
    "select skills, doc, count(*) from staff group by skills, doc",
    "select count(distinct (name, dept)), count(distinct tag) from staff",
    "select id, u from staff order by u limit 3",
    "select a.id from staff a join staff b on a.u = b.u",
    "select doc->>'a', count(*) from staff group by 1",
    "select id from staff where 'a' = any(skills)",
    "select tag from staff union select '\\x02'",
    "select id, exists (select 1 from room r where r.id = s.dept and r.high < s.salary) from staff s",
    "select id from staff s where exists (select 1 from room r where r.low < s.salary) or s.active",
    "select id from staff s where not exists (select 1 from room r where r.id = s.dept and r.low < s.bonus) or s.id < 9",
    "select sum(salary / dept), avg(salary / 3), dept from staff where dept > 0 group by dept",
    "select a.id from staff a, staff b where a.salary > (select dept from staff where id = 1) and a.id = b.id \
     and b.bonus < (select dept from staff where id = 1)",
    "select a.id from staff a join staff b on a.dept = b.dept join staff c on c.boss = a.boss and c.name = b.name where a.id < 4",
    "select e.id, r.id from staff e full join room r on e.dept = r.id and e.salary < r.high",
    "select g, count(e.id), sum(e.salary) from generate_series(1, 9) g left join staff e on e.dept = g group by g",
    "select e.id, r.id from staff e left join room r on e.salary between r.low and r.high",
    "select dept, corr(salary, bonus), regr_count(bonus, salary) filter (where active) from staff group by dept",
    "select variance(distinct bonus), sum(distinct salary) from staff",
    "select s.id, c from staff s join (select dept, covar_pop(salary, bonus) c from staff group by dept) d on s.dept = d.dept",
    "with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) select sum(n) from t join staff s on s.id = t.n",
    "select id, unnest(skills) from staff",
    "select k, count(*) from staff, unnest(skills) as k group by k",
    "select s.id, g from staff s, generate_series(1, s.dept) as g where s.id < 20",
    "select relname, count(*) from pg_class group by relname",
    "select c.relname, s.id from pg_class c join staff s on c.relname = s.name",
    "select count(*) from staff where random() < 0.5",
    "select id from staff order by random() limit 5",
    "select id from staff where name > (select min(title) from room) || ''",
    "select id, coalesce((select max(high) from room where low > 99), salary) from staff",
    "select a, count(*) from (values (1 + 1, array['x']), (2, null)) as v(a, b) group by a",
    "select dept, active, stddev(bonus), string_agg(name, ',' order by id), corr(salary, bonus) from staff group by rollup (dept, active)",
    "select dept, avg(random()), count(*) filter (where random() < 0.5) from staff group by dept",
    "select id, gen_random_uuid() from staff",
    "select a.id, a.r from (select id, random() as r from staff) a join staff b on a.id = b.id",
    "with recursive t(n) as (select 1::bigint union select s.boss from t join staff s on s.id = t.n) select n from t",
    "with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) select * from t",
    "with recursive t(n) as (select 1 union all select n + 1 from t where n < 5) select array_agg(n) from t",
    "select approx_distinct(name) from staff",
    "select s.id, c from staff s join (select dept, approx_distinct(name) c from staff group by dept) d on s.dept = d.dept",
    "select id, nextval('tickets') from staff where id < 50",
    "select nextval('tickets'), id, nextval('tickets') + currval('tickets') from staff order by id limit 5",
    "select array_agg(name) over (partition by dept order by id rows 2 preceding) from staff where id < 500",
    "select string_agg(name, ',') filter (where active) over (order by id rows between 1 preceding and 1 following exclude current row) from staff",
    "select sum(salary::numeric(38, 10)) over (order by id) from staff",
    "select id, null as nothing from staff",
    "select s.id, x.c from staff s, lateral (select count(*) as c from unnest(s.skills) as k) as x",
    "select count(distinct (name, dept)) from staff",
    "values (gen_random_uuid(), 1), (gen_random_uuid(), 2)",
    "select id, case when id <= (select max(id) from room) then 'yes' else 'no' end from staff",
    "select id, case when active then (select max(title) from room) when id > 5 then name else (select min(title) from room) end from staff",
    "select relname from pg_class",
    "select relname from pg_class limit 3 offset 1",
    "select * from staff a left join staff b on a.id = b.id and random() < 0.5",
    "select id, row_number() over (order by random()) from staff",
];

#[test]
fn the_engine_runs_them_whole() {
    let fixture = Fixture::new();
    for text in WHOLE {
        let plan = fixture.plan(&format!("explain {text}"));
        assert!(plan.contains("stage 0"), "{text}\n{plan}");
        let answer = fixture.last(text);
        assert_eq!(answer.statistics.ran_on, "algebra", "{text}");
    }
}

#[test]
fn what_the_engine_does_not_run_is_refused() {
    let fixture = Fixture::new();
    for verb in ["", "explain ", "explain analyze ", "explain (format json) "] {
        let text =
            format!("{verb}select count(*) from staff a full join staff b on random() < 0.5");
        let error = fixture.error(&text);
        assert!(
            error.contains("a full join on a condition that differs each time"),
            "{text}: {error}"
        );
    }
}
