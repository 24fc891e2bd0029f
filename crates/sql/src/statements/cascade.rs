//! What goes with tables and views that are dropped with `cascade`: the views that read them, and foreign keys to them.

use crate::error::Result;
use crate::run::context::StatementContext;
use crate::statements::scope::Scope;
use crate::statements::write::Writing;

/// Drops the views, materialized or not, that read any of `names` by themselves or through others, and the foreign keys
/// of other tables to `names`.
///
/// # Errors
/// Those of reading the texts of views, of the right to write to what goes, and of the store.
pub(crate) fn drop_dependents(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    names: &[&str],
) -> Result<()> {
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
    for view in &views {
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
    drop_foreign_keys(scope, context, writing, &all)
}

/// Drops the foreign keys of other tables to `parents`.
fn drop_foreign_keys(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    parents: &[&str],
) -> Result<()> {
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
        table::redefine(&mut writing.tx, name, |own| {
            while let Some(at) = own.foreign_keys.iter().position(|key| refers(&key.parent)) {
                own.foreign_keys.remove(at);
                own.rules.retain(|rule| rule.foreign_key != at);
                for rule in &mut own.rules {
                    rule.foreign_key -= usize::from(rule.foreign_key > at);
                }
            }
            Ok(())
        })?;
    }
    Ok(())
}
