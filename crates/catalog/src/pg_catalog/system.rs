//! What there is in PostgreSQL's catalog whatever people make: its tables and views with their columns, functions, operators,
//! casts, and classes of operators.
//!
//! The files in `system` were written from the catalog of PostgreSQL 15: of its functions, operators and casts those that are
//! there here, too, by the types that there are. Their columns are divided by tabs.
//!
//! | file | columns |
//! |---|---|
//! | `catalogs.tsv`, `standard.tsv` | the name of a table of `pg_catalog` or a view of `information_schema`; its columns, each with a letter for its type |
//! | `functions.tsv` | number, name, kind, result, volatility, strict, returns a set, variadic, arguments with defaults, arguments |
//! | `operators.tsv` | number, name, kind, merges, hashes, left, right, result, commutator, negator, function |
//! | `casts.tsv` | number, from, to, function, context, method |
//! | `aggregates.tsv` | function, kind, direct arguments, type of the state |
//! | `classes.tsv` | number, access method, name, family, type, default |

use std::str::FromStr;

use messages::numbers::{CATALOG_SCHEMA, OWNER, table_number, type_title};
use syntax::names::{INFORMATION_SCHEMA, PG_CATALOG, catalog_name};

use crate::pg_catalog::build::Built;

const CATALOGS: &str = include_str!("system/catalogs.tsv");
const STANDARD: &str = include_str!("system/standard.tsv");
const FUNCTIONS: &str = include_str!("system/functions.tsv");
const OPERATORS: &str = include_str!("system/operators.tsv");
const CASTS: &str = include_str!("system/casts.tsv");
const AGGREGATES: &str = include_str!("system/aggregates.tsv");
const CLASSES: &str = include_str!("system/classes.tsv");

/// The language of functions that are part of the program.
const INTERNAL: i64 = 12;

/// A line of a file.
struct Line(Vec<&'static str>);

impl Line {
    fn text(&self, at: usize) -> &'static str {
        self.0.get(at).copied().unwrap_or_default()
    }

    fn number<T: FromStr + Default>(&self, at: usize) -> T {
        self.text(at).parse().unwrap_or_default()
    }

    fn truth(&self, at: usize) -> bool {
        self.text(at) == "t"
    }

    /// Numbers with spaces between them.
    fn numbers(&self, at: usize) -> Vec<i32> {
        let parts = self.text(at).split_whitespace();
        parts.filter_map(|part| part.parse().ok()).collect()
    }
}

fn lines(text: &'static str) -> Vec<Line> {
    let lines = text.lines();
    lines.map(|line| Line(line.split('\t').collect())).collect()
}

