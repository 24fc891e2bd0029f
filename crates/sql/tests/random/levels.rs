//! Grouping sets, whose coarser groups our engine merges from finer ones, and variances.

use crate::answer::Outcome;
use crate::{Database, WAYS, agree};

/// NULL is a key and a value; averages of whole numbers, decimals and floats.
const MEASURED: &str = "with t as (select rid % 7 as a, \
    case when rid % 5 = 0 then null else cast(rid % 5 as varchar) end as b, rid % 3 as c, \
    case when rid % 11 = 0 then null else cast(rid * 1000 as int) end as n, \
    case when rid % 4 = 0 then null else cast(rid as decimal(12, 3)) end as d, \
    case when rid % 13 > 9 then null else cast(rid as double) / 8 end as f from many)";

#[test]
fn coarser_groups_are_merged_from_finer_ones() {
    let all = "count(*), count(n), sum(n), min(n), max(b), avg(n), sum(d), avg(d), sum(f), avg(f), avg(c)";
    let sets = [
        "rollup (a, b)",
        "cube (a, b, c)",
        "grouping sets ((a), (b), (), (a), (a, b), (b, a))",
        "grouping sets ((b), (a))",
        "grouping sets ((c, a), (a, b))",
        "c, rollup (b, a)",
        "rollup (a + 1, upper(b)), cube (c)",
        "grouping sets ((), ())",
    ];
    let queries = [
        "select a, b, grouping(b, a), grouping(a), count(*) from t group by cube (b, a) having count(*) > 20",
        "select a, count(distinct b), sum(distinct n), avg(distinct c), count(*), avg(d) from t group by rollup (a)",
        "select b, count(distinct b), count(distinct a) from t group by grouping sets ((b), ())",
        "select a, count(*), sum(n), avg(d), min(b), avg(f) from t where a > 1000 group by grouping sets ((a), ())",
        "select b, bool_and(n > 5000), bool_or(n > 300000) from t group by rollup (b)",
        "select a, sum(n) filter (where n > 5000), count(*) filter (where b is null), avg(d) filter (where a > 2) from t group by rollup (a)",
        "select a, sum(n) + sum(n + 1) from t group by rollup (a) order by a nulls first limit 3",
        "select a, b from t group by grouping sets ((a), (b), (b))",
        "select a, a + 1, count(*) from t group by grouping sets ((a, a + 1), (a + 1))",
        "select x.rid, y.n from few x join (select a, c, sum(n) as n from t group by rollup (a, c)) y on x.rid = y.a",
    ];
    for way in WAYS {
        let database = Database::new(5, way);
        for set in sets {
            agree(
                &database,
                way,
                &format!("{MEASURED} select {all} from t group by {set}"),
            );
        }
        for query in queries {
            agree(&database, way, &format!("{MEASURED} {query}"));
        }
        let text = format!("explain {MEASURED} select {all} from t group by cube (a, b)");
        match database.ours(&text) {
            Outcome::Rows { rows, .. } => {
                let shown = format!("{rows:?}");
                assert_eq!(shown.matches("scan many").count(), 1, "{shown}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn variances_are_those_of_datafusion() {
    let all =
        "stddev(n), stddev_samp(f), stddev_pop(d), variance(n), var_samp(d), var_pop(f), count(f)";
    let queries = [
        "group by a",
        "group by b, c",
        "",
        "where a > 1000",
        "where n = 1000 group by b",
        "where n = 1000",
        "group by n",
    ];
    for way in WAYS {
        let database = Database::new(5, way);
        for query in queries {
            agree(
                &database,
                way,
                &format!("{MEASURED} select {all} from t {query}"),
            );
        }
        agree(
            &database,
            way,
            &format!(
                "{MEASURED} select a, bool_and(f > 9), bool_or(n > 300000), stddev(f) filter (where c = 1) from t group by a"
            ),
        );
    }
}
