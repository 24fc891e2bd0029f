//! The texts of views and defaults when what they name gets another name, or goes.

use syntax::asked::asked;
use syntax::names::{exact, known, quoted};
use syntax::renamed_columns::Change;
use syntax::{fixed, renamed_columns};
use table::Definition;

use crate::error::Result;
use crate::run::context::StatementContext;
use crate::statements::scope::Scope;
use crate::statements::write::Writing;

/// Has texts name what was renamed as it is called now: `renamed` has the new name in the catalog of what had another. It
/// has been renamed already.
///
/// # Errors
/// If a text cannot be changed; those of the right to write, and of the store.
pub(crate) fn renamed(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    renamed: &dyn Fn(&str) -> Option<String>,
) -> Result<()> {
    let tables = &context.tables;
    let name_of = |written: &str| -> Result<Option<String>> {
        let new = renamed(&known(written));
        // With the schema, also where that is `public`: a `with` may define the name.
        Ok(new.map(|new| quoted(&exact(&new))))
    };
    let now = |name: &str| renamed(name).unwrap_or_else(|| name.to_owned());
    for view in tables.views() {
        let text = tables.view(view).unwrap_or_default();
        let new = fixed::view(text, &name_of)?;
        if new != text {
            scope.claim(&[view.to_owned()])?;
            table::change_view(&mut writing.tx, &now(view), &new)?;
        }
    }
    for name in tables.names() {
        if let Some(query) = tables.materialized(name) {
            let new = fixed::view(query.text, &name_of)?;
            if new != query.text {
                scope.claim(&[name.to_owned()])?;
                table::set_materialized(&mut writing.tx, &now(name), &new, query.populated)?;
            }
            continue;
        }
        let Some(table) = tables.get(name) else {
            continue;
        };
        let mut defaults = Vec::new();
        for (at, column) in table.definition().columns.iter().enumerate() {
            if let Some(text) = &column.default {
                let new = fixed::expression(text, &name_of)?;
                defaults.extend((new != *text).then_some((at, new)));
            }
        }
        if !defaults.is_empty() {
            scope.claim(&[name.to_owned()])?;
            table::redefine(&mut writing.tx, &now(name), |own| {
                for (at, new) in defaults {
                    own.columns[at].default = Some(new);
                }
                Ok(())
            })?;
        }
    }
    Ok(())
}

/// Has views, materialized or not, return what they return once the columns of a table are called otherwise, or there are more:
/// `columns` are those that it has then and that views knew, as they are called then and were called.
///
/// # Errors
/// If a text cannot be changed; those of the right to write, and of the store.
pub(crate) fn with_columns(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    (table, columns): (&str, Vec<(&str, &str)>),
) -> Result<()> {
    let tables = &context.tables;
    let change = Change { table, columns };
    for view in tables.views() {
        let text = tables.view(view).unwrap_or_default();
        let new = renamed_columns::view(text, &change)?;
        if new != text {
            scope.claim(&[view.to_owned()])?;
            table::change_view(&mut writing.tx, view, &new)?;
        }
    }
    for name in tables.names() {
        let Some(query) = tables.materialized(name) else {
            continue;
        };
        let new = renamed_columns::view(query.text, &change)?;
        if new != query.text {
            scope.claim(&[name.to_owned()])?;
            table::set_materialized(&mut writing.tx, name, &new, query.populated)?;
        }
    }
    Ok(())
}

/// Has views of all columns of a table return those that it has now.
///
/// # Errors
/// As [`with_columns`].
pub(crate) fn without_more(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    definition: &Definition,
) -> Result<()> {
    let columns = definition.columns.iter();
    let columns = columns.map(|own| (own.name.as_str(), own.name.as_str()));
    let of = (definition.name.as_str(), columns.collect());
    with_columns(scope, context, writing, of)
}

/// Takes away the defaults that ask any of `sequences`, but those of the tables `but`.
///
/// # Errors
/// Those of reading the texts, of the right to write, and of the store.
pub(crate) fn without_defaults(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    sequences: &[String],
    but: &[&str],
) -> Result<()> {
    for name in context.tables.names() {
        let Some(table) = context.tables.get(name).filter(|_| !but.contains(&name)) else {
            continue;
        };
        let mut asking = Vec::new();
        for (at, column) in table.definition().columns.iter().enumerate() {
            let asked = column.default.as_deref().map(asked).transpose()?;
            let asks = asked.is_some_and(|asked| asked.iter().any(|own| sequences.contains(own)));
            asking.extend(asks.then_some(at));
        }
        if !asking.is_empty() {
            scope.claim(&[name.to_owned()])?;
            table::redefine(&mut writing.tx, name, |own| {
                asking.iter().for_each(|at| own.columns[*at].default = None);
                Ok(())
            })?;
        }
    }
    Ok(())
}
