//! `in`, `any`, `all` and `exists` with NULL, and sets that count their rows, against a model: every executor must give
//! what SQL says, so that it does not help that they agree.

use std::fmt::Write;

use crate::answer::{Cell, Outcome};
use crate::random::Random;
use crate::{Database, WAYS};

/// A number or NULL.
pub(crate) type Value = Option<i64>;

/// A row of the tables `o` and `s`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Row {
    pub k: Value,
    pub v: Value,
}

fn rows(random: &mut Random, most: usize) -> Vec<Row> {
    let nulls = *random.one(&[0, 20, 60]);
    let value = |random: &mut Random| {
        if random.chance(nulls) {
            None
        } else {
            Some(random.within(0, 3))
        }
    };
    (0..random.below(most + 1))
        .map(|_| Row {
            k: value(random),
            v: value(random),
        })
        .collect()
}

fn text(value: Value) -> String {
    value.map_or("null".into(), |v| v.to_string())
}

/// The statements that make the table `name`.
fn create(name: &str, rows: &[Row], null: &str) -> String {
    let mut text = format!("create table {name} (n int, k int{null}, v bigint{null});");
    for (n, row) in rows.iter().enumerate() {
        let (k, v) = (self::text(row.k), self::text(row.v));
        write!(text, " insert into {name} values ({n}, {k}, {v});").unwrap();
    }
    text
}

const SIGNS: [&str; 6] = ["=", "<>", "<", "<=", ">", ">="];

fn compared(a: Value, sign: &str, b: Value) -> Option<bool> {
    let (a, b) = (a?, b?);
    Some(match sign {
        "=" => a == b,
        "<>" => a != b,
        "<" => a < b,
        "<=" => a <= b,
        ">" => a > b,
        _ => a >= b,
    })
}

fn any(of: impl Iterator<Item = Option<bool>>) -> Option<bool> {
    let mut found = Some(false);
    for one in of {
        match one {
            Some(true) => return one,
            Some(false) => {}
            None => found = None,
        }
    }
    found
}

fn not(value: Option<bool>) -> Option<bool> {
    value.map(|v| !v)
}

/// A predicate with a subquery: which rows of `s` it is over, and what it asks of them.
#[derive(Clone, Debug)]
struct Member {
    /// `s.k sign o.k`, if it depends on the row outside.
    correlated: Option<&'static str>,
    /// Only the rows of which `k` is less than this.
    below: Option<i64>,
    asks: Asks,
    /// What stands on the left: a column of `o`, or a constant.
    left: Left,
}

#[derive(Clone, Copy, Debug)]
enum Left {
    Column,
    Constant(Value),
    /// NULL where `v` is 1, though neither says so.
    Computed,
}

