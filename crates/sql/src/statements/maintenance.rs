//! `reindex`, `analyze`, `vacuum` and `cluster`: what they name must be there. `vacuum` moves what is left of blocks of which rows were
//! deleted ([`compact`]).

use std::time::Instant;

use catalog::pg_catalog::system;
use catalog::search_path::no_schema;
use syntax::maintenance::{Maintenance, Named};
use syntax::names::{INFORMATION_SCHEMA, PG_CATALOG, SCHEMA, base};

use crate::error::{Error, Result};
use crate::messages::nearest::unknown_column;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::scope::Scope;
use crate::statements::{compact, indexes};

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
    let (mut notices, mut thin) = (Vec::new(), Vec::new());
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
                if compact::is_thin(table) {
                    thin.push(name.clone());
                }
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
    if statement.tag == "VACUUM" {
        if statement.named.is_empty() {
            thin = thin_tables(&context);
        }
        vacuum(scope, &thin, started).await?;
    }
    let answer = Answer::changed(None, &context.clock);
    Ok(notices.into_iter().fold(answer, Answer::with_notice))
}

/// The tables of whose blocks so many rows were deleted that it is worth moving what is left, as far as they are the role's.
fn thin_tables(context: &StatementContext) -> Vec<String> {
    let tables = &context.tables;
    let names = tables.names().into_iter();
    let own = names.filter(|name| context.rights.check_owner(tables, name).is_ok());
    let thin = own.filter(|name| tables.get(name).is_some_and(|own| compact::is_thin(own)));
    thin.map(str::to_owned).collect()
}

/// Moves what is left of their thin blocks, each table in a transaction of its own.
async fn vacuum(scope: &mut Scope<'_>, names: &[String], started: Instant) -> Result<()> {
    for name in names {
        let (writing, context) = scope.write("VACUUM", &[name], started).await?;
        let (writing, _) = compact::vacuum(&context, writing, name).await?;
        scope.keep(writing).await?;
    }
    Ok(())
}

/// Whether something of this name is part of the catalog, which has nothing to be kept in order.
fn is_system(name: &str) -> bool {
    match table::schema_of(name) {
        Some(PG_CATALOG) => system::has_table(base(name)),
        Some(INFORMATION_SCHEMA) => system::has_view(base(name)),
        _ => false,
    }
}
