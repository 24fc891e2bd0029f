//! The walk over all parts of a statement or a query.

use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{Expr, Query, Select, Statement, TableFactor, ValueWithSpan, Visit, Visitor};

use crate::flow::{flow, outcome};
use crate::grammar::{expr, query, sets, statement};
use crate::walk::Walk;

/// Refuses the parts of `tree`, a statement or a query, that are not supported.
pub fn check(tree: &impl Visit) -> Result<()> {
    outcome(tree.walk(&mut Checker { reading: 0 }))
}

struct Checker {
    /// How many calls that read files are open: they check their arguments themselves.
    reading: usize,
}

impl Visitor for Checker {
    type Break = Box<Error>;

    fn pre_visit_statement(&mut self, statement: &Statement) -> ControlFlow<Box<Error>> {
        flow(statement::check(statement).and_then(|()| sets::statement(statement)))
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Box<Error>> {
        flow(query::check(query).and_then(|()| sets::query(query)))
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Box<Error>> {
        flow(query::select(select).and_then(|()| sets::select(select)))
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Box<Error>> {
        self.reading += usize::from(query::reads_files(factor));
        flow(query::table_factor(factor))
    }

    fn post_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Box<Error>> {
        self.reading -= usize::from(query::reads_files(factor));
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<Box<Error>> {
        match self.reading {
            0 => flow(expr::check(expr).and_then(|()| sets::expr(expr))),
            _ => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_value(&mut self, value: &ValueWithSpan) -> ControlFlow<Box<Error>> {
        flow(expr::value(&value.value))
    }
}

#[cfg(test)]
mod tests {
    use crate::parse::parse;

    /// The message of the refusal of `text`.
    fn refusal(text: &str) -> String {
        match parse(text) {
            Ok(_) => panic!("taken: {text}"),
            Err(e) => e.to_string(),
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "it is a table of cases")]
    fn what_is_refused_is_named() {
        for (text, named) in [
            (
                "select * from t tablesample bernoulli (10) repeatable (1)",
                "repeatable",
            ),
            ("select * from t sample 10", "sample"),
            (
                "select * from (select 1) q tablesample (10 percent)",
                "tablesample",
            ),
            (
                "select distinct a from t for update",
                "FOR UPDATE is not allowed with DISTINCT clause",
            ),
            (
                "select a from t union select a from u for share",
                "FOR SHARE is not allowed with UNION/INTERSECT/EXCEPT",
            ),
            ("select * from t with (nolock)", "with (...)"),
            ("select * from t partition (p0)", "partition"),
            ("select * from f(1) with ordinality", "with ordinality"),
            ("select * from t pivot (sum(a) for b in (1, 2))", "pivot"),
            ("select * from t unpivot (a for b in (c, d))", "unpivot"),
            (
                "select * from t match_recognize (pattern (a) define a as true)",
                "match_recognize",
            ),
            ("select * ilike 'c%' from t", "* ilike"),
            ("select * rename (a as b) from t", "* rename"),
            ("select top 3 * from t", "top"),
            ("select * from (select a into u from t) q", "select into"),
            ("select a from t prewhere a > 1", "prewhere"),
            ("select a from t connect by prior a = b", "connect by"),
            ("select a from t cluster by a", "cluster by"),
            ("select a from t distribute by a", "distribute by"),
            ("select a from t sort by a", "sort by"),
            (
                "select a from t lateral view explode(b) x as c",
                "lateral view",
            ),
            (
                "select a, sum(b) from t group by a with rollup",
                "with rollup",
            ),
            (
                "select a, sum(b) from t group by a with totals",
                "with totals",
            ),
            ("select a from t order by a with fill", "with fill"),
            ("select a from t limit 3 by a", "limit by"),
            ("select a from t fetch first 3 rows with ties", "with ties"),
            ("select a from t fetch first 3 percent rows only", "percent"),
            ("select a from t settings max_threads = 1", "settings"),
            ("select a from t format JSON", "format"),
            ("select a from t for json auto", "for json"),
            ("select a from t join u", "join"),
            (
                "select a from t asof join u match_condition (t.a > u.a)",
                "asof join",
            ),
            ("select a from t cross apply f(a)", "apply"),
            ("insert or replace into t values (1)", "insert or replace"),
            ("insert or ignore into t values (1)", "insert or ignore"),
            ("replace into t values (1)", "replace into"),
            ("insert ignore into t values (1)", "insert ignore"),
            ("insert overwrite table t select 1", "insert overwrite"),
            ("insert into t partition (a = 1) select 1", "partition"),
            ("update t set a = 1 limit 1", "limit"),
            ("update or replace t set a = 1", "update or"),
            ("delete from t limit 1", "limit"),
            ("delete from t order by a", "order by"),
            ("create table t (a int) without rowid", "without rowid"),
            ("create table t (a int) engine = memory", "engine"),
            ("create table t (a int) comment 'x'", "comment"),
            ("select quantile(0.9)(a) from t", "(0.9)(...)"),
            ("select a:b from t", "a:b"),
            ("select a collate \"de_DE\" from t", "collate"),
            ("select cast(a as date format 'YYYY') from t", "format"),
            ("select a is normalized from t", "is normalized"),
            ("select a rlike 'x' from t", "rlike"),
            ("select convert(a, int) from t", "convert"),
            ("select N'a'", "N'...'"),
            ("select $1", "$1"),
            ("select interval 1 year to month", "year to month"),
            ("select !a from t", "!"),
            ("select from t", "columns"),
            ("show tables like 'a%'", "show tables"),
            ("describe extended t", "describe extended"),
            ("drop table t purge", "purge"),
            ("create view v (a int) as select 1", "int"),
            ("alter table t add column a int first", "first"),
            ("begin immediate", "immediate"),
            ("set transaction snapshot 'x'", "snapshot"),
            ("execute p using 1", "using"),
            ("prepare p as select ?", "?"),
            ("prepare p as drop table t", "prepare"),
            (
                "prepare p as select * from t tablesample (1)",
                "tablesample",
            ),
            ("explain (format yaml) select 1", "format"),
            (
                "select * from (with q as (insert into t values (1) returning a) select * from q) r",
                "insert",
            ),
            (
                "with q as (merge into t using s on true when matched then delete) select 1",
                "merge",
            ),
            ("select 1abc", "1abc"),
            ("select 1__0", "1__0"),
            ("select 1_", "1_"),
            ("select 10L", "10L"),
        ] {
            let message = refusal(text);
            assert!(
                message.to_lowercase().contains(&named.to_lowercase()),
                "{text}: {message}"
            );
            assert!(!message.contains(" { "), "{text}: {message}");
        }
    }

    #[test]
    fn what_is_done_is_taken() {
        for text in [
            "from t",
            "with q as (insert into t values (1) returning a) select * from q",
            "with q as (select 1) insert into t select * from q",
            "with q as (select 1), r as (delete from t returning *) update u set a = 1 from r",
            "from t select a",
            "select * from (from (select 42 a), (select 43 b)) q",
            "table t",
            "table \"T\" order by 1 limit 2",
            "select a from (table t) q union all table t",
            "create table u as table t",
            "create table u (\"table\" int)",
            "select 1 as table from t",
            "select a from t fetch first 3 rows only",
            "select a from t offset 2 rows fetch next row only",
            "select * exclude (a) from t",
            "select * except (a) from t",
            "select * replace (a + 1 as a) from t",
            "select a, b from t order by all desc",
            "select sum(a) over w from t window w as (partition by b)",
            "select sum(a) filter (where b > 1) from t",
            "select percentile_cont(0.5) within group (order by a) from t",
            "select a from t natural join u",
            "with recursive q(n) as (select 1 union all select n + 1 from q where n < 5) select n from q",
            "insert into t (a) select 1",
            "create table t (a int primary key, b varchar not null references u (c))",
            "delete from t where a = 1",
            "insert into t values (1) returning a",
            "insert into t default values",
            "update t as u set a = 1 returning u.*",
            "delete from t returning a + 1 as b, *",
            "begin transaction isolation level serializable, read only",
            "rollback work to savepoint s",
            "prepare p (int) as select $1 + a from t where b in ($2, $2)",
            "execute p (1, 'x')",
            "deallocate all",
            "create or replace view v (x) as select 1",
            "alter table t add column b int default 1",
            "truncate table t cascade",
            "select a into u from t",
            "update t set a = a + 1 where b in (select b from u)",
            "select case a when 1 then 2 end, a is distinct from b, (a, b) = (1, 2), -a ^ 2 from t",
            "select 1_000, 0.000_1, 1e3",
            "select * from read_csv('a.csv', nullstr = ['NA', '-'], types = {'a': 'int'})",
        ] {
            if let Err(e) = parse(text) {
                panic!("{text}: {e}");
            }
        }
    }
}
