//! `create sequence`, `alter sequence`, `drop sequence`.

use std::time::Instant;

use sqlparser::ast::ObjectName;
use syntax::names::{self, check_new};
use syntax::sequences::{SequenceOptions, SequenceStatement};
use table::Tables;

use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::sequences::sequence;
use crate::statements::asked::stays_unused;
use crate::statements::owned::{self, Owner};
use crate::statements::relations::{self, missing, taken, there_already};
use crate::statements::scope::Scope;
use crate::statements::write::Writing;

/// Creates or changes a sequence.
pub(crate) async fn define(
    scope: &mut Scope<'_>,
    statement: SequenceStatement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        SequenceStatement::Create {
            name,
            temporary,
            if_not_exists,
            options,
        } => {
            let name = new_name(scope, &name, temporary)?;
            let (mut writing, context) = scope.write("CREATE SEQUENCE", &[&name], started).await?;
            if temporary {
                scope.temporary().begin(&context, &mut writing)?;
            }
            scope.schema_stays(&context, &name)?;
            if taken(&context, &name)? {
                if if_not_exists {
                    let notice = there_already(&name);
                    return Ok(Answer::changed(None, &context.clock).with_notice(notice));
                }
                return Err(Error::coded(
                    "42P07",
                    format!("relation \"{name}\" already exists"),
                ));
            }
            owned::make(&scope.instance, &mut writing, &name, &options)?;
            if let Some(owner) = &options.owner {
                owned::give(scope, &context, &mut writing, &name, owner.as_ref())?;
            }
            scope.keep(writing).await?;
            Ok(Answer::changed(None, &context.clock))
        }
        SequenceStatement::Alter {
            name,
            if_exists,
            options,
        } => {
            let (mut writing, context) = scope.write("ALTER SEQUENCE", &[&name], started).await?;
            if if_exists && !taken(&context, &name)? {
                let notice = missing("relation", &name);
                return Ok(Answer::changed(None, &context.clock).with_notice(notice));
            }
            change(scope, &context, &mut writing, &name, &options)?;
            if let Some(owner) = &options.owner {
                owned::give(scope, &context, &mut writing, &name, owner.as_ref())?;
            }
            scope.keep(writing).await?;
            Ok(Answer::changed(None, &context.clock))
        }
    }
}

/// What a new sequence is called in the catalog.
fn new_name(scope: &Scope<'_>, written: &str, temporary: bool) -> Result<String> {
    if !temporary {
        return scope.new_name(written);
    }
    check_new(written)?;
    Ok(names::temporary(scope.temporary().schema(), written))
}

/// Changes a sequence.
///
/// # Errors
/// If there is none; for options that do not go with each other, or with where it is.
pub(crate) fn change(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    name: &str,
    options: &SequenceOptions,
) -> Result<()> {
    let before = sequence(&context.tables, name)?;
    let (sequences, store) = (&scope.instance.sequences, &scope.instance.store);
    let at = sequences.position(store, name, before)?;
    let (mut own, restart) = options.changed(before, at)?;
    own.first = restart.unwrap_or(at);
    if restart.is_some() {
        // From a place of its own, to which nobody comes who does not see this change.
        own.state = sequences.new_number(&writing.tx)?;
    }
    table::change_sequence(&mut writing.tx, name, &own)?;
    Ok(())
}

/// That no sequence has the name, which a table or a view is to get.
///
/// # Errors
/// If one has.
pub(crate) fn no_sequence(tables: &Tables, name: &str) -> Result<()> {
    match tables.sequence(name) {
        None => Ok(()),
        Some(_) => Err(Error::coded(
            "42P07",
            format!(
                "relation \"{name}\" already exists: it is a sequence; `drop sequence {name}` first, or take another name"
            ),
        )),
    }
}

/// `drop sequence [if exists] a, b`.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let is_there = |context: &StatementContext, name: &str| match sequence(&context.tables, name) {
        Ok(_) => Ok(true),
        Err(e) if taken(context, name)? => Err(e),
        Err(_) if if_exists => Ok(false),
        Err(_) => Err(Error::coded(
            "42P01",
            format!("sequence \"{name}\" does not exist"),
        )),
    };
    relations::drop(
        scope,
        "DROP SEQUENCE",
        names,
        started,
        is_there,
        |scope, context, writing, there| {
            for name in there {
                if let Some(owner) = owned::owner(&context.tables, name) {
                    stays_without(context, &owner, name)?;
                    owned::let_go(scope, writing, &owner, name)?;
                }
                stays_unused(context, name, &format!("sequence {name}"), &[])?;
                table::drop_sequence(&mut writing.tx, name)?;
            }
            Ok(Vec::new())
        },
    )
    .await
}

/// That the owner of a sequence can be without it.
fn stays_without(context: &StatementContext, owner: &Owner, name: &str) -> Result<()> {
    if !owner.identity {
        return Ok(());
    }
    let table = context.table(&owner.table)?;
    let column = &table.definition().columns[owner.column].name;
    Err(Error::Constraint {
        code: "2BP01",
        message: format!(
            "cannot drop sequence {name} because column {column} of table {} requires it: You can drop column {column} of table {} instead.",
            owner.table, owner.table
        ),
    })
}
