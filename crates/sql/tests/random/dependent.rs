//! Subqueries that depend on the row outside, against themselves: for each row they must give what the same subquery
//! gives with the row's values written into it, where nothing is left to unnest.

use crate::answer::{Cell, Outcome};
use crate::model::{Row, with_tables};
use crate::random::Random;
use crate::{Database, WAYS};

/// The places in a template where the row's values go.
const PLACES: [&str; 2] = ["$k", "$v"];

/// A subquery of one column `bigint` over `s`. Sets may have several rows, values at most one.
fn subquery(random: &mut Random, is_set: bool, depth: usize) -> String {
    let place = *random.one(&PLACES);
    let sign = *random.one(&["=", "<>", "<", ">=", "is not distinct from"]);
    let column = *random.one(&["s.k", "s.v"]);
    let filter = condition(random, &format!("{column} {sign} {place}"), depth);
    match random.below(if is_set { 9 } else { 10 }) + if is_set { 10 } else { 0 } {
        0 => format!("select count(*) from s where {filter}"),
        1 => format!("select cast(sum(s.v) as bigint) from s where {filter}"),
        2 => format!("select s.v from s where {filter} order by s.v, s.n limit 1"),
        3 => format!("select s.v from s where {filter} order by s.n desc offset 1 limit 1"),
        4 => format!(
            "select max(g.c) from (select s.k, count(*) + {place} as c from s where {filter} group by s.k) g"
        ),
        5 => format!("select count(*) from (select distinct s.k from s where {filter}) d"),
        6 => format!(
            "select count(*) from s where {filter} having count(*) > {}",
            random.below(3)
        ),
        7 => format!(
            "select max(u.x) from ({}) u(x)",
            subquery(random, true, depth)
        ),
        8 => format!("select cast({place} + count(s.v) as bigint) from s"),
        9 => format!(
            "select count(b.n) from s left join s b on s.k = b.v and b.k {sign} {place} where s.n < 3"
        ),
        10 => format!("select s.v from s where {filter}"),
        11 => format!(
            "select s.v + {place} from s where {filter} order by 1 limit {}",
            random.below(4)
        ),
        12 => format!("select s.v from s where {filter} union all select cast({place} as bigint)"),
        13 => format!(
            "select cast(row_number() over (partition by s.k order by s.n) as bigint) from s where {filter}"
        ),
        14 => format!("select count(*) from s where {filter} group by s.k"),
        15 => format!("select distinct s.v from s where {filter}"),
        16 => format!(
            "select a.v from s a full join (select s.v, s.k from s where {filter}) b on a.k = b.v where a.n < 4"
        ),
        17 => format!("select distinct on (s.k) s.v from s where {filter} order by s.k, s.n"),
        _ => format!("select cast({place} as bigint) where {place} > 0"),
    }
}

/// `first`, perhaps with another condition, whose subquery names columns of both queries around it.
fn condition(random: &mut Random, first: &str, depth: usize) -> String {
    if depth == 0 || random.chance(60) {
        return first.to_string();
    }
    let mut inner = subquery(random, true, 0);
    while inner.contains(" join ") {
        inner = subquery(random, true, 0);
    }
    let inner = inner.replace("s.", "i.").replace("from s", "from s i");
    let inner = match random.below(3) {
        // The innermost query names a column of the middle one as well.
        0 => inner.replacen("$k", "s.k", 1),
        1 => inner.replacen("$v", "s.v", 1),
        _ => inner,
    };
    match random.below(3) {
        0 => format!("{first} and exists ({inner})"),
        1 => format!("({first} or s.v in ({inner}))"),
        _ => format!(
            "{first} and (select count(*) from ({inner}) c) > {}",
            random.below(2)
        ),
    }
}

/// An expression over a row, with subqueries.
fn expression(random: &mut Random) -> String {
    let value = subquery(random, false, 1);
    let set = subquery(random, true, 1);
    match random.below(9) {
        0 | 1 => format!("({value})"),
        2 => format!("exists ({set})"),
        3 => format!("$v in ({set})"),
        4 => format!("$k not in ({set})"),
        5 => format!("$v > any ({set})"),
        6 => format!("$v <= all ({set})"),
        7 => format!("coalesce(({value}), -1) + ({})", subquery(random, false, 1)),
        // Fails if there are two rows.
        _ => format!("({set})"),
    }
}

fn outer(template: &str) -> String {
    template.replace("$k", "o.k").replace("$v", "o.v")
}

fn inner(template: &str, row: &Row) -> String {
    let text = |value: Option<i64>| value.map_or("null".into(), |v| v.to_string());
    template
        .replace("$k", &format!("cast({} as int)", text(row.k)))
        .replace("$v", &format!("cast({} as bigint)", text(row.v)))
}

/// The rows of `query`, or none if it fails.
fn rows(outcome: Outcome, query: &str) -> Option<Vec<Vec<Cell>>> {
    match outcome {
        Outcome::Rows { rows, .. } => Some(rows),
        Outcome::Failed(message) if message.contains("more than one row") => None,
        other => panic!("{query}: {other:?}"),
    }
}

