//! `reindex`, `analyze`, `vacuum` and `cluster`: what they name must be there.

use std::time::Instant;

use crate::error::{Error, Result};
use crate::frontend::maintenance::{Maintenance, Named};
use crate::messages::nearest::unknown_column;
use crate::names::{SCHEMA, base};
use crate::run::answer::Answer;
use crate::search_path::no_schema;
use crate::statements::indexes;
use crate::statements::scope::Scope;

/// Looks up what is named.
///
/// # Errors
/// If it is not there; for `vacuum` in a transaction of several statements.
pub(crate) async fn run(
    scope: &mut Scope<'_>,
    statement: Maintenance,
    started: Instant,
) -> Result<Answer> {
    if statement.alone && !scope.is_alone() {
        return Err(Error::Transaction {
            code: "25001",
            message: format!("{} cannot run inside a transaction block", statement.tag),
        });
    }
    let context = scope.read(started).await?;
    for named in &statement.named {
        match named {
            Named::Table(written, columns) => {
                let name = scope.own(written)?;
                // A materialized view has rows as a table has.
                let Some(table) = context.tables.get(&name) else {
                    context.table(&name)?;
                    continue;
                };
                context.rights.check_owner(&context.tables, &name)?;
                for column in columns {
                    if table.definition().position(column).is_err() {
                        return Err(unknown_column(column, table.definition()));
                    }
                }
            }
            Named::Index(written) => {
                if !indexes::is_index(&context, written, scope)? {
                    return Err(Error::coded(
                        "42704",
                        format!("index \"{}\" does not exist", base(written)),
                    ));
                }
            }
            Named::Schema(name) => {
                if name != SCHEMA && !context.tables.has_schema(name) {
                    return Err(no_schema(name));
                }
            }
        }
    }
    Ok(Answer::changed(None, &context.clock))
}
