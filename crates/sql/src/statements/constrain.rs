//! `alter table ... add constraint`, `drop constraint`, `validate constraint`, `rename constraint` and `alter constraint`.

use std::time::Instant;

use futures::TryStreamExt;
use sqlparser::ast::{
    AlterTableOperation as Operation, DropBehavior, Ident, Statement as Sql, TableConstraint,
};
use syntax::changes::{Change, TableChange};
use syntax::constraints::{self, What};
use syntax::expression::written;
use syntax::names::{base, catalog_name, column_name, of_constraint, schema_of};
use table::{Check, Deferral, Definition, titled};

use crate::bind::definition;
use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::run::answer::Answer;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::query;
use crate::statements::ddl::may_refer;
use crate::statements::rebuild::exactly;
use crate::statements::relations::{is_taken, missing};
use crate::statements::scope::Scope;
use crate::statements::write::Writing;
use crate::statements::{existing, rebuild};

/// Whether a change of a table adds, drops or looks at a constraint.
pub(crate) fn is_one(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::AddConstraint { .. }
            | Operation::DropConstraint { .. }
            | Operation::ValidateConstraint { .. }
    )
}

/// Adds, drops or looks at a constraint. Returns what is to be told.
///
/// # Errors
/// Those of [`add`], [`drop`] and [`validate`].
pub(crate) async fn change(
    scope: &Scope<'_>,
    (context, writing): (&mut StatementContext, &mut Writing),
    definition: &Definition,
    operation: &Operation,
) -> Result<Vec<String>> {
    match operation {
        Operation::AddConstraint {
            constraint,
            not_valid,
        } => {
            add(context, writing, definition, constraint, *not_valid).await?;
            Ok(Vec::new())
        }
        Operation::DropConstraint {
            if_exists,
            name,
            drop_behavior,
        } => {
            let cascade = matches!(drop_behavior, Some(DropBehavior::Cascade));
            let name = column_name(name);
            drop(
                (scope, context),
                writing,
                definition,
                &name,
                (*if_exists, cascade),
            )
        }
        Operation::ValidateConstraint { name } => {
            validate(context, writing, definition, &column_name(name)).await?;
            Ok(Vec::new())
        }
        _ => Ok(Vec::new()),
    }
}

