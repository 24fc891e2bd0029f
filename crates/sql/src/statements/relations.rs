//! What tables, views, sequences and arrays have in common: one name is of one of them, and they are dropped alike.

use std::time::Instant;

use sqlparser::ast::ObjectName;
use syntax::absent::DropAbsent;
use syntax::names::{INFORMATION_SCHEMA, PG_CATALOG, PG_TEMP, SCHEMA, base, schema_of, table_name};
use table::{Definition, Tables, titled};

use crate::error::{Error, Result};
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

/// Whether a table, a view, a sequence or an index has this name in the catalog.
pub(crate) fn is_taken(context: &StatementContext, name: &str) -> Result<bool> {
    let tables = &context.tables;
    let mut others = tables.names().into_iter();
    let has = |table: &str| {
        schema_of(table) == schema_of(name)
            && definition(tables, table).is_some_and(|own| has_index(own, base(name)))
    };
    Ok(taken(context, name)? || others.any(has))
}

/// The definition of a table.
pub(crate) fn definition<'t>(tables: &'t Tables, table: &str) -> Option<&'t Definition> {
    tables.get(table).map(|table| table.definition())
}

/// Whether a key that holds or an index of a table has this name.
pub(crate) fn has_index(definition: &Definition, name: &str) -> bool {
    definition.keys.iter().any(|key| key.name == name)
        || definition.indexes.iter().any(|index| index.name == name)
}

/// `drop` of something that there can be none of.
///
/// # Errors
/// That there is none, unless the statement says `if exists`.
pub(crate) async fn absent(
    scope: &mut Scope<'_>,
    statement: DropAbsent,
    started: Instant,
) -> Result<Answer> {
    let context = scope.peek(started)?;
    let answer = Answer::changed(None, &context.clock);
    let lost = match &statement.of {
        Some(table) => {
            let schema = table::schema_of(table).filter(|schema| {
                let own = [SCHEMA, PG_CATALOG, INFORMATION_SCHEMA, PG_TEMP];
                !own.contains(schema) && !context.tables.has_schema(schema)
            });
            match schema {
                Some(schema) => Some(("3F000", format!("schema \"{schema}\""))),
                None if taken(&context, &scope.own(table)?)? => None,
                None => Some(("42P01", format!("relation \"{}\"", base(table)))),
            }
        }
        None => None,
    };
    if !statement.if_exists {
        return Err(match lost {
            Some((code, what)) => Error::coded(code, format!("{what} does not exist")),
            None => Error::coded(statement.code, statement.error),
        });
    }
    let skipped = match lost {
        Some((_, what)) => vec![what],
        None => statement.skipped,
    };
    let notices = skipped
        .iter()
        .map(|what| format!("{what} does not exist, skipping"));
    Ok(notices.fold(answer, Answer::with_notice))
}

/// What is told where there is none of that kind that `if exists` asks for.
pub(crate) fn missing(kind: &str, name: &str) -> String {
    format!("{kind} \"{}\" does not exist, skipping", titled(name))
}

/// What is told where a table, or what shares its names, is there that `if not exists` would create.
pub(crate) fn there_already(name: &str) -> String {
    format!("relation \"{}\" already exists, skipping", titled(name))
}

/// What is told of things that have gone with others.
pub(crate) fn cascades(mut gone: Vec<String>) -> Option<String> {
    match gone.len() {
        0 => None,
        1 => Some(format!("drop cascades to {}", gone.remove(0))),
        count => {
            let each = gone.iter().map(|what| format!("drop cascades to {what}"));
            let each: Vec<String> = each.collect();
            Some(format!(
                "drop cascades to {count} other objects\nDETAIL: {}",
                each.join("\n")
            ))
        }
    }
}

/// `drop kind [if exists] a, b`. `what` is the statement for messages; `is_there` says whether there is one of a name,
/// and fails if there must be; `remove` gets those that there are, each once, and returns what has gone with them.
///
/// # Errors
/// Those of `is_there` and `remove`, and of writing.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    what: &str,
    names: Vec<ObjectName>,
    started: Instant,
    is_there: impl Fn(&StatementContext, &str) -> Result<bool>,
    remove: impl FnOnce(&Scope<'_>, &StatementContext, &mut Writing, &[&str]) -> Result<Vec<String>>,
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
        let gone = remove(scope, &context, &mut writing, &there)?;
        notices.extend(cascades(gone));
        scope.keep(writing).await?;
    }
    let answer = Answer::changed(None, &context.clock);
    Ok(notices.into_iter().fold(answer, Answer::with_notice))
}
