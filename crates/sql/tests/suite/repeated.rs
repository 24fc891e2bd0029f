//! A query that its session runs again word for word goes by the plan of the time before, but only as long as planning would
//! come to the same.

use std::sync::Arc;

use arrow::util::pretty::pretty_format_batches;
use futures::TryStreamExt;
use sql::PlanUse;

use crate::fixture;

/// A store and who runs statements on it.
pub(crate) struct Database {
    _directory: tempfile::TempDir,
    workers: Arc<workers::Workers>,
    pub(crate) instance: Arc<sql::Instance>,
}

impl Database {
    /// Without tables.
    pub(crate) fn empty(plan_use: PlanUse) -> Database {
        let (workers, directory) = (fixture::workers(), tempfile::tempdir().unwrap());
        let mut store = store::Options::default();
        store.pool.bytes = 8 << 20;
        let mut options = sql::Options::spilling_to(directory.path());
        options.plan_use = plan_use;
        let path = directory.path().join("r.atoll");
        let instance = fixture::instance(&workers, &path, 256 << 20, store, options);
        Database {
            _directory: directory,
            workers,
            instance,
        }
    }

    fn new(plan_use: PlanUse) -> Database {
        let database = Database::empty(plan_use);
        let session = database.instance.session();
        for text in [
            "create schema reef",
            "create table t (a int, b text)",
            "insert into t values (1, 'a'), (2, 'b'), (null, 'c')",
            "create table reef.t (a int, b text)",
            "insert into reef.t values (10, 'x')",
            "create view v as select a from t where a > 1",
            "create sequence s",
        ] {
            database.ask(&session, text).unwrap();
        }
        database
    }

    /// The rows of a statement as a text, or its error.
    pub(crate) fn ask(&self, session: &sql::Session, text: &str) -> Result<String, String> {
        let rows = async {
            let stream = session.stream(text).await?;
            stream.try_collect::<Vec<_>>().await
        };
        let batches = self.workers.handle().block_on(rows);
        let batches = batches.map_err(|e| e.to_string())?;
        Ok(pretty_format_batches(&batches).unwrap().to_string())
    }

    fn used(&self) -> u64 {
        self.instance.plans_used_again()
    }
}

#[test]
fn the_third_run_is_not_planned() {
    let database = Database::new(PlanUse::Repeatedly);
    let session = database.instance.session();
    let text = "select b, sum(a) as n from t where a > 0 group by b order by b";
    let first = database.ask(&session, text).unwrap();
    for round in 0..4 {
        assert_eq!(database.ask(&session, text).unwrap(), first);
        assert_eq!(database.used(), round);
    }
    // Whatever is written, the next run is planned, and those behind it are not.
    database
        .ask(&session, "insert into reef.t values (11, 'y')")
        .unwrap();
    for round in 3..6 {
        assert_eq!(database.ask(&session, text).unwrap(), first);
        assert_eq!(database.used(), round);
    }
    let mut used = database.used();
    // Other texts are planned until they run again, and always what may say something else or locks.
    for text in [
        "select b, sum(a) as n  from t where a > 0 group by b order by b",
        "select now() > timestamp '2020-01-01', count(*) from t",
        "select random() < 2 from t",
        "select current_user is null from t",
        "select * from generate_series(1, 2) x",
        "with x as (select random() < 2 as r from t) select a.r from x a, x b",
        "select a from t where a > 1 for update",
        "select pg_advisory_lock(1) is null from t",
        "select count(*) from pg_class where relname = 't'",
    ] {
        for _ in 0..3 {
            database.ask(&session, text).unwrap();
        }
        let expected = if text.starts_with("select b") {
            6
        } else {
            used
        };
        assert_eq!(database.used(), expected, "{text}");
        used = expected;
    }
    // Numbers of a sequence are new ones.
    let texts: Vec<String> = (0..4)
        .map(|_| database.ask(&session, "select nextval('s')").unwrap())
        .collect();
    assert!(texts.windows(2).all(|pair| pair[0] != pair[1]));
}

