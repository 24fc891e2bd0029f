//! `alter table ... drop column`, and what goes with a column: the constraints of its table that are about it, and with `cascade`
//! the views that read it, the columns that are made of it, and foreign keys of other tables to it.

use sqlparser::ast::Ident;
use syntax::mentioned;
use syntax::names::column_name;
use table::{Definition, titled};

use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::run::context::StatementContext;
use crate::statements::cascade::{drop_readers, readers_of_columns};
use crate::statements::scope::Scope;
use crate::statements::write::Writing;
use crate::statements::{constrain, owned};

/// Drops these columns. Returns what is to be told: of those that are not there, and of what goes with the others.
///
/// # Errors
/// If there is no such column; without `cascade`, if something else needs one; those of the store.
pub(crate) fn drop(
    (scope, context, writing): (&Scope<'_>, &StatementContext, &mut Writing),
    definition: &Definition,
    columns: &[Ident],
    (if_exists, cascade): (bool, bool),
) -> Result<Vec<String>> {
    let table = &definition.name;
    let (mut notices, mut gone) = (Vec::new(), Vec::new());
    for column in columns {
        let column = column_name(column);
        match definition.position(&column) {
            Ok(_) => gone.push(column),
            Err(_) if if_exists => notices.push(format!(
                "column \"{column}\" of relation \"{}\" does not exist, skipping",
                titled(table)
            )),
            Err(_) => return Err(unknown_column(&column, definition)),
        }
    }
    made_of(definition, &mut gone, cascade)?;
    let readers = readers_of_columns(context, table, &gone)?;
    match readers.first() {
        Some(view) if !cascade => {
            let what = format!("column {} of table {}", gone.join(", "), titled(table));
            let kind = match context.tables.view(view) {
                Some(_) => "view",
                None => "materialized view",
            };
            return Err(depends(&what, &format!("{kind} {}", titled(view))));
        }
        None => {}
        Some(_) => {
            let told = drop_readers(scope, context, writing, readers)?;
            notices.extend(told.iter().map(|what| format!("drop cascades to {what}")));
        }
    }
    for column in &gone {
        let of = (scope, context);
        notices.extend(constraints(of, writing, definition, (column, cascade))?);
        let own = &definition.columns[definition.position(column)?];
        let what = format!("column {column} of table {table}");
        owned::may_go(scope, context, [own], &what, &[table])?;
        without_checks(writing, table, column)?;
        table::drop_column(&mut writing.tx, table, column)?;
    }
    Ok(notices)
}

fn depends(what: &str, other: &str) -> Error {
    Error::Constraint {
        code: "2BP01",
        message: format!(
            "cannot drop {what} because other objects depend on it: {other} depends on {what}"
        ),
    }
}

/// Adds the columns that are made of those that go, which need `cascade`.
fn made_of(definition: &Definition, gone: &mut Vec<String>, cascade: bool) -> Result<()> {
    let table = &definition.name;
    let mut at = 0;
    while let Some(column) = gone.get(at).cloned() {
        at += 1;
        for other in &definition.columns {
            let Some(text) = other.expression() else {
                continue;
            };
            // It is computed of columns that have values of their own, so those it goes with were named.
            if gone.contains(&other.name) || !mentioned::columns(text)?.contains(&column) {
                continue;
            }
            if !cascade {
                let what = format!("column {column} of table {table}");
                let other = format!("column {} of table {table}", other.name);
                return Err(depends(&what, &other));
            }
            // It goes first: the others are in its expression.
            gone.insert(0, other.name.clone());
            at += 1;
        }
    }
    Ok(())
}

/// Drops the keys and foreign keys of the table that have the column. Returns what is to be told of foreign keys of others.
fn constraints(
    (scope, context): (&Scope<'_>, &StatementContext),
    writing: &mut Writing,
    definition: &Definition,
    (column, cascade): (&str, bool),
) -> Result<Vec<String>> {
    let position = definition.position(column)?;
    let rules = definition.rules.iter().filter(|rule| {
        let key = definition.foreign_keys.get(rule.foreign_key);
        key.is_some_and(|key| key.columns.contains(&position))
    });
    let keys = definition.keys.iter();
    let keys = keys.filter(|key| key.columns.contains(&position));
    let names: Vec<&str> = rules
        .map(|rule| rule.name.as_str())
        .chain(keys.map(|key| key.name.as_str()))
        .collect();
    let mut told = Vec::new();
    for name in names {
        // One that has several of the columns has gone with the first of them.
        let there = table::definition(&writing.tx, &definition.name)?.has_constraint(name);
        if there {
            let of = (scope, context);
            told.extend(constrain::drop(
                of,
                writing,
                definition,
                name,
                (false, cascade),
            )?);
        }
    }
    Ok(told)
}

/// Drops the checks that name a column.
fn without_checks(writing: &mut Writing, table: &str, column: &str) -> Result<()> {
    let mut failed = Ok(());
    table::redefine(&mut writing.tx, table, |definition| {
        let named =
            |text: &str| mentioned::columns(text).map(|all| all.iter().any(|c| c == column));
        definition.checks.retain(|check| match named(&check.text) {
            Ok(named) => !named,
            Err(e) => {
                failed = Err(e);
                true
            }
        });
        Ok(())
    })?;
    failed
}
