//! `comment on`.

use std::time::Instant;

use catalog::rights::Rights;
use catalog::search_path::no_schema;
use sqlparser::ast::{CommentObject, ObjectName, ObjectNamePart};
use syntax::grammar::refused;
use syntax::names::{
    SCHEMA, base, column_name, constraint_of, of_constraint, of_schema, schema_of, table_name,
    written,
};
use table::Tables;

use crate::error::{Error, Result};
use crate::messages::nearest::{unknown_column, unknown_table};
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::depth::Depth;
use crate::statements::scope::Scope;
use crate::statements::types::unknown;

/// `comment on kind name is 'text' | null`.
pub(crate) async fn comment(
    scope: &mut Scope<'_>,
    kind: CommentObject,
    name: ObjectName,
    text: Option<String>,
    started: Instant,
) -> Result<Answer> {
    let key = match kind {
        CommentObject::Index => written(&name)?,
        _ => String::new(),
    };
    let (name, column) = match kind {
        CommentObject::Column => of_column(name)?,
        CommentObject::Schema => (of_schema(&schema(&name)?), None),
        CommentObject::Type | CommentObject::Domain => {
            let name = written(&name)?;
            (scope.path().resolve_type(&*scope.tables()?, &name), None)
        }
        _ => (table_name(&name)?, None),
    };
    let text = text.filter(|text| !text.is_empty());
    let (mut writing, context) = scope.write("COMMENT", &[&name], started).await?;
    let tables = &context.tables;
    let constraint = column.as_deref().and_then(constraint_of);
    if let Some(constraint) = constraint {
        has_constraint(tables, &name, constraint)?;
        table::comment(&mut writing.tx, &name, |all| {
            put(&mut all.keys, of_constraint(constraint), text);
        })?;
    } else if let Some(column) = column {
        match tables.view(&name) {
            Some(text) => view_has(&context, (&name, text), &column).await?,
            None => has_column(tables, &name, &column)?,
        }
        table::comment(&mut writing.tx, &name, |all| {
            put(&mut all.columns, column, text);
        })?;
    } else if kind == CommentObject::Index {
        let table = of_key(scope, tables, &key).ok_or_else(|| none(&key))?;
        context.rights.check_owner(tables, &table)?;
        scope.claim(std::slice::from_ref(&table))?;
        table::comment(&mut writing.tx, &table, |all| {
            put(&mut all.keys, base(&key).to_owned(), text);
        })?;
    } else {
        has(tables, &kind, &name)?;
        table::comment(&mut writing.tx, &name, |all| all.own = text)?;
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(None, &context.clock))
}

/// The name of a schema.
fn schema(name: &ObjectName) -> Result<String> {
    match &name.0[..] {
        [ObjectNamePart::Identifier(ident)] => Ok(column_name(ident)),
        _ => Err(Error::coded(
            "42601",
            format!("{name} is no name of a schema"),
        )),
    }
}

fn put(all: &mut std::collections::BTreeMap<String, String>, name: String, text: Option<String>) {
    match text {
        Some(text) => all.insert(name, text),
        None => all.remove(&name),
    };
}

/// The table of `table.column`, and the column.
fn of_column(name: ObjectName) -> Result<(String, Option<String>)> {
    let ObjectName(mut parts) = name;
    let last = parts.pop();
    match last.as_ref().and_then(ObjectNamePart::as_ident) {
        Some(column) if !parts.is_empty() => {
            Ok((table_name(&ObjectName(parts))?, Some(column_name(column))))
        }
        _ => Err(Error::Syntax {
            message: "column name must be qualified: write `table.column`".into(),
            position: None,
        }),
    }
}

/// That the table has the constraint.
fn has_constraint(tables: &Tables, name: &str, constraint: &str) -> Result<()> {
    let Some(table) = tables.get(name) else {
        return Err(unknown_table(name, tables));
    };
    let definition = table.definition();
    if definition.has_constraint(constraint) {
        return Ok(());
    }
    Err(Error::coded(
        "42704",
        format!(
            "constraint \"{constraint}\" for table \"{}\" does not exist",
            base(name)
        ),
    ))
}

fn has_column(tables: &Tables, name: &str, column: &str) -> Result<()> {
    let Some(table) = tables.get(name) else {
        return Err(unknown_table(name, tables));
    };
    let definition = table.definition();
    match definition.position(column) {
        Ok(_) => Ok(()),
        Err(_) => Err(unknown_column(column, definition)),
    }
}

/// That the view of this name and text has the column.
async fn view_has(
    context: &StatementContext,
    (name, text): (&str, &str),
    column: &str,
) -> Result<()> {
    let rights = Rights::of_owner(&context.tables, name)?;
    let plan = context.view(name, text, Depth::default(), &rights).await?;
    let mut columns = plan.schema().fields().iter();
    if columns.any(|own| own.name() == column) {
        return Ok(());
    }
    Err(Error::coded(
        "42703",
        format!(
            "column \"{column}\" of relation \"{}\" does not exist",
            base(name)
        ),
    ))
}

/// That there is something of this kind and name.
fn has(tables: &Tables, kind: &CommentObject, name: &str) -> Result<()> {
    if matches!(kind, CommentObject::Type | CommentObject::Domain) {
        let domain = tables.domain(name).filter(|own| !own.composite);
        return match (kind, domain) {
            (CommentObject::Domain, None) if tables.has_type(name) => Err(Error::coded(
                "42809",
                format!("\"{}\" is not a domain", base(name)),
            )),
            _ if tables.has_type(name) => Ok(()),
            _ => Err(unknown(name)),
        };
    }
    let (is_one, what) = match kind {
        CommentObject::Table => (
            tables.get(name).is_some() && tables.materialized(name).is_none(),
            "a table",
        ),
        CommentObject::MaterializedView => {
            (tables.materialized(name).is_some(), "a materialized view")
        }
        CommentObject::View => (tables.view(name).is_some(), "a view"),
        CommentObject::Sequence => (tables.sequence(name).is_some(), "a sequence"),
        CommentObject::Schema => {
            let schema = schema_of(name);
            return if schema == SCHEMA || tables.has_schema(schema) {
                Ok(())
            } else {
                Err(no_schema(schema))
            };
        }
        other => {
            return Err(refused(&format!("comment on {other}").to_lowercase()));
        }
    };
    let other = tables.get(name).is_some()
        || tables.view(name).is_some()
        || tables.sequence(name).is_some();
    match (is_one, other) {
        (true, _) => Ok(()),
        (false, true) => Err(Error::coded("42809", format!("\"{name}\" is not {what}"))),
        (false, false) => Err(none(name)),
    }
}

fn none(name: &str) -> Error {
    Error::coded("42P01", format!("relation \"{name}\" does not exist"))
}

/// The table with a key that holds, or an index, of this name.
fn of_key(scope: &Scope<'_>, tables: &Tables, written: &str) -> Option<String> {
    let (names, name) = (tables.names().into_iter(), base(written));
    let has = |table: &&str| {
        let table = tables.get(table);
        table.is_some_and(|table| {
            let own = table.definition();
            let mut indexes = own.indexes.iter();
            own.keys.iter().any(|key| key.name == name) || indexes.any(|own| own.name == name)
        })
    };
    let found = scope.path().first_in(tables, written, names.filter(has));
    found.map(str::to_owned)
}
