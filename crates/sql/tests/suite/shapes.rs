//! Queries that differ in constants alone give what they give when each is planned.

use sql::PlanUse;

use crate::repeated::Database;

/// A store with tables to ask.
fn database(plan_use: PlanUse) -> Database {
    let database = Database::empty(plan_use);
    let session = database.instance.session();
    for text in [
        "create table t (a int, b text, d date, f double precision, n numeric(9, 2), s smallint, k bigint, c char(3), ts timestamp, y boolean)",
        "insert into t select g, case when g % 7 = 0 then null else 'text ' || g % 13 end, date '2020-01-01' + g % 90, g * 0.5, g * 0.25, g % 100, g * 3000000, 'x' || g % 9, timestamp '2020-01-01' + g % 40 * interval '1 hour', g % 2 = 0 from generate_series(1, 3000) g",
        "create table u (a int primary key, b text, x int)",
        "insert into u select g, 'text ' || g % 11, g % 5 from generate_series(1, 400) g",
    ] {
        database.ask(&session, text).unwrap();
    }
    database
}

/// Queries with constants `{}`, and the constants that stand there one after the other; several of one query have `|` between them.
const QUERIES: [(&str, &[&str]); 49] = [
    (
        "select count(*), sum(k) from t where a < {}",
        &["5", "100", "0", "2999", "3000000000"],
    ),
    (
        "select count(*) from t where s = {}",
        &["5", "99", "40000", "3000000000", "7"],
    ),
    (
        "select count(*) from t where n <= {}",
        &["5", "100", "1.5", "0", "77"],
    ),
    (
        "select count(*) from t where f > {}",
        &["5", "100", "1e3", "0.5", "77"],
    ),
    (
        "select count(*) from t where k >= {}",
        &["5", "3000000000", "1", "2147483648", "9"],
    ),
    (
        "select count(*), min(a) from t where b = '{}'",
        &["text 1", "text 2", "", "it''s", "text 12"],
    ),
    (
        "select count(*) from t where b <> '{}' and a > 10",
        &["text 1", "text 2", "", "nothing"],
    ),
    (
        "select count(*) from t where b like '{}'",
        &[
            "text%",
            "%1",
            "%\\",
            "%_%_%_%_%_%_%_%_%_%",
            "text 1",
            "%",
            "a\\%b",
        ],
    ),
    (
        "select count(*) from t where b not like '{}'",
        &["%2", "text 1%", "%\\", "", "%x%"],
    ),
    (
        "select b from t where b like '{}' order by b limit 2",
        &["%3", "%4%", "%\\\\", "te_t 5"],
    ),
    (
        "select count(*) from t where c = '{}'",
        &["x1", "x2 ", "x3", "x", "x5"],
    ),
    (
        "select count(*) from t where d = '{}'",
        &[
            "2020-01-05",
            "2020-02-29",
            "2020-2-3",
            "nonsense",
            "January 9, 2020",
        ],
    ),
    (
        "select count(*) from t where d >= date '{}'",
        &[
            "2020-01-05",
            "2020-02-29",
            "2020-02-30",
            "2020-1-9",
            "epoch",
        ],
    ),
    (
        "select count(*) from t where d < date '{}' + interval '1 month'",
        &["2020-01-05", "2020-01-31", "2019-12-31", "2020-02-29"],
    ),
    (
        "select count(*) from t where d between date '{}' and date '{}' + 30",
        &[
            "2020-01-05|2020-01-01",
            "2020-02-01|2020-01-31",
            "2020-03-01|2020-01-01",
            "2020-01-01|2020-02-29",
        ],
    ),
    (
        "select count(*) from t where ts = '{}'",
        &[
            "2020-01-01",
            "2020-01-01 05:00",
            "2020-01-02 01:00:00",
            "now",
        ],
    ),
    (
        "select count(*) from t where y = '{}'",
        &["t", "false", "no", "x", "true"],
    ),
    (
        "select count(*) from t where a in ({}, {})",
        &["1|2", "5|5", "3|3000000000", "7|1.5", "9|10"],
    ),
    (
        "select count(*) from t where b in ('{}', '{}')",
        &["text 1|text 2", "text 1|text 1", "|x", "text 3|text 4"],
    ),
    (
        "select count(*) from t where b not in ('{}', '{}', '{}', '{}')",
        &[
            "text 1|text 2|a|b",
            "text 1|text 1|text 1|text 1",
            "|x|y|z",
            "text 3|text 4|text 5|text 6",
        ],
    ),
    (
        "select count(*) from t where a between {} and {}",
        &["1|20", "20|1", "5|5", "0|3000000000", "7|8"],
    ),
    (
        "select count(*) from t where a not between {} and {} or b = '{}'",
        &["1|20|text 1", "20|1|text 2", "5|5|x", "7|8|text 3"],
    ),
    (
        "select count(*) from t where a <= {} + 10 and a >= {} - 1",
        &["1|1", "20|5", "2147483647|5", "5|2147483647", "7|8"],
    ),
    (
        "select count(*) from t where a = {} and a = {}",
        &["1|1", "1|2", "5|5", "7|8"],
    ),
    (
        "select count(*) from t where (a = {} or a = {}) and not b = '{}'",
        &["1|1|text 2", "1|2|text 1", "5|6|x", "7|8|y"],
    ),
    (
        "select count(*), sum(u.x) from t, u where t.a = u.a and u.b = '{}' and t.s < {}",
        &["text 1|50", "text 2|5", "text 3|0", "x|10", "text 4|99"],
    ),
    (
        "select count(*), count(u.x) from t left join u on t.a = u.a and u.x = {} where t.a < {}",
        &["1|500", "2|100", "9|10", "3|401"],
    ),
    (
        "select count(*) from t where a in (select a from u where x = {}) and d > date '{}'",
        &[
            "1|2020-01-09",
            "2|2020-02-01",
            "3|2020-01-01",
            "7|2020-01-01",
        ],
    ),
    (
        "select count(*) from t where exists (select 1 from u where u.a = t.a and u.b = '{}') and t.s <> {}",
        &["text 1|5", "text 2|7", "text 3|1", "text 4|2"],
    ),
    (
        "select b, count(*) from t where a > (select min(a) from u where x = {}) and s = {} group by b order by b",
        &["1|5", "2|6", "3|7", "9|8"],
    ),
    (
        "with w as (select a, b from t where s = {}) select count(*), max(w.b) from w join u on w.a = u.a where u.x <= {}",
        &["1|2", "2|3", "3|0", "4|4"],
    ),
    (
        "select case when a = 5 then 'five' else b end as e, count(*) from t where a < {} group by 1 order by 1",
        &["9", "5", "6", "20"],
    ),
    (
        "select a from t where a = {} union all select a from u where a = {} order by 1",
        &["1|2", "5|5", "3|9999", "6|7"],
    ),
    (
        "select count(*), sum(n) from t where n > {} and f < {}",
        &[
            "1.25|7.5",
            "0.05|100.5",
            "2.75|0.25",
            "749.75|1.0",
            "10.00|1e3",
        ],
    ),
    (
        "select count(*) from t where a > {} and f >= {} and n <> {}",
        &[
            "-5|-1.5|-0.25",
            "-1|-0.5|0.25",
            "5|-10.0|7.75",
            "-2147483648|1.5|2.5",
        ],
    ),
    (
        "select count(*) from t where n between {} and {}",
        &[
            "0.25|2.50",
            "2.50|0.25",
            "-1.00|1.00",
            "3|4.25",
            "0.05|0.07",
        ],
    ),
    (
        "select count(*) from t where s between {} - {} and 50",
        &["10|5", "20|1", "32767|1", "5|2147483647", "7|7"],
    ),
    (
        "select count(*) from t where d < date '{}' + interval '{}'",
        &[
            "2020-01-05|1 month",
            "2020-01-31|1 month",
            "2019-12-31|40 days",
            "2020-02-29|1 hour",
            "2019-03-01|1 year",
            "2020-03-01|-10 days",
            "2020-01-01|nonsense",
        ],
    ),
    (
        "select count(*) from t where d <= date '{}' - interval '{}' day and ts > date '{}'",
        &[
            "2020-03-05|30|2020-01-01",
            "2020-01-31|3|2020-01-02",
            "2020-02-29|99999|2020-01-01",
            "2020-02-29|1.5|2020-01-01",
        ],
    ),
    (
        "select count(*) from t where substring(b, 1, 6) in ('{}', '{}') and b like '{}'",
        &[
            "text 1|text 2|%",
            "text 3|x|t%",
            "te||%1",
            "text 1|text 1|%\\\\",
        ],
    ),
    (
        "select b, count(*), sum(n) from t where a > {} group by b having count(*) > {} and sum(n) > {} order by b",
        &[
            "5|10|100.5",
            "100|250|3",
            "2000|-1|0.00",
            "1|231|7.25",
            "0|3000000000|1",
        ],
    ),
    (
        "select count(*) from t join u on t.a = u.a and (u.b = '{}' and t.s < {} or u.b = '{}' and t.s > {})",
        &[
            "text 1|50|text 2|10",
            "text 2|5|text 2|5",
            "x|1|y|2",
            "text 4|99|text 0|0",
        ],
    ),
    (
        "select count(*) from t, u where t.a = u.a and (u.x = {} and t.b = '{}' and t.n between {} and {} or u.x = {} and t.b in ('{}', 'x'))",
        &[
            "1|text 1|0.25|50.25|2|text 2",
            "2|text 2|5|10|2|text 2",
            "9|x|1.0|2.0|3|text 4",
            "4|text 9|0.00|9.99|0|",
        ],
    ),
    (
        "select count(*), count(u.x) from t left join u on t.a = u.a and u.b like '{}' and t.n < {} where t.c = '{}'",
        &["%1|10.5|x1", "text%|100.25|x2", "%|3|x3 ", "%\\\\|0.5|x4"],
    ),
    (
        "select case when b = 'text 1' then {} else 0 end, count(*) from t where n < {} group by 1 order by 1",
        &["1|2.5", "1|3.5", "1|4.5", "2|5.5", "1|0.25"],
    ),
    (
        "select s % 3 as m, sum(case when b = '{}' then n else 0 end), count(case when n > {} and b like '{}' then 1 end) from t group by 1 order by 1",
        &[
            "text 1|1.5|%1",
            "text 2|700.25|t%",
            "x|0.00|%2",
            "text 3|5|%3",
            "text 4|1e2|%4",
        ],
    ),
    (
        "select case when a < {} then 'low' when b = '{}' then b else 'high' end as e from t where a in ({}, 7, 8) order by a",
        &[
            "5|text 1|3",
            "8|text 7|9",
            "-1|text 8|8",
            "3000000000|x|1",
            "1.5|y|2",
        ],
    ),
    (
        "select count(*) from t where case when a = {} then b when d = date '{}' then c else '{}' end = '{}'",
        &[
            "5|2020-01-09|x|x",
            "6|2020-01-10|x|text 6",
            "7|2020-02-30|x|x7",
            "9|2020-02-01|x2|x2 ",
            "8|2020-02-01||",
        ],
    ),
    (
        "select 100 / (a - 7) as q from t where a = {}",
        &["8", "9", "7", "10", "7"],
    ),
];

