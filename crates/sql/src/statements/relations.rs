//! What tables, views, sequences and arrays have in common: one name is of one of them, and they are dropped alike.

use std::time::Instant;

use datafusion::sql::sqlparser::ast::ObjectName;
use table::titled;

use crate::error::Result;
use crate::names::table_name;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::statements::scope::Scope;
use crate::statements::write::Writing;

/// Whether something has the name.
///
/// # Errors
/// Those of reading the catalog.
pub(crate) fn taken(context: &StatementContext, name: &str) -> Result<bool> {
    let tables = &context.tables;
    Ok(tables.get(name).is_some()
        || tables.view(name).is_some()
        || tables.sequence(name).is_some()
        || context.array(name)?.is_some())
}

/// What is told where there is none of that kind that `if exists` asks for.
pub(crate) fn missing(kind: &str, name: &str) -> String {
    format!("{kind} \"{}\" does not exist, skipping", titled(name))
}

/// What is told where a table, or what shares its names, is there that `if not exists` would create.
pub(crate) fn there_already(name: &str) -> String {
    format!("relation \"{}\" already exists, skipping", titled(name))
}

/// `drop kind [if exists] a, b`. `what` is the statement for messages; `is_there` says whether there is one of a name,
/// and fails if there must be; `remove` gets those that there are, each once.
///
/// # Errors
/// Those of `is_there` and `remove`, and of writing.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    what: &str,
    names: Vec<ObjectName>,
    started: Instant,
    is_there: impl Fn(&StatementContext, &str) -> Result<bool>,
    remove: impl FnOnce(&Scope<'_>, &StatementContext, &mut Writing, &[&str]) -> Result<()>,
) -> Result<Answer> {
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    let targets: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write(what, &targets, started).await?;
    let mut there: Vec<&str> = Vec::new();
    let mut notices = Vec::new();
    for name in targets {
        if there.contains(&name) {
            continue;
        }
        if is_there(&context, name)? {
            there.push(name);
        } else {
            let kind = what.trim_start_matches("DROP ").to_lowercase();
            notices.push(missing(&kind, name));
        }
    }
    if !there.is_empty() {
        remove(scope, &context, &mut writing, &there)?;
        scope.keep(writing).await?;
    }
    let answer = Answer::changed(None, &context.clock);
    Ok(notices.into_iter().fold(answer, Answer::with_notice))
}