#[derive(Clone, Copy, Debug)]
enum Asks {
    In,
    NotIn,
    Any(&'static str),
    All(&'static str),
    Exists,
    NotExists,
}

impl Member {
    fn draw(random: &mut Random) -> Member {
        let correlated = match random.below(5) {
            0 | 1 => Some("="),
            2 => Some(*random.one(&["<", ">=", "<>"])),
            _ => None,
        };
        let sign = *random.one(&SIGNS);
        Member {
            correlated,
            below: random.chance(40).then(|| random.within(0, 4)),
            asks: *random.one(&[
                Asks::In,
                Asks::NotIn,
                Asks::Any(sign),
                Asks::Any(sign),
                Asks::All(sign),
                Asks::All(sign),
                Asks::Exists,
                Asks::NotExists,
            ]),
            left: match random.below(6) {
                0 => Left::Constant(*random.one(&[None, Some(0), Some(2)])),
                1 => Left::Computed,
                _ => Left::Column,
            },
        }
    }

    fn sql(&self) -> String {
        let mut conditions = Vec::new();
        conditions.extend(self.correlated.map(|sign| format!("s.k {sign} o.k")));
        conditions.extend(self.below.map(|most| format!("s.k < {most}")));
        let filter = if conditions.is_empty() {
            String::new()
        } else {
            format!(" where {}", conditions.join(" and "))
        };
        let set = format!("(select s.v from s{filter})");
        let left = match self.left {
            Left::Column => "o.v".into(),
            Left::Constant(None) => "cast(null as bigint)".into(),
            Left::Constant(value) => text(value),
            Left::Computed => "nullif(o.v, 1)".into(),
        };
        match self.asks {
            Asks::In => format!("{left} in {set}"),
            Asks::NotIn => format!("{left} not in {set}"),
            Asks::Any(sign) => format!("{left} {sign} any {set}"),
            Asks::All(sign) => format!("{left} {sign} all {set}"),
            Asks::Exists => format!("exists {set}"),
            Asks::NotExists => format!("not exists {set}"),
        }
    }

    fn of(&self, row: Row, set: &[Row]) -> Option<bool> {
        let left = match self.left {
            Left::Column => row.v,
            Left::Constant(value) => value,
            Left::Computed => row.v.filter(|v| *v != 1),
        };
        let there = |s: &&Row| {
            let fits = self.correlated.map(|sign| compared(s.k, sign, row.k));
            let below = self.below.map(|most| compared(s.k, "<", Some(most)));
            fits.unwrap_or(Some(true)) == Some(true) && below.unwrap_or(Some(true)) == Some(true)
        };
        let set = || set.iter().filter(there).map(|s| s.v);
        match self.asks {
            Asks::In => any(set().map(|v| compared(left, "=", v))),
            Asks::NotIn => not(any(set().map(|v| compared(left, "=", v)))),
            Asks::Any(sign) => any(set().map(|v| compared(left, sign, v))),
            Asks::All(sign) => not(any(set().map(|v| not(compared(left, sign, v))))),
            Asks::Exists => Some(set().next().is_some()),
            Asks::NotExists => Some(set().next().is_none()),
        }
    }
}

fn cell(value: Value) -> Cell {
    value.map_or(Cell::Null, |v| Cell::Text(v.to_string()))
}

fn truth(value: Option<bool>) -> Cell {
    value.map_or(Cell::Null, |v| Cell::Text(v.to_string()))
}

/// A query over `member` and the rows it must have.
fn placed(random: &mut Random, member: &Member, o: &[Row], s: &[Row]) -> (String, Vec<Vec<Cell>>) {
    let p = member.sql();
    let numbered = || o.iter().enumerate().map(|(n, row)| (n as i64, *row));
    let those = |holds: &dyn Fn(i64, Row) -> bool| -> Vec<Vec<Cell>> {
        let rows = numbered().filter(|(n, row)| holds(*n, *row));
        rows.map(|(n, _)| vec![cell(Some(n))]).collect()
    };
    let of = |row: Row| member.of(row, s);
    match random.below(8) {
        0 => (
            format!("select n from o where {p}"),
            those(&|_, row| of(row) == Some(true)),
        ),
        1 => (
            format!("select n from o where not ({p})"),
            those(&|_, row| of(row) == Some(false)),
        ),
        2 => (
            format!("select n from o where ({p}) is null"),
            those(&|_, row| of(row).is_none()),
        ),
        3 => (
            format!("select n from o where {p} or n = 1"),
            those(&|n, row| of(row) == Some(true) || n == 1),
        ),
        4 => (
            format!("select n from o where n < 4 and ({p}) is not true"),
            those(&|n, row| n < 4 && of(row) != Some(true)),
        ),
        5 => (
            format!("select n, case when {p} then 1 when ({p}) is null then 2 else 3 end from o"),
            numbered()
                .map(|(n, row)| {
                    let which = match of(row) {
                        Some(true) => 1,
                        None => 2,
                        Some(false) => 3,
                    };
                    vec![cell(Some(n)), cell(Some(which))]
                })
                .collect(),
        ),
        6 => (
            format!("select count(*), count({p}) from o"),
            vec![vec![
                cell(Some(o.len() as i64)),
                cell(Some(
                    o.iter().filter(|row| of(**row).is_some()).count() as i64
                )),
            ]],
        ),
        _ => (
            format!("select n, {p} from o"),
            numbered()
                .map(|(n, row)| vec![cell(Some(n)), truth(of(row))])
                .collect(),
        ),
    }
}

/// What is wrong with the answer to `query`.
fn wrong(outcome: Outcome, mut expected: Vec<Vec<Cell>>) -> Option<String> {
    let Outcome::Rows { mut rows, .. } = outcome else {
        return Some(format!("{outcome:?}"));
    };
    rows.sort_by_key(|row| format!("{row:?}"));
    expected.sort_by_key(|row| format!("{row:?}"));
    (rows != expected).then(|| format!("{rows:?}, but {expected:?}"))
}

/// Asks both engines.
fn check(database: &Database, query: &str, expected: &[Vec<Cell>], context: &str) {
    if let Some(what) = wrong(database.ours(query), expected.to_vec()) {
        panic!("{query}\n{what}\n{context}");
    }
}

/// Runs `each` on several pairs of tables `o` and `s` for each way to run queries.
pub(crate) fn with_tables(
    seed: u64,
    pairs: usize,
    each: impl Fn(&Database, &mut Random, &[Row], &[Row], &str),
) {
    for (number, way) in WAYS.into_iter().enumerate() {
        let database = Database::over(vec![], way);
        let mut random = Random::new(seed + number as u64);
        for _ in 0..pairs {
            let (o, s) = (rows(&mut random, 7), rows(&mut random, 6));
            let full = |rows: &[Row]| rows.iter().all(|row| row.k.is_some() && row.v.is_some());
            let null = |rows: &[Row]| if full(rows) { " not null" } else { "" };
            let create = [create("o", &o, null(&o)), create("s", &s, null(&s))].concat();
            if let failed @ (Outcome::Failed(_) | Outcome::Arithmetic(_)) = database.ours(&create) {
                panic!("{create}: {failed:?}");
            }
            each(&database, &mut random, &o, &s, &create);
            database.ours("drop table o; drop table s");
        }
    }
}

#[test]
fn members_of_subqueries_are_true_false_or_null() {
    with_tables(17, 6, |database, random, o, s, create| {
        for _ in 0..8 {
            let member = Member::draw(random);
            let (query, expected) = placed(random, &member, o, s);
            check(database, &query, &expected, create);
        }
    });
}

/// Sets of rows, as SQL writes them and as they are.
fn set(random: &mut Random, o: &[Row], s: &[Row], depth: usize) -> (String, Vec<Row>) {
    if depth == 0 || random.chance(20) {
        let (name, rows) = *random.one(&[("o", o), ("s", s)]);
        return if random.chance(30) {
            (
                format!("select k, v from {name} where k > 0"),
                rows.iter().copied().filter(|row| row.k > Some(0)).collect(),
            )
        } else {
            (format!("select k, v from {name}"), rows.to_vec())
        };
    }
    let (a, mine) = set(random, o, s, depth - 1);
    let (b, theirs) = set(random, o, s, depth - 1);
    let operator = *random.one(&[
        "except all",
        "except all",
        "intersect all",
        "intersect all",
        "union all",
        "union",
        "except",
        "intersect",
    ]);
    (
        format!("({a}) {operator} ({b})"),
        combined(operator, mine, theirs),
    )
}

fn combined(operator: &str, mut mine: Vec<Row>, theirs: Vec<Row>) -> Vec<Row> {
    if operator.starts_with("union") {
        mine.extend(theirs);
    } else {
        let mut left = theirs;
        mine.retain(|row| {
            let found = left.iter().position(|other| other == row);
            // Each row on the right counts once.
            if let Some(at) = found
                && operator.ends_with("all")
            {
                left.remove(at);
            }
            found.is_some() == operator.starts_with("intersect")
        });
    }
    if !operator.ends_with("all") {
        mine.sort();
        mine.dedup();
    }
    mine
}

#[test]
fn sets_count_how_often_rows_come() {
    with_tables(23, 6, |database, random, o, s, create| {
        for _ in 0..6 {
            let depth = 1 + random.below(2);
            let (query, rows) = set(random, o, s, depth);
            let expected: Vec<_> = rows
                .iter()
                .map(|row| vec![cell(row.k), cell(row.v)])
                .collect();
            check(database, &query, &expected, create);
        }
    });
}
