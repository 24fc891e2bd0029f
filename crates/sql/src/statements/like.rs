//! `create table name (like other ...)`.

use std::time::Instant;

use syntax::lengths;
use syntax::like::{CreateLike, Including};
use syntax::mentioned;
use syntax::names::{self, PG_TEMP, base, check_new};
use table::{Definition, Generated, Privileges};

use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::generated::GeneratedColumns;
use crate::statements::asked::stay_there;
use crate::statements::relations::there_already;
use crate::statements::scope::Scope;
use crate::statements::sequences::no_sequence;

/// Makes a table with the columns of another.
///
/// # Errors
/// If there is no such table, or already one of the new name; for what cannot be taken over; those of the store.
pub(crate) async fn create(
    scope: &mut Scope<'_>,
    statement: CreateLike,
    started: Instant,
) -> Result<Answer> {
    let temporary = statement.temporary || table::schema_of(&statement.name) == Some(PG_TEMP);
    let name = if temporary {
        check_new(&statement.name)?;
        names::temporary(scope.temporary().schema(), base(&statement.name))
    } else {
        scope.new_name(&statement.name)?
    };
    let other = scope.own(&statement.other)?;
    let (mut writing, mut context) = scope.write("CREATE TABLE", &[&name], started).await?;
    if temporary {
        scope.temporary().begin(&context, &mut writing)?;
    }
    scope.schema_stays(&context, &name)?;
    no_sequence(&context.tables, &name)?;
    if context.tables.get(&name).is_some() || context.tables.view(&name).is_some() {
        if statement.if_not_exists {
            return Ok(Answer::changed(None, &context.clock).with_notice(there_already(&name)));
        }
        return Err(Error::TableExists { name });
    }
    let from = context.table(&other)?;
    context.may(&other, Privileges::SELECT)?;
    let definition = alike(from.definition(), &name, statement.including)?;
    GeneratedColumns::check(&mut context, &definition).await?;
    context.defaults_of(&definition).await?;
    stay_there(&definition)?;
    Checks::new(&mut context, &definition).await?;
    table::create(&mut writing.tx, &definition)?;
    if statement.including.comments {
        let columns = said(&context, &other);
        if !columns.is_empty() {
            table::comment(&mut writing.tx, &name, |all| all.columns.extend(columns))?;
        }
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// What is said about the columns of a table.
fn said(context: &StatementContext, table: &str) -> Vec<(String, String)> {
    let comments = context.tables.comments(table);
    let columns = comments.into_iter().flat_map(|all| all.columns.clone());
    columns.collect()
}

/// The definition of a table `name` with the columns of another.
fn alike(other: &Definition, name: &str, including: Including) -> Result<Definition> {
    let mut own = other.clone();
    name.clone_into(&mut own.name);
    own.foreign_keys.clear();
    own.rules.clear();
    own.keys.clear();
    own.primary_key.clear();
    for column in &mut own.columns {
        column.sequences.clear();
        if !including.defaults {
            column.default = None;
        }
        match &column.generated {
            Some(Generated::Identity { .. }) if including.identity => {
                return Err(Error::unsupported(format!(
                    "the identity column \"{}\" is not taken over: `excluding identity`, then `alter table ... alter column ... add generated ... as identity`",
                    column.name
                )));
            }
            Some(Generated::Stored { text }) if including.generated => {
                let text = mentioned::without_table(text)?;
                column.generated = Some(Generated::Stored { text });
            }
            _ => column.generated = None,
        }
    }
    if !including.constraints {
        own.checks.retain(lengths::is_one);
    }
    for check in &mut own.checks {
        check.text = mentioned::without_table(&check.text)?;
    }
    if including.indexes {
        if other.keys.iter().any(|key| key.primary) || other.keys.is_empty() {
            own.primary_key.clone_from(&other.primary_key);
        }
        for key in &other.keys {
            let columns = key.columns.iter();
            let columns: Vec<&str> = columns.map(|at| own.columns[*at].name.as_str()).collect();
            let wanted = if key.primary {
                format!("{}_pkey", base(name))
            } else {
                format!("{}_{}_key", base(name), columns.join("_"))
            };
            let free = own.free_name(&wanted);
            own.add_key(free, key.columns.clone(), key.primary);
        }
    }
    Ok(own)
}