/// A query with constants in its places.
fn filled(query: &str, constants: &str) -> String {
    let mut constants = constants.split('|');
    let parts: Vec<&str> = query.split("{}").collect();
    let mut text = parts[0].to_owned();
    for part in &parts[1..] {
        text.push_str(constants.next().unwrap());
        text.push_str(part);
    }
    assert_eq!(constants.next(), None, "{query}");
    text
}

#[test]
fn shapes_give_what_texts_give() {
    let (by_shape, planned) = (database(PlanUse::Repeatedly), database(PlanUse::Once));
    let (session, other) = (by_shape.instance.session(), planned.instance.session());
    for (query, constants) in QUERIES {
        let mut used = by_shape.instance.plans_used_again();
        for constants in constants.iter().cycle().take(3 * constants.len()) {
            // Each text is another one.
            used += 1;
            let text = filled(query, constants);
            let expected = planned.ask(&other, &text);
            let spaced = format!("{text} /* {used} */");
            assert_eq!(by_shape.ask(&session, &spaced), expected, "{text}");
        }
    }
    assert!(
        by_shape.instance.plans_used_again() > 250,
        "{}",
        by_shape.instance.plans_used_again()
    );
}

#[test]
fn shapes_are_planned_anew_when_something_changes() {
    let (by_shape, planned) = (database(PlanUse::Repeatedly), database(PlanUse::Once));
    let (session, other) = (by_shape.instance.session(), planned.instance.session());
    let changes = [
        "insert into t (a, b, d, s) values (5, 'text 1', date '2020-01-05', 3)",
        "alter table t drop column c",
        "alter table t alter column s type text using s::text || '!'",
        "begin",
        "update t set b = 'text 2' where a < 10",
        "rollback",
        "set datestyle = dmy",
        "reset datestyle",
        "delete from t where a > 100",
        "create schema reef",
        "create table reef.t as select a, b, d, s, n from t where a < 50",
        "set search_path = reef, public",
        "drop table reef.t",
        "truncate t",
    ];
    let queries: [(&str, [&str; 5]); 3] = [
        (
            "select count(*), sum(n) from t where s = '{}'",
            ["3", "3!", "4", "5!", "6"],
        ),
        (
            "select count(*) from t where b = '{}' and a < 60",
            ["text 1", "text 2", "text 3", "x", "text 4"],
        ),
        (
            "select count(*) from t where d = '{}'",
            [
                "2020-01-05",
                "05-01-2020",
                "2020-02-01",
                "2020-02-02",
                "2020-01-09",
            ],
        ),
    ];
    let mut number = 0;
    let mut all = |what: &str| {
        for (query, constants) in &queries {
            for constant in constants.iter().chain(constants) {
                number += 1;
                let text = filled(query, constant);
                let expected = planned.ask(&other, &text);
                let spaced = format!("{text} -- {number}");
                assert_eq!(by_shape.ask(&session, &spaced), expected, "{what}: {text}");
            }
        }
    };
    all("at first");
    for change in changes {
        assert_eq!(
            by_shape.ask(&session, change),
            planned.ask(&other, change),
            "{change}"
        );
        all(change);
    }
}