/// Programs that are kept run again and at the same time, whatever they keep of rows while they run.
#[test]
fn programs_run_again_and_at_once() {
    let database = Database::new(PlanUse::Repeatedly);
    let session = database.instance.session();
    database
        .ask(
            &session,
            "create table n as select g as a, g % 977 as k, 'text ' || g % 313 as t from generate_series(1, 20000) g",
        )
        .unwrap();
    for text in [
        "select k, count(*), sum(a), min(t) from n group by k order by k",
        "select count(*), sum(x.a) from n x join n y on x.a = y.k where y.t like '%1%'",
        "select a, row_number() over (partition by k order by a desc) as r from n order by r, a limit 5",
        "select t, count(distinct k) from n group by t order by 2 desc, 1 limit 7",
        "select k, t, grouping(k, t), count(*) from n group by rollup (k, t) order by 3, 1, 2 limit 9",
        "select a from n where k in (select max(k) from n group by t) order by a desc limit 3",
        "select x.a, y.a from n x left join n y on y.a = x.k and y.t = x.t order by 1, 2 limit 4",
        "select a from n where k < 5 except select a from n where k > 3 order by 1 limit 6",
        "select sum(length(upper(t))), avg(a) from n where upper(t) <> 'TEXT 7'",
    ] {
        let first = database.ask(&session, text).unwrap();
        let used = database.used();
        for _ in 0..3 {
            assert_eq!(database.ask(&session, text).unwrap(), first, "{text}");
        }
        assert_eq!(database.used(), used + 2, "{text}");
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..3 {
                        assert_eq!(database.ask(&session, text).unwrap(), first, "{text}");
                    }
                });
            }
        });
    }
}

#[test]
fn each_run_is_planned_if_that_is_wanted() {
    let database = Database::new(PlanUse::Once);
    let session = database.instance.session();
    for _ in 0..5 {
        database.ask(&session, "select sum(a) from t").unwrap();
    }
    assert_eq!(database.used(), 0);
}

#[test]
fn no_plan_is_stale() {
    let database = Database::new(PlanUse::Repeatedly);
    let (own, other) = (database.instance.session(), database.instance.session());
    let texts = [
        "select sum(a) from t",
        "select * from v order by 1",
        "select count(*), max(a) from t where b is not null",
        "select a from t where a in (select a from v) order by a",
        "select a from t union all select a from reef.t order by a",
        "select '01/02/2024'::date, a from t order by a",
    ];
    let changes: [(bool, &str); 22] = [
        (true, "insert into t values (3, null)"),
        (false, "insert into t values (4, 'd')"),
        (true, "set search_path = reef, public"),
        (true, "insert into reef.t values (1, 'z')"),
        (true, "reset search_path"),
        (true, "begin"),
        (true, "insert into t values (5, 'e')"),
        (true, "savepoint p"),
        (true, "delete from t where a = 1"),
        (true, "rollback to p"),
        (true, "rollback"),
        (
            false,
            "create or replace view v as select (a + 100)::int as a from t",
        ),
        (true, "create temporary table t (a int, b text)"),
        (true, "insert into t values (77, 'q')"),
        (true, "drop table t"),
        (false, "update t set a = a * 2"),
        (true, "set datestyle = dmy"),
        (true, "reset datestyle"),
        (false, "alter table t add column c int default 5"),
        (false, "alter table t rename column c to d"),
        (false, "truncate reef.t"),
        (false, "delete from t"),
    ];
    for (is_own, change) in changes {
        for text in &texts {
            for _ in 0..3 {
                database.ask(&own, text).unwrap();
            }
        }
        let who = if is_own { &own } else { &other };
        database
            .ask(who, change)
            .unwrap_or_else(|e| panic!("{change}: {e}"));
        for text in &texts {
            // With a comment it is another text.
            let planned = database.ask(&own, &format!("{text} /* {change} */"));
            for _ in 0..3 {
                assert_eq!(database.ask(&own, text), planned, "{change}: {text}");
            }
        }
    }
    assert!(database.used() > 200, "{}", database.used());
    database.ask(&other, "drop view v").unwrap();
    database.ask(&other, "drop table t").unwrap();
    let gone = database.ask(&own, texts[0]).unwrap_err();
    assert!(gone.contains("t"), "{gone}");
}
