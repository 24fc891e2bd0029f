//! `alter table ... alter column ...` about what makes the column's values.

use std::time::Instant;

use syntax::columns::of_type;
use syntax::identity::{AlterIdentity, Identity, IdentityChange};
use syntax::sequences::SequenceOptions;
use table::{Column, Definition, Generated};

use crate::bind::definition::NewSequence;
use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::scope::Scope;
use crate::statements::write::Writing;
use crate::statements::{asked, owned, sequences};

/// Makes the change.
pub(crate) async fn alter(
    scope: &mut Scope<'_>,
    statement: AlterIdentity,
    started: Instant,
) -> Result<Answer> {
    let name = &statement.table;
    let (mut writing, context) = scope.write("ALTER TABLE", &[name], started).await?;
    if statement.if_exists && context.tables.get(name).is_none() {
        return Ok(Answer::changed(None, &context.clock));
    }
    let table = context.table(name)?;
    let mut definition = table.definition().clone();
    let mut columns = definition.columns.iter();
    let Some(at) = columns.position(|own| own.name == statement.column) else {
        return Err(unknown_column(&statement.column, &definition));
    };
    change(
        scope,
        &context,
        &mut writing,
        (&mut definition, at),
        statement.change,
    )?;
    table::redefine(&mut writing.tx, name, |own| {
        *own = definition;
        Ok(())
    })?;
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

fn change(
    scope: &Scope<'_>,
    context: &StatementContext,
    writing: &mut Writing,
    (definition, at): (&mut Definition, usize),
    change: IdentityChange,
) -> Result<()> {
    let place = place(definition, at);
    let column = &mut definition.columns[at];
    match change {
        IdentityChange::Add(Identity { always, options }) => {
            may_get(column, &place)?;
            let new = NewSequence {
                column: at,
                options: of_type(options, &column.data_type)?,
                always: Some(always),
            };
            owned::create(scope, context, writing, definition, vec![new], &[])
        }
        IdentityChange::Set { always, options } => {
            let Some((sequence, before)) = column.identity() else {
                return Err(no_identity(&place));
            };
            let sequence = sequence.to_owned();
            if options != SequenceOptions::default() {
                scope.claim(std::slice::from_ref(&sequence))?;
                sequences::change(scope, context, writing, &sequence, &options)?;
            }
            column.generated = Some(Generated::Identity {
                sequence,
                always: always.unwrap_or(before),
            });
            Ok(())
        }
        IdentityChange::Drop { if_exists } => {
            let Some((sequence, _)) = column.identity() else {
                return unless(if_exists, no_identity(&place));
            };
            let sequence = sequence.to_owned();
            scope.claim(std::slice::from_ref(&sequence))?;
            asked::stays_unused(context, &sequence, &format!("sequence {sequence}"), &[])?;
            table::drop_sequence(&mut writing.tx, &sequence)?;
            column.sequences.retain(|own| *own != sequence);
            column.generated = None;
            Ok(())
        }
        IdentityChange::DropExpression { if_exists } => {
            if column.expression().is_none() {
                let none = format!("{place} is not a stored generated column");
                return unless(if_exists, Error::coded("55000", none));
            }
            column.generated = None;
            Ok(())
        }
    }
}

fn unless(if_exists: bool, error: Error) -> Result<()> {
    if if_exists { Ok(()) } else { Err(error) }
}

/// That a column can become one of identity.
fn may_get(column: &Column, place: &str) -> Result<()> {
    let reason = if column.identity().is_some() {
        "is already an identity column"
    } else if column.nullable {
        "must be declared NOT NULL before identity can be added"
    } else if column.default.is_some() || column.generated.is_some() {
        "already has a default value"
    } else {
        return Ok(());
    };
    Err(Error::coded("55000", format!("{place} {reason}")))
}

fn no_identity(place: &str) -> Error {
    Error::coded("55000", format!("{place} is not an identity column"))
}

/// A column with its table, for messages.
pub(super) fn place(definition: &Definition, at: usize) -> String {
    format!(
        "column \"{}\" of relation \"{}\"",
        definition.columns[at].name, definition.name
    )
}

/// That `default`, or its absence, may be said of a column; `instead` is what else may be done.
///
/// # Errors
/// If its values are made otherwise.
pub(super) fn may_have_default(definition: &Definition, at: usize, instead: bool) -> Result<()> {
    let (what, advice) = match &definition.columns[at].generated {
        None => return Ok(()),
        Some(Generated::Identity { .. }) => ("an identity column", "DROP IDENTITY"),
        Some(Generated::Stored { .. }) => ("a generated column", "DROP EXPRESSION"),
    };
    let advice = if instead {
        format!(": Use ALTER TABLE ... ALTER COLUMN ... {advice} instead.")
    } else {
        String::new()
    };
    Err(Error::coded(
        "42601",
        format!("{} is {what}{advice}", place(definition, at)),
    ))
}
