//! `alter table ... add constraint` and `drop constraint`.

use datafusion::sql::sqlparser::ast::{
    AlterTableOperation as Operation, DropBehavior, Ident, Statement as Sql, TableConstraint,
};
use futures::TryStreamExt;
use table::Definition;

use crate::error::{Error, Result};
use crate::frontend::constraints;
use crate::frontend::definition;
use crate::frontend::expression::written;
use crate::names::{base, column_name, exact};
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::query;
use crate::statements::ddl::may_refer;
use crate::statements::references;
use crate::statements::write::Writing;

/// Whether a change of a table adds or drops a constraint.
pub(crate) fn is_one(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::AddConstraint {
            not_valid: false,
            ..
        } | Operation::DropConstraint {
            drop_behavior: None | Some(DropBehavior::Restrict),
            ..
        }
    )
}

/// Adds or drops a constraint.
///
/// # Errors
/// Those of [`add`] and [`drop`].
pub(crate) async fn change(
    context: &mut StatementContext,
    writing: &mut Writing,
    definition: &Definition,
    operation: &Operation,
) -> Result<()> {
    match operation {
        Operation::AddConstraint { constraint, .. } => {
            add(context, writing, definition, constraint).await
        }
        Operation::DropConstraint {
            if_exists, name, ..
        } => drop(context, writing, definition, &column_name(name), *if_exists),
        _ => Ok(()),
    }
}

/// Adds a constraint, which all rows must satisfy.
///
/// # Errors
/// If a row does not, or the constraint cannot be declared.
async fn add(
    context: &mut StatementContext,
    writing: &mut Writing,
    before: &Definition,
    constraint: &TableConstraint,
) -> Result<()> {
    let table = &before.name;
    let mut after = before.clone();
    let constraint = constraints::of_table(constraint)?;
    definition::add(&mut after, constraint, &context.tables)?;
    may_refer(context, &after, before.foreign_keys.len())?;
    for (own, old) in after.columns.iter().zip(&before.columns) {
        if old.nullable && !own.nullable {
            no_nulls(context, before, &own.name).await?;
        }
    }
    if let Some(check) = after.checks.get(before.checks.len()) {
        Checks::new(context, &after).await?;
        let text = format!(
            "select 1 from {} where not ({}) limit 1",
            exactly(table),
            check.text
        );
        if any(context, &text).await? {
            return Err(Error::Constraint {
                code: "23514",
                message: format!(
                    "check constraint \"{}\" of relation \"{table}\" is violated by some row",
                    check.name
                ),
            });
        }
    }
    if after.rules.len() > before.rules.len() {
        let own = context.table(table)?;
        references::all_refer(&own, &after, &context.tables).await?;
    }
    let key = after.keys.get(before.keys.len()).cloned();
    table::redefine(&mut writing.tx, table, |own| {
        *own = after.clone();
        own.keys.clone_from(&before.keys);
        Ok(())
    })?;
    if let Some(key) = key {
        let (columns, primary) = (key.columns, key.primary);
        table::add_key(&mut writing.tx, table, &key.name, columns, primary).await?;
    }
    Ok(())
}

/// Drops a constraint.
///
/// # Errors
/// If there is none of that name, or a foreign key needs it.
fn drop(
    context: &StatementContext,
    writing: &mut Writing,
    definition: &Definition,
    name: &str,
    if_exists: bool,
) -> Result<()> {
    let table = &definition.name;
    if definition.keys.iter().any(|key| key.name == name) {
        unneeded(context, definition, name)?;
        return Ok(table::drop_key(&mut writing.tx, table, name)?);
    }
    if !definition.has_constraint(name) {
        if if_exists {
            return Ok(());
        }
        return Err(Error::coded(
            "42704",
            format!("constraint \"{name}\" of relation \"{table}\" does not exist"),
        ));
    }
    table::redefine(&mut writing.tx, table, |own| {
        own.checks.retain(|check| check.name != name);
        if let Some(at) = own.rules.iter().position(|rule| rule.name == name) {
            let gone = own.rules.remove(at).foreign_key;
            own.foreign_keys.remove(gone);
            for rule in &mut own.rules {
                rule.foreign_key -= usize::from(rule.foreign_key > gone);
            }
        }
        Ok(())
    })?;
    Ok(())
}

/// That no foreign key that holds refers to a key.
fn unneeded(context: &StatementContext, parent: &Definition, name: &str) -> Result<()> {
    for other in context.tables.names() {
        let Some(child) = context.tables.get(other) else {
            continue;
        };
        let child = child.definition();
        let refers = |rule: &&table::Rule| {
            let foreign = &child.foreign_keys[rule.foreign_key];
            foreign.parent == parent.name
                && table::referred_key(parent, foreign).is_some_and(|key| key.name == name)
        };
        if let Some(rule) = child.rules.iter().find(refers) {
            return Err(Error::Constraint {
                code: "2BP01",
                message: format!(
                    "cannot drop constraint {name} on table {} because other objects depend on it: constraint {} on table {}",
                    parent.name, rule.name, child.name
                ),
            });
        }
    }
    Ok(())
}

/// That no row has a NULL in the column.
///
/// # Errors
/// [`Error::Constraint`] if one has.
pub(crate) async fn no_nulls(
    context: &mut StatementContext,
    definition: &Definition,
    column: &str,
) -> Result<()> {
    let table = exactly(&definition.name);
    let quoted = Ident::with_quote('"', column);
    let text = format!("select 1 from {table} where {quoted} is null limit 1");
    if any(context, &text).await? {
        return Err(Error::Constraint {
            code: "23502",
            message: format!(
                "column \"{column}\" of table \"{}\" contains NULL: change those rows first",
                definition.name
            ),
        });
    }
    Ok(())
}

/// A table in a query of this program, which calls it by its name alone.
pub(crate) fn exactly(name: &str) -> String {
    let (name, called) = (exact(name), base(name));
    let (name, called) = (Ident::with_quote('"', name), Ident::with_quote('"', called));
    format!("{name} as {called}")
}

/// Whether a query has a row.
pub(crate) async fn any(context: &mut StatementContext, text: &str) -> Result<bool> {
    let plan = context.plan(Sql::Query(written(text)?), None).await?;
    let batches: Vec<_> = query::rows(context, &plan).await?.try_collect().await?;
    Ok(batches.iter().any(|batch| batch.num_rows() > 0))
}
