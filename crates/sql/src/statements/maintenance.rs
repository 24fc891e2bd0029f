//! `reindex`, `analyze`, `vacuum` and `cluster`: what they name must be there.

use std::time::Instant;

use catalog::pg_catalog::system;
use catalog::search_path::no_schema;
use syntax::maintenance::{Maintenance, Named};
use syntax::names::{INFORMATION_SCHEMA, PG_CATALOG, SCHEMA, base};

use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::run::answer::Answer;
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
    let mut notices = Vec::new();
    for named in &statement.named {
        match named {
            Named::Table(written, columns) => {
                let name = scope.own(written)?;
                if statement.tag != "CLUSTER" && is_system(&name) {
                    if !context.rights.is_all() {
                        notices.push(format!(
                            "permission denied for \"{}\", which is skipped",
                            base(&name)
                        ));
                    }
                    continue;
                }
                let reads = matches!(statement.tag, "ANALYZE" | "VACUUM");
                if reads && context.tables.view(&name).is_some() {
                    notices.push(format!(
                        "\"{}\" is a view, which is skipped: it has no rows of its own",
                        base(&name)
                    ));
                    continue;
                }
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
    let answer = Answer::changed(None, &context.clock);
    Ok(notices.into_iter().fold(answer, Answer::with_notice))
}

/// Whether something of this name is part of the catalog, which has nothing to be kept in order.
fn is_system(name: &str) -> bool {
    match table::schema_of(name) {
        Some(PG_CATALOG) => system::has_table(base(name)),
        Some(INFORMATION_SCHEMA) => system::has_view(base(name)),
        _ => false,
    }
}
