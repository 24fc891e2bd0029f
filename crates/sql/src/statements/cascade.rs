//! What goes with tables and views that are dropped with `cascade`: the views that read them, and foreign keys to them.

use syntax::views::reads;
use table::titled;

use crate::error::Result;
use crate::run::context::StatementContext;
use crate::statements::scope::Scope;
use crate::statements::write::Writing;

/// Drops the views, materialized or not, that read any of `names` by themselves or through others, and the foreign keys
/// of other tables to `names`. Returns what has gone.
///
/// # Errors
/// Those of reading the texts of views, of the right to write to what goes, and of the store.
pub(crate) fn drop_dependents(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    names: &[&str],
) -> Result<Vec<String>> {
    let named = names.iter().map(ToString::to_string).collect();
    let views = with_readers(context, named)?.split_off(names.len());
    let mut told = drop_views(scope, context, writing, &views)?;
    let all: Vec<&str> = names
        .iter()
        .copied()
        .chain(views.iter().map(String::as_str))
        .collect();
    told.extend(drop_foreign_keys(scope, context, writing, &all)?);
    Ok(told)
}

/// These tables and views, and the views that read them by themselves or through others.
fn with_readers(context: &StatementContext, mut names: Vec<String>) -> Result<Vec<String>> {
    loop {
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        match context.dependent(&all, &all)? {
            Some(view) => names.push(view),
            None => return Ok(names),
        }
    }
}

/// The views, materialized or not, that read these columns of a table, or all of its columns.
///
/// # Errors
/// Those of reading the texts of views.
pub(crate) fn readers_of_columns(
    context: &StatementContext,
    table: &str,
    columns: &[String],
) -> Result<Vec<String>> {
    let tables = &context.tables;
    let mut found = Vec::new();
    for view in tables.views().into_iter().chain(tables.names()) {
        let kept = || tables.materialized(view).map(|query| query.text);
        let Some(text) = tables.view(view).or_else(kept) else {
            continue;
        };
        if context.uses(text)?.iter().any(|own| own == table) && reads(text, columns)? {
            found.push(view.to_owned());
        }
    }
    Ok(found)
}

/// Drops these views, and those that read them. Returns what has gone.
///
/// # Errors
/// As [`drop_dependents`].
pub(crate) fn drop_readers(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    views: Vec<String>,
) -> Result<Vec<String>> {
    let views = with_readers(context, views)?;
    drop_views(scope, context, writing, &views)
}

fn drop_views(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    views: &[String],
) -> Result<Vec<String>> {
    scope.claim(views)?;
    let mut told = Vec::new();
    for view in views {
        let kind = match context.tables.view(view) {
            Some(_) => "view",
            None => "materialized view",
        };
        told.push(format!("{kind} {}", titled(view)));
        match context.tables.view(view) {
            Some(_) => table::drop_view(&mut writing.tx, view)?,
            None => table::drop(&mut writing.tx, view)?,
        }
    }
    Ok(told)
}

/// Drops the foreign keys of other tables to `parents`, and returns those that held.
fn drop_foreign_keys(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    parents: &[&str],
) -> Result<Vec<String>> {
    let mut told = Vec::new();
    let refers = |parent: &String| parents.contains(&parent.as_str());
    for name in context.tables.names() {
        let Some(child) = context
            .tables
            .get(name)
            .filter(|_| !parents.contains(&name))
        else {
            continue;
        };
        if !child
            .definition()
            .foreign_keys
            .iter()
            .any(|key| refers(&key.parent))
        {
            continue;
        }
        scope.claim(&[name.to_string()])?;
        let own = child.definition();
        let gone = own.rules.iter().filter(|rule| {
            let key = own.foreign_keys.get(rule.foreign_key);
            key.is_some_and(|key| refers(&key.parent))
        });
        told.extend(gone.map(|rule| format!("constraint {} on table {}", rule.name, titled(name))));
        table::redefine(&mut writing.tx, name, |own| {
            own.forget_references(|parent| parents.contains(&parent));
            Ok(())
        })?;
    }
    Ok(told)
}
