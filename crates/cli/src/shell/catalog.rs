//! `\dv`, `\dn` and their kin, and what `\d` shows of a table or a view: queries of the catalog.

use anyhow::bail;
use atoll::TableSummary;

use crate::shell::listing::{self, Further, matches};
use crate::statement::runner::Runner;
use crate::terminal::out;

/// What a command lists.
struct List {
    command: &'static str,
    /// What there may be none of.
    what: &'static str,
    head: &'static [&'static str],
    query: &'static str,
    /// The column that a pattern is compared with.
    name: usize,
    /// How many columns at the end are numbers.
    numbers: usize,
}

const LISTS: &[List] = &[
    List {
        command: "\\dv",
        what: "views",
        head: &["schema", "view", "owner", "kind"],
        query: "select schemaname, viewname, viewowner, 'view' from pg_views \
             union all select schemaname, matviewname, matviewowner, 'materialized view' from pg_matviews order by 1, 2",
        name: 1,
        numbers: 0,
    },
    List {
        command: "\\dn",
        what: "schemas",
        head: &["schema"],
        query: "select nspname from pg_namespace \
             where nspname not like 'pg\\_%' and nspname <> 'information_schema' order by 1",
        name: 0,
        numbers: 0,
    },
    List {
        command: "\\di",
        what: "indexes",
        head: &["schema", "index", "table"],
        query: "select schemaname, indexname, tablename from pg_indexes order by 1, 3, 2",
        name: 1,
        numbers: 0,
    },
    List {
        command: "\\ds",
        what: "sequences",
        head: &["schema", "sequence", "type", "start", "step"],
        query: "select schemaname, sequencename, data_type, start_value, increment_by from pg_sequences order by 1, 2",
        name: 1,
        numbers: 2,
    },
    List {
        command: "\\du",
        what: "roles",
        head: &["role", "superuser", "may log in"],
        query: "select rolname, case when rolsuper then 'yes' else '' end, \
             case when rolcanlogin then 'yes' else '' end from pg_roles order by 1",
        name: 0,
        numbers: 0,
    },
];

/// Lists what `command` asks for whose names match `pattern`; an empty one matches all. Returns whether it is such a
/// command.
///
/// # Errors
/// If the catalog cannot be read.
pub fn list(runner: &mut Runner, command: &str, pattern: &str) -> anyhow::Result<bool> {
    if command == "\\df" {
        let rows = runner.function_names()?.into_iter().map(|name| vec![name]);
        show("functions", &["function"], (rows.collect(), 0), 0, pattern);
        return Ok(true);
    }
    let Some(list) = LISTS.iter().find(|list| list.command == command) else {
        return Ok(false);
    };
    let rows = runner.texts(list.query)?;
    show(
        list.what,
        list.head,
        (rows, list.name),
        list.numbers,
        pattern,
    );
    Ok(true)
}

/// Shows those of the rows whose name, which is in this column, matches.
fn show(
    what: &str,
    head: &[&str],
    (mut rows, name): (Vec<Vec<String>>, usize),
    numbers: usize,
    pattern: &str,
) {
    let all = rows.len();
    rows.retain(|row| {
        let name = row.get(name).map_or("", String::as_str);
        pattern.is_empty() || matches(pattern, name) || matches(pattern, &name.to_lowercase())
    });
    match (all, rows.is_empty()) {
        (0, _) => eprintln!("no {what}"),
        (_, true) => eprintln!("none of the {what} matches {pattern:?}"),
        _ => out::line(&listing::table(head, rows, numbers)),
    }
}

/// Shows a table or a view, or lists the tables that match a pattern. `more` also shows the query of a view.
///
/// # Errors
/// If there is none of that name, or the catalog cannot be read.
pub fn describe(runner: &mut Runner, name: &str, more: bool) -> anyhow::Result<()> {
    let tables = runner.known()?;
    if let Some(found) = listing::find(&tables, name) {
        listing::describe(&tables, found, &further(runner, found)?);
        return Ok(());
    }
    if name.contains(['*', '?']) {
        listing::list(&tables, name);
        return Ok(());
    }
    // No statement that fails: it would end a transaction in progress.
    let (schema, view) = name.split_once('.').unwrap_or(("public", name));
    let definition = runner.texts(&format!(
        "select definition from pg_views where schemaname = {} and viewname = {}",
        literal(schema),
        literal(view)
    ))?;
    let Some(definition) = definition.first() else {
        bail!("there is no table or view {name:?}; \\d lists the tables, \\dv the views");
    };
    let rows = runner.texts(&format!("describe {}.{}", quoted(schema), quoted(view)))?;
    let columns = rows.into_iter().map(|mut row| {
        row.truncate(2);
        row
    });
    let shown = listing::table(&["column", "type"], columns.collect(), 0);
    out::line(&shown);
    if more {
        out::line(&format!("view of {}", definition.concat()));
    }
    Ok(())
}

/// Defaults and indexes of a table.
fn further(runner: &mut Runner, table: &TableSummary) -> anyhow::Result<Further> {
    let (schema, name) = table
        .name
        .split_once('.')
        .unwrap_or(("public", table.name.as_str()));
    let (schema, name) = (literal(schema), literal(name));
    let defaults = runner.texts(&format!(
        "select column_name, column_default from information_schema.columns \
         where table_schema = {schema} and table_name = {name} and column_default is not null"
    ))?;
    let indexes = runner.texts(&format!(
        "select indexname, indexdef from pg_indexes where schemaname = {schema} and tablename = {name} order by 1"
    ))?;
    let pair = |row: Vec<String>| {
        let mut row = row.into_iter();
        Some((row.next()?, row.next()?))
    };
    Ok(Further {
        defaults: defaults.into_iter().filter_map(pair).collect(),
        indexes: indexes.into_iter().filter_map(pair).collect(),
    })
}

/// A name in quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A text as a constant.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