/// What `query` must give: rows as the rows of `o` give them, one by one.
fn expected(
    database: &Database,
    o: &[Row],
    each: impl Fn(&Row) -> String,
) -> Option<Vec<(usize, Vec<Vec<Cell>>)>> {
    let mut all = Vec::new();
    for (n, row) in o.iter().enumerate() {
        let query = each(row);
        all.push((n, rows(database.ours(&query), &query)?));
    }
    Some(all)
}

fn sorted(mut rows: Vec<Vec<Cell>>) -> Vec<String> {
    rows.sort_by_key(|row| format!("{row:?}"));
    rows.iter().map(|row| format!("{row:?}")).collect()
}

fn check(database: &Database, query: &str, expected: Option<Vec<Vec<Cell>>>, context: &str) {
    let found = rows(database.ours(query), query).map(sorted);
    assert_eq!(found, expected.map(sorted), "{query}\n{context}");
}

fn number(n: usize) -> Cell {
    Cell::Text(n.to_string())
}

#[test]
fn subqueries_give_for_each_row_what_they_give_for_its_values() {
    with_tables(41, 3, |database, random, o, _, create| {
        for _ in 0..12 {
            let template = expression(random);
            let value = expected(database, o, |row| {
                format!("select {}", inner(&template, row))
            });
            let all = value.map(|rows| {
                let one = |(n, mut rows): (usize, Vec<Vec<Cell>>)| {
                    let mut row = vec![number(n)];
                    row.append(&mut rows[0]);
                    row
                };
                rows.into_iter().map(one).collect()
            });
            let query = format!("select n, {} from o", outer(&template));
            check(database, &query, all, create);
        }
    });
}

#[test]
fn lateral_subqueries_give_for_each_row_the_rows_of_its_values() {
    with_tables(43, 3, |database, random, o, _, create| {
        for _ in 0..8 {
            let template = subquery(random, true, 1);
            let is_left = random.chance(50);
            let sets = expected(database, o, |row| inner(&template, row)).expect("no value");
            let mut all = Vec::new();
            for (n, rows) in sets {
                if rows.is_empty() && is_left {
                    all.push(vec![number(n), Cell::Null]);
                }
                all.extend(rows.into_iter().map(|row| [vec![number(n)], row].concat()));
            }
            let join = if is_left { "left join" } else { "join" };
            let query = format!(
                "select n, l.x from o {join} lateral ({}) l(x) on true",
                outer(&template)
            );
            check(database, &query, Some(all), create);
        }
    });
}

#[test]
fn subqueries_stand_in_every_place() {
    let rows = [
        (Some(1), Some(2)),
        (Some(2), None),
        (None, Some(1)),
        (Some(1), Some(3)),
    ];
    for way in WAYS {
        let database = Database::over(vec![], way);
        let literal = |value: Option<i64>| value.map_or("null".into(), |v| v.to_string());
        let mut create =
            "create table o (n int, k int, v bigint); create table s (n int, k int, v bigint);"
                .to_string();
        for (n, (k, v)) in rows.into_iter().enumerate() {
            for table in ["o", "s"] {
                create += &format!(
                    "insert into {table} values ({n}, {}, {});",
                    literal(k),
                    literal(v)
                );
            }
        }
        database.ours(&create);
        for (query, expected) in [
            (
                "select n from o where (select s.v from s where s.n = o.n) = 2",
                "0",
            ),
            (
                "select sum((select count(*) from s where s.k < o.v)) from o",
                "5",
            ),
            (
                "select (select count(*) from s where s.k = o.k) as c, count(*) from o group by 1 order by 1",
                "0 1, 1 1, 2 2",
            ),
            (
                "select n from o order by (select max(s.n) from s where s.k = o.k) nulls first, n",
                "2, 1, 0, 3",
            ),
            (
                "select n from o join s x using (n) where x.v = (select min(s.v) from s where s.k = o.k and s.n <= x.n)",
                "0",
            ),
            (
                "select k from o group by k having count(*) > (select count(*) from s where s.k > o.k) order by 1",
                "1, 2, null",
            ),
            (
                "select n, (select max(w) from (select s.n + (select count(*) from s b where b.k = s.k and b.n < o.n) as w from s) x) from o order by 1",
                "0 3, 1 4, 2 4, 3 4",
            ),
        ] {
            let rows = self::rows(database.ours(query), query).expect("one row");
            let cell = |cell: &Cell| match cell {
                Cell::Null => "null".to_string(),
                Cell::Text(text) => text.clone(),
                Cell::Float(value) => value.to_string(),
            };
            let row = |row: &Vec<Cell>| row.iter().map(cell).collect::<Vec<_>>().join(" ");
            let found: Vec<String> = rows.iter().map(row).collect();
            assert_eq!(found.join(", "), expected, "{query}");
        }
    }
}