/// A change that the parser does not know.
///
/// # Errors
/// If there is no such table, column or constraint; those of writing.
pub(crate) async fn own(
    scope: &mut Scope<'_>,
    statement: TableChange,
    started: Instant,
) -> Result<Answer> {
    let name = &statement.table;
    let (mut writing, context) = scope.write("ALTER TABLE", &[name], started).await?;
    if statement.if_exists && context.tables.get(name).is_none() {
        let notice = missing("relation", name);
        return Ok(Answer::changed(None, &context.clock).with_notice(notice));
    }
    let table = context.table(name)?;
    let definition = table.definition();
    match statement.change {
        Change::RenameConstraint { from, to } => {
            rename(&context, &mut writing, definition, (&from, &to))?;
        }
        Change::Defer { name, deferral } => defer(&mut writing, definition, &name, deferral)?,
        Change::Layout { column } => {
            if let Some(column) = column
                && definition.position(&column).is_err()
            {
                return Err(unknown_column(&column, definition));
            }
            return Ok(Answer::changed(None, &context.clock));
        }
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// Calls a constraint by another name.
fn rename(
    context: &StatementContext,
    writing: &mut Writing,
    definition: &Definition,
    (from, to): (&str, &str),
) -> Result<()> {
    let table = &definition.name;
    if !definition.has_constraint(from) {
        return Err(Error::coded(
            "42704",
            format!(
                "constraint \"{from}\" for table \"{}\" does not exist",
                base(table)
            ),
        ));
    }
    if definition.has_constraint(to) {
        return Err(Error::coded(
            "42710",
            format!(
                "constraint \"{to}\" for relation \"{}\" already exists",
                base(table)
            ),
        ));
    }
    // The index of a key has the name of the key.
    let is_key = definition.keys.iter().any(|key| key.name == from);
    if is_key && is_taken(context, &catalog_name(schema_of(table), to))? {
        return Err(Error::coded(
            "42P07",
            format!("relation \"{to}\" already exists"),
        ));
    }
    table::redefine(&mut writing.tx, table, |own| {
        let keys = own.keys.iter_mut().map(|key| &mut key.name);
        let rules = own.rules.iter_mut().map(|rule| &mut rule.name);
        let checks = own.checks.iter_mut().map(|check| &mut check.name);
        let all = keys.chain(rules).chain(checks);
        all.filter(|name| *name == from)
            .for_each(|name| to.clone_into(name));
        Ok(())
    })?;
    table::comment(&mut writing.tx, table, |all| {
        let renamed = [
            (from.to_owned(), to.to_owned()),
            (of_constraint(from), of_constraint(to)),
        ];
        for (from, to) in renamed {
            if let Some(text) = all.keys.remove(&from) {
                all.keys.insert(to, text);
            }
        }
    })?;
    Ok(())
}

/// Changes when a foreign key is looked at.
fn defer(
    writing: &mut Writing,
    definition: &Definition,
    name: &str,
    deferral: Deferral,
) -> Result<()> {
    let table = &definition.name;
    if !definition.rules.iter().any(|rule| rule.name == name) {
        return Err(if definition.has_constraint(name) {
            Error::coded(
                "42809",
                format!(
                    "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint",
                    base(table)
                ),
            )
        } else {
            unknown(definition, name)
        });
    }
    table::redefine(&mut writing.tx, table, |own| {
        let mut rules = own.rules.iter_mut().filter(|rule| rule.name == name);
        if let Some(rule) = rules.next() {
            rule.deferral = deferral;
        }
        Ok(())
    })?;
    Ok(())
}

fn unknown(definition: &Definition, name: &str) -> Error {
    Error::coded(
        "42704",
        format!(
            "constraint \"{name}\" of relation \"{}\" does not exist",
            base(&definition.name)
        ),
    )
}

/// Looks whether all rows agree with a constraint that was added as `not valid`.
///
/// # Errors
/// If one does not, or there is no such constraint.
async fn validate(
    context: &mut StatementContext,
    writing: &mut Writing,
    definition: &Definition,
    name: &str,
) -> Result<()> {
    let table = &definition.name;
    let check = definition.checks.iter().find(|check| check.name == name);
    let rule = definition.rules.iter().find(|rule| rule.name == name);
    match (check, rule) {
        (Some(check), _) if check.unchecked => passes(context, table, check).await?,
        (_, Some(rule)) if rule.unchecked => {
            let own = context.table(table)?;
            let mut only = definition.clone();
            only.rules.retain(|own| own.name == rule.name);
            existing::all_refer(&own, &only, &context.tables).await?;
        }
        (Some(_), _) | (_, Some(_)) => return Ok(()),
        (None, None) if definition.has_constraint(name) => {
            return Err(Error::coded(
                "42809",
                format!(
                    "constraint \"{name}\" of relation \"{}\" is not a foreign key or check constraint",
                    base(table)
                ),
            ));
        }
        (None, None) => return Err(unknown(definition, name)),
    }
    table::redefine(&mut writing.tx, table, |own| {
        let checks = own.checks.iter_mut().filter(|check| check.name == name);
        checks.for_each(|check| check.unchecked = false);
        let rules = own.rules.iter_mut().filter(|rule| rule.name == name);
        rules.for_each(|rule| rule.unchecked = false);
        Ok(())
    })?;
    Ok(())
}

/// That no row fails a check.
async fn passes(context: &mut StatementContext, table: &str, check: &Check) -> Result<()> {
    let text = format!(
        "select 1 from {} where not ({}) limit 1",
        exactly(table),
        check.text
    );
    if any(context, &text).await? {
        return Err(Error::Constraint {
            code: "23514",
            message: format!(
                "check constraint \"{}\" of relation \"{}\" is violated by some row",
                check.name,
                base(table)
            ),
        });
    }
    Ok(())
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
    not_valid: bool,
) -> Result<()> {
    let table = &before.name;
    let mut after = before.clone();
    let mut constraint = constraints::of_table(constraint)?;
    constraint.unchecked = not_valid;
    let kind = match &constraint.what {
        What::Primary(_) => Some("PRIMARY KEY"),
        What::Unique(_) => Some("UNIQUE"),
        What::Check { .. } | What::Foreign { .. } => None,
    };
    if let Some(kind) = kind.filter(|_| not_valid) {
        return Err(Error::coded(
            "0A000",
            format!("{kind} constraints cannot be marked NOT VALID"),
        ));
    }
    definition::add(&mut after, constraint, &context.tables)?;
    may_refer(context, &after, before.foreign_keys.len())?;
    for (own, old) in after.columns.iter().zip(&before.columns) {
        if old.nullable && !own.nullable {
            no_nulls(context, before, &own.name).await?;
        }
    }
    if let Some(check) = after.checks.get(before.checks.len()) {
        Checks::new(context, &after).await?;
        if !not_valid {
            passes(context, table, check).await?;
        }
    }
    if after.rules.len() > before.rules.len() && !not_valid {
        let own = context.table(table)?;
        let mut only = after.clone();
        only.rules.drain(..before.rules.len());
        existing::all_refer(&own, &only, &context.tables).await?;
    }
    let key = after.keys.get(before.keys.len()).cloned();
    table::redefine(&mut writing.tx, table, |own| {
        *own = after.clone();
        own.keys.clone_from(&before.keys);
        Ok(())
    })?;
    if let Some(key) = key {
        let (columns, primary) = (key.columns, key.primary);
        let added = table::add_key(&mut writing.tx, table, &key.name, columns, primary).await;
        added.map_err(|e| rebuild::of_rows(e.into(), table))?;
    }
    Ok(())
}

/// Drops a constraint.
///
/// # Errors
/// If there is none of that name, or a foreign key needs it.
pub(crate) fn drop(
    (scope, context): (&Scope<'_>, &StatementContext),
    writing: &mut Writing,
    definition: &Definition,
    name: &str,
    (if_exists, cascade): (bool, bool),
) -> Result<Vec<String>> {
    let table = &definition.name;
    if definition.keys.iter().any(|key| key.name == name) {
        let told = if cascade {
            drop_referring((scope, context), writing, definition, name)?
        } else {
            unneeded(context, definition, name)?;
            Vec::new()
        };
        table::drop_key(&mut writing.tx, table, name)?;
        table::comment(&mut writing.tx, table, |all| {
            all.keys.remove(&of_constraint(name));
        })?;
        return Ok(told);
    }
    if !definition.has_constraint(name) {
        if if_exists {
            return Ok(vec![format!(
                "constraint \"{name}\" of relation \"{}\" does not exist, skipping",
                base(table)
            )]);
        }
        return Err(unknown(definition, name));
    }
    table::redefine(&mut writing.tx, table, |own| {
        own.checks.retain(|check| check.name != name);
        without_rule(own, name);
        Ok(())
    })?;
    table::comment(&mut writing.tx, table, |all| {
        all.keys.remove(name);
        all.keys.remove(&of_constraint(name));
    })?;
    Ok(Vec::new())
}

/// Drops the foreign keys that hold and refer to a key. Returns what is told of them.
fn drop_referring(
    (scope, context): (&Scope<'_>, &StatementContext),
    writing: &mut Writing,
    parent: &Definition,
    name: &str,
) -> Result<Vec<String>> {
    let mut told = Vec::new();
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
        for rule in child.rules.iter().filter(refers) {
            scope.claim(&[other.to_owned()])?;
            context.rights.check_owner(&context.tables, other)?;
            told.push(format!(
                "drop cascades to constraint {} on table {}",
                rule.name,
                titled(other)
            ));
            table::redefine(&mut writing.tx, other, |own| {
                without_rule(own, &rule.name);
                Ok(())
            })?;
        }
    }
    Ok(told)
}

/// Takes a foreign key out of a definition.
fn without_rule(own: &mut Definition, name: &str) {
    if let Some(at) = own.rules.iter().position(|rule| rule.name == name) {
        let gone = own.rules.remove(at).foreign_key;
        own.foreign_keys.remove(gone);
        for rule in &mut own.rules {
            rule.foreign_key -= usize::from(rule.foreign_key > gone);
        }
    }
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

/// Whether a query has a row.
pub(crate) async fn any(context: &mut StatementContext, text: &str) -> Result<bool> {
    let plan = context.plan(Sql::Query(written(text)?), None).await?;
    let batches: Vec<_> = query::rows(context, &plan).await?.try_collect().await?;
    Ok(batches.iter().any(|batch| batch.num_rows() > 0))
}