/// The columns of a table or view: `name:letter`, with spaces between them.
fn columns(all: &'static str, name: &str) -> Option<&'static str> {
    all.lines().find_map(|line| {
        let (own, columns) = line.split_once('\t')?;
        (own == name).then_some(columns)
    })
}

/// The tables and views of a file by name, each with its columns.
fn relations(all: &'static str) -> Vec<(&'static str, &'static str)> {
    all.lines()
        .filter_map(|line| line.split_once('\t'))
        .collect()
}

/// Those of `pg_catalog`.
pub(super) fn catalogs() -> Vec<(&'static str, &'static str)> {
    relations(CATALOGS)
}

/// Those of `information_schema`.
pub(super) fn standard_views() -> Vec<(&'static str, &'static str)> {
    relations(STANDARD)
}

/// Whether `pg_catalog` has a table of that name.
pub fn has_table(name: &str) -> bool {
    columns(CATALOGS, name).is_some()
}

/// Whether `information_schema` has a view of that name.
pub fn has_view(name: &str) -> bool {
    columns(STANDARD, name).is_some()
}

/// The name of the table of `pg_catalog`, or the view of `information_schema`, with this number, as it is written.
pub fn table_of(number: i64) -> Option<String> {
    let names = |all: &'static str| all.lines().filter_map(|line| line.split('\t').next());
    if let Some(name) = names(CATALOGS).find(|name| table_number(name) == number) {
        return Some(name.to_owned());
    }
    let own = |name: &&str| table_number(&catalog_name(INFORMATION_SCHEMA, name)) == number;
    let view = names(STANDARD).find(own)?;
    Some(format!("{INFORMATION_SCHEMA}.{view}"))
}

/// The table of `pg_catalog` of that name with all its columns; `built` has those that are known.
pub(super) fn completed(name: &str, built: Built) -> Built {
    match columns(CATALOGS, name) {
        Some(columns) => built.completed(columns, false),
        None => built,
    }
}

/// The same of a view of `information_schema`.
pub(super) fn completed_view(name: &str, built: Built) -> Built {
    match columns(STANDARD, name) {
        Some(columns) => built.completed(columns, true),
        None => built,
    }
}

/// A table of `pg_catalog` about things that there are not here.
pub(super) fn empty(name: &str) -> Option<Built> {
    columns(CATALOGS, name).map(|columns| Built::default().completed(columns, false))
}

/// The same of a view of `information_schema`.
pub(super) fn empty_view(name: &str) -> Option<Built> {
    columns(STANDARD, name).map(|columns| Built::default().completed(columns, true))
}

/// The numbers of the functions of that name.
pub fn routine_numbers(name: &str) -> Vec<i64> {
    let all = lines(FUNCTIONS);
    let named = all.iter().filter(|line| line.text(1) == name);
    named.map(|line| line.number(0)).collect()
}

/// The name of the function with this number, with its schema if others have the name.
pub fn routine_name(number: i64) -> Option<String> {
    let all = lines(FUNCTIONS);
    let mut own = all.iter();
    let found = own.find(|line| line.number::<i64>(0) == number)?;
    let name = found.text(1);
    let alike = all.iter().filter(|line| line.text(1) == name).count();
    Some(if alike > 1 {
        format!("{PG_CATALOG}.{name}")
    } else {
        name.to_owned()
    })
}

/// The operator with this number as PostgreSQL writes it, `=(integer,bigint)`.
pub fn operator_title(number: i64) -> Option<String> {
    let all = lines(OPERATORS);
    let mut all = all.iter();
    let found = all.find(|line| line.number::<i64>(0) == number)?;
    let side = |at: usize| match found.number(at) {
        0 => "NONE".to_owned(),
        number => title(number),
    };
    Some(format!("{}({},{})", found.text(1), side(5), side(6)))
}

/// The number of the operator that is written so.
pub fn operator_number(written: &str) -> Option<i64> {
    let (name, _) = written.split_once('(')?;
    let plain = |text: &str| text.replace(' ', "").to_lowercase();
    let all = lines(OPERATORS);
    let named = all.iter().filter(|line| line.text(1) == name.trim());
    let mut numbers = named.map(|line| line.number(0));
    numbers.find(|number| {
        let title = operator_title(*number);
        title.is_some_and(|title| plain(&title) == plain(written))
    })
}

/// What SQL calls a type of an argument or a result.
fn title(number: i64) -> String {
    type_title(number, -1).unwrap_or_else(|| "???".to_owned())
}

/// The arguments of the function with this number, as PostgreSQL writes them.
pub fn arguments(number: i64) -> Option<String> {
    let all = lines(FUNCTIONS);
    let mut all = all.iter();
    let found = all.find(|line| line.number::<i64>(0) == number)?;
    let variadic: i64 = found.number(7);
    let types = found.numbers(9);
    let last = types.len();
    let written = types.into_iter().enumerate().map(|(at, number)| {
        let word = if variadic != 0 && at + 1 == last {
            "VARIADIC "
        } else {
            ""
        };
        format!("{word}{}", title(number.into()))
    });
    Some(written.collect::<Vec<_>>().join(", "))
}

/// What it returns.
pub fn result(number: i64) -> Option<String> {
    let all = lines(FUNCTIONS);
    let mut all = all.iter();
    let found = all.find(|line| line.number::<i64>(0) == number)?;
    let set = if found.truth(6) { "SETOF " } else { "" };
    Some(format!("{set}{}", title(found.number(3))))
}

/// The numbers of functions by their names.
pub(super) fn routines() -> Vec<(&'static str, i64)> {
    let all = lines(FUNCTIONS);
    all.iter()
        .map(|line| (line.text(1), line.number(0)))
        .collect()
}

/// The class of operators by which an index orders a type, unless it says another.
pub(super) fn class_of(number: i64) -> i64 {
    // Texts are told as `varchar`, which has the class of `text`.
    let number = if number == 1043 { 25 } else { number };
    let all = lines(CLASSES);
    let found = all
        .iter()
        .find(|line| line.text(1) == "403" && line.number::<i64>(4) == number && line.truth(5));
    found.map_or(0, |line| line.number(0))
}

/// `pg_proc`.
pub(super) fn functions() -> Built {
    let all = lines(FUNCTIONS);
    let rows = all.len();
    let arguments: Vec<Vec<i32>> = all.iter().map(|line| line.numbers(9)).collect();
    Built::default()
        .numbers("oid", all.iter().map(|line| line.number(0)))
        .names("proname", all.iter().map(|line| line.text(1)))
        .number("pronamespace", CATALOG_SCHEMA, rows)
        .number("proowner", OWNER, rows)
        .number("prolang", INTERNAL, rows)
        .reals("procost", all.iter().map(|_| 1.0))
        .reals(
            "prorows",
            all.iter()
                .map(|line| if line.truth(6) { 1000.0 } else { 0.0 }),
        )
        .numbers("provariadic", all.iter().map(|line| line.number(7)))
        .names("prokind", all.iter().map(|line| line.text(2)))
        .truths("proisstrict", all.iter().map(|line| line.truth(5)))
        .truths("proretset", all.iter().map(|line| line.truth(6)))
        .names("provolatile", all.iter().map(|line| line.text(4)))
        .text("proparallel", "s", rows)
        .counts("pronargs", arguments.iter().map(|own| own.len() as i32))
        .counts("pronargdefaults", all.iter().map(|line| line.number(8)))
        .numbers("prorettype", all.iter().map(|line| line.number(3)))
        .type_vectors("proargtypes", arguments)
        .names("prosrc", all.iter().map(|line| line.text(1)))
        // Of releases before 11.
        .truths("proisagg", all.iter().map(|line| line.text(2) == "a"))
}

/// `pg_operator`.
pub(super) fn operators() -> Built {
    let all = lines(OPERATORS);
    let rows = all.len();
    let numbers = |at: usize| all.iter().map(move |line| line.number(at));
    Built::default()
        .numbers("oid", numbers(0))
        .names("oprname", all.iter().map(|line| line.text(1)))
        .number("oprnamespace", CATALOG_SCHEMA, rows)
        .number("oprowner", OWNER, rows)
        .names("oprkind", all.iter().map(|line| line.text(2)))
        .truths("oprcanmerge", all.iter().map(|line| line.truth(3)))
        .truths("oprcanhash", all.iter().map(|line| line.truth(4)))
        .numbers("oprleft", numbers(5))
        .numbers("oprright", numbers(6))
        .numbers("oprresult", numbers(7))
        .numbers("oprcom", numbers(8))
        .numbers("oprnegate", numbers(9))
        .numbers("oprcode", numbers(10))
}

/// `pg_cast`.
pub(super) fn casts() -> Built {
    let all = lines(CASTS);
    let numbers = |at: usize| all.iter().map(move |line| line.number(at));
    Built::default()
        .numbers("oid", numbers(0))
        .numbers("castsource", numbers(1))
        .numbers("casttarget", numbers(2))
        .numbers("castfunc", numbers(3))
        .names("castcontext", all.iter().map(|line| line.text(4)))
        .names("castmethod", all.iter().map(|line| line.text(5)))
}

/// `pg_aggregate`.
pub(super) fn aggregates() -> Built {
    let all = lines(AGGREGATES);
    Built::default()
        .numbers("aggfnoid", all.iter().map(|line| line.number(0)))
        .names("aggkind", all.iter().map(|line| line.text(1)))
        .counts("aggnumdirectargs", all.iter().map(|line| line.number(2)))
        .numbers("aggtranstype", all.iter().map(|line| line.number(3)))
}

/// `pg_opclass`.
pub(super) fn classes() -> Built {
    let all = lines(CLASSES);
    let rows = all.len();
    let numbers = |at: usize| all.iter().map(move |line| line.number(at));
    Built::default()
        .numbers("oid", numbers(0))
        .numbers("opcmethod", numbers(1))
        .names("opcname", all.iter().map(|line| line.text(2)))
        .number("opcnamespace", CATALOG_SCHEMA, rows)
        .number("opcowner", OWNER, rows)
        .numbers("opcfamily", numbers(3))
        .numbers("opcintype", numbers(4))
        .truths("opcdefault", all.iter().map(|line| line.truth(5)))
}

/// `pg_language`.
pub(super) fn languages() -> Built {
    Built::default()
        .numbers("oid", [INTERNAL, 13, 14])
        .names("lanname", ["internal", "c", "sql"])
        .number("lanowner", OWNER, 3)
        .truths("lanpltrusted", [false, false, true])
}

/// `pg_tablespace`.
pub(super) fn tablespaces() -> Built {
    Built::default()
        .numbers("oid", [1663, 1664])
        .names("spcname", ["pg_default", "pg_global"])
        .number("spcowner", OWNER, 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_read() {
        assert!(has_table("pg_class") && has_view("tables") && !has_table("pg_nothing"));
        assert_eq!(
            table_of(table_number("pg_class")).as_deref(),
            Some("pg_class")
        );
        assert_eq!(routine_name(1242).as_deref(), Some("boolin"));
        assert_eq!(routine_name(2050).as_deref(), Some("pg_catalog.max"));
        assert_eq!(routine_numbers("boolin"), [1242]);
        assert_eq!(class_of(23), 1978);
        for text in [FUNCTIONS, OPERATORS, CASTS, AGGREGATES, CLASSES] {
            let mut numbers: Vec<i64> = lines(text).iter().map(|line| line.number(0)).collect();
            let rows = numbers.len();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers.len(), rows, "numbers are unique");
            assert!(numbers.first().is_some_and(|number| *number > 0));
        }
    }
}
