//! `\d` and `\l`: tables and their columns, keys and indexes, stores.

use std::collections::HashMap;
use std::path::Path;

use anyhow::bail;
use atoll::{KeySummary, TableSummary};
use comfy_table::{Cell, CellAlignment, Table, presets};

use crate::store::files;
use crate::terminal::out;
use crate::units;

/// Whether a name matches a pattern with `*` for any characters and `?` for one.
pub fn matches(pattern: &str, name: &str) -> bool {
    let mut pattern_rest = pattern.chars();
    match pattern_rest.next() {
        None => name.is_empty(),
        Some('*') => {
            let rest = pattern_rest.as_str();
            let mut starts = name.char_indices().map(|(at, _)| at).chain([name.len()]);
            starts.any(|at| matches(rest, &name[at..]))
        }
        Some(c) => {
            let mut rest = name.chars();
            let same = rest.next().is_some_and(|own| c == '?' || own == c);
            same && matches(pattern_rest.as_str(), rest.as_str())
        }
    }
}

/// Formats a table in the style of results; the last `numbers` columns are aligned to the right.
pub fn table(head: &[&str], rows: Vec<Vec<String>>, numbers: usize) -> String {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY);
    table.set_header(head);
    let first = head.len() - numbers;
    for row in rows {
        table.add_row(row.into_iter().enumerate().map(|(at, text)| {
            Cell::new(text).set_alignment(if at >= first {
                CellAlignment::Right
            } else {
                CellAlignment::Left
            })
        }));
    }
    table.to_string()
}

/// Lists the tables whose names match `pattern`; an empty one matches all.
pub fn list(tables: &[TableSummary], pattern: &str) {
    let named = |table: &&TableSummary| {
        pattern.is_empty()
            || matches(pattern, &table.name)
            || matches(pattern, &table.name.to_lowercase())
    };
    let found: Vec<Vec<String>> = tables
        .iter()
        .filter(named)
        .map(|table| {
            vec![
                table.name.clone(),
                units::count(table.columns.len() as u64),
                units::count(table.rows),
            ]
        })
        .collect();
    match (found.is_empty(), tables.is_empty()) {
        (_, true) => eprintln!("no tables; create one, or load one with atoll import or \\copy"),
        (true, _) => eprintln!("no table matches {pattern:?}"),
        _ => out::line(&table(&["table", "columns", "rows"], found, 2)),
    }
}

/// The table of that name, in any case if there is none in this.
pub fn find<'t>(tables: &'t [TableSummary], name: &str) -> Option<&'t TableSummary> {
    tables.iter().find(|table| table.name == name).or_else(|| {
        tables
            .iter()
            .find(|table| table.name.eq_ignore_ascii_case(name))
    })
}

/// What the catalog says of a table that its summary does not.
#[derive(Debug, Default)]
pub struct Further {
    /// Defaults, by column.
    pub defaults: HashMap<String, String>,
    /// Its indexes: their names, and the statements that make them.
    pub indexes: Vec<(String, String)>,
}

/// Shows the columns of a table, its keys, its indexes and what refers to it.
pub fn describe(tables: &[TableSummary], found: &TableSummary, further: &Further) {
    let keys = &found.primary_key;
    let rows = found.columns.iter().map(|column| {
        let mut notes = Vec::new();
        if !column.nullable {
            notes.push("not null".to_owned());
        }
        if let Some(default) = further.defaults.get(&column.name) {
            notes.push(format!("default {default}"));
        }
        if keys.contains(&column.name) {
            notes.push("primary key".to_owned());
        }
        vec![
            column.name.clone(),
            atoll::type_name(&column.data_type),
            notes.join(", "),
        ]
    });
    out::line(&table(&["column", "type", ""], rows.collect(), 0));
    if keys.len() > 1 {
        out::line(&format!("primary key ({})", keys.join(", ")));
    }
    for (name, made) in &further.indexes {
        // What follows `ON table` says it: how it is kept, and of which columns.
        let of = made.split_once(" USING ").map_or("", |(_, of)| of);
        let unique = if made.starts_with("CREATE UNIQUE") {
            "unique "
        } else {
            ""
        };
        out::line(&format!("{unique}index {name} {of}"));
    }
    for key in &found.foreign_keys {
        out::line(&format!(
            "foreign key ({}) references {}{}",
            key.columns.join(", "),
            refers_to(key),
            on_change(key)
        ));
    }
    let others = tables.iter().filter(|other| other.name != found.name);
    for other in others {
        let refer = other.foreign_keys.iter();
        for key in refer.filter(|key| key.parent == found.name) {
            out::line(&format!(
                "referenced by {} ({}){}",
                other.name,
                key.columns.join(", "),
                on_change(key)
            ));
        }
    }
    let word = if found.rows == 1 { "row" } else { "rows" };
    out::line(&format!("{} {word}", units::count(found.rows)));
}

/// `orders (o_orderkey)`
fn refers_to(key: &KeySummary) -> String {
    format!("{} ({})", key.parent, key.parent_columns.join(", "))
}

/// ` on delete cascade`, if something is said.
fn on_change(key: &KeySummary) -> String {
    let mut text = String::new();
    for (when, what) in [("delete", key.on_delete), ("update", key.on_update)] {
        if what != "no action" {
            text += &format!(" on {when} {what}");
        }
    }
    if key.name.is_none() {
        text += " (declared, not checked)";
    }
    text
}

/// Lists the stores in a folder; that at `own` is marked.
///
/// # Errors
/// If there is no such folder.
pub fn stores(folder: &Path, own: &Path) -> anyhow::Result<()> {
    if !folder.is_dir() {
        bail!("there is no folder {}", folder.display());
    }
    let same = |path: &Path| match (path.canonicalize(), own.canonicalize()) {
        (Ok(path), Ok(own)) => path == own,
        _ => false,
    };
    let rows: Vec<Vec<String>> = files::stores(folder)
        .iter()
        .map(|path| {
            let mark = if same(path) { "*" } else { "" };
            let size = units::bytes(files::bytes(path));
            vec![mark.to_owned(), path.display().to_string(), size]
        })
        .collect();
    if rows.is_empty() {
        eprintln!("there are no stores in {}", folder.display());
    } else {
        out::line(&table(&["", "store", "size"], rows, 1));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_patterns() {
        for (pattern, name) in [
            ("l*", "lineitem"),
            ("*", ""),
            ("*te*", "lineitem"),
            ("p?rt", "part"),
        ] {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [
            ("l*", "orders"),
            ("", "a"),
            ("p?rt", "prt"),
            ("part", "partsupp"),
        ] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
