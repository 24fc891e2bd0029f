//! What goes with tables and views that are dropped with `cascade`: the views that read them, and foreign keys to them.

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
    let mut gone: Vec<String> = names.iter().map(ToString::to_string).collect();
    loop {
        let all: Vec<&str> = gone.iter().map(String::as_str).collect();
        match context.dependent(&all, &all)? {
            Some(view) => gone.push(view),
            None => break,
        }
    }
    let views = gone.split_off(names.len());
    scope.claim(&views)?;
    let mut told = Vec::new();
    for view in &views {
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
    let all: Vec<&str> = names
        .iter()
        .copied()
        .chain(views.iter().map(String::as_str))
        .collect();
    told.extend(drop_foreign_keys(scope, context, writing, &all)?);
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
