//! `create table`, `drop table`, `truncate`.

use std::time::Instant;

use arrow::datatypes::{Field, Schema};
use datafusion::sql::sqlparser::ast::{CreateTable, ObjectName, Query, Statement as Sql};
use futures::TryStreamExt;
use table::{Definition, Tables};

use crate::error::{Error, Result};
use crate::frontend::definition::define;
use crate::frontend::table_options::keys_hold;
use crate::messages::tags::shown;
use crate::names::{check_column, check_new, table_name};
use crate::run::answer::Answer;
use crate::run::checks::Checks;
use crate::run::context::StatementContext;
use crate::run::query;
use crate::statements::references::may_empty;
use crate::statements::scope::Scope;
use crate::statements::sequences::no_sequence;
use crate::statements::views::stays_unused;
use crate::statements::write::Writing;

/// `create [or replace] table [if not exists] name (columns) | as query`.
pub(crate) async fn create(
    scope: &mut Scope<'_>,
    statement: CreateTable,
    started: Instant,
) -> Result<Answer> {
    let name = table_name(&statement.name)?;
    check_new(&name)?;
    let (mut writing, mut context) = scope.write("CREATE TABLE", &[&name], started).await?;
    no_sequence(&context.tables, &name)?;
    if context.tables.get(&name).is_some() {
        if statement.if_not_exists {
            return Ok(Answer::changed(None, &context.clock));
        }
        if !statement.or_replace {
            return Err(Error::TableExists { name });
        }
        drop_order(&context.tables, &[&name])?;
        stays_unused(&context, &[&name])?;
        table::drop(&mut writing.tx, &name)?;
    } else if context.tables.view(&name).is_some() {
        return Err(Error::TableExists { name });
    }
    let changed = match statement.query {
        Some(query) if statement.columns.is_empty() => {
            let (filled, rows) = create_as(&mut context, writing, &name, query).await?;
            writing = filled;
            Some(rows)
        }
        Some(_) => {
            return Err(Error::unsupported(
                "`create table name (columns) as` is not supported: rename the columns in the query with `as`",
            ));
        }
        None => {
            let definition = define(
                &name,
                statement.columns,
                statement.constraints,
                keys_hold(&statement.table_options)?,
                &context.types(),
                &context.tables,
            )?;
            context.defaults_of(&definition).await?;
            Checks::new(&mut context, &definition).await?;
            table::create(&mut writing.tx, &definition)?;
            None
        }
    };
    scope.keep(writing).await?;
    Ok(Answer::changed(changed, &context.clock))
}

async fn create_as(
    context: &mut StatementContext,
    mut writing: Writing,
    name: &str,
    query: Box<Query>,
) -> Result<(Writing, u64)> {
    let plan = context.plan(Sql::Query(query), None).await?;
    let fields: Vec<Field> = plan
        .schema()
        .fields()
        .iter()
        .map(|field| Field::new(shown(field.name()), field.data_type().clone(), true))
        .collect();
    for (i, field) in fields.iter().enumerate() {
        check_column(field.name())?;
        if fields[..i].iter().any(|other| other.name() == field.name()) {
            return Err(Error::duplicate_column(field.name()));
        }
    }
    let definition = Definition::from_schema(name, &Schema::new(fields))?;
    table::create(&mut writing.tx, &definition)?;
    let rows = query::rows(context, &plan).await?.map_err(Error::from);
    writing
        .append(
            &definition,
            &Checks::default(),
            rows,
            context.instance.workers().width(),
        )
        .await
}

/// The order in which to drop `names`: a table that refers to another is dropped before it.
///
/// # Errors
///
/// When a table that stays refers to one of them.
fn drop_order(tables: &Tables, names: &[&str]) -> Result<Vec<String>> {
    let mut order: Vec<String> = Vec::new();
    let parents = |child: &str| {
        let table = tables.get(child);
        table.map_or(Vec::new(), |t| {
            t.definition()
                .foreign_keys
                .iter()
                .map(|key| key.parent.clone())
                .collect()
        })
    };
    let refers =
        |child: &str, parent: &str| child != parent && parents(child).iter().any(|p| p == parent);
    let staying = tables
        .names()
        .into_iter()
        .filter(|name| !names.contains(name));
    for child in staying {
        if let Some(parent) = names.iter().find(|name| refers(child, name)) {
            return Err(Error::Constraint {
                message: format!(
                    "table \"{parent}\" is referred to by a foreign key of \"{child}\"; drop \"{child}\" first, or both in one statement"
                ),
            });
        }
    }
    // A table exists before another refers to it, so there is always one to which none of the others refers.
    while order.len() < names.len() {
        let left = || {
            names
                .iter()
                .filter(|name| !order.iter().any(|done| done == *name))
        };
        match left().find(|name| !left().any(|other| refers(other, name))) {
            Some(next) => order.push((*next).to_string()),
            None => {
                return Err(Error::Constraint {
                    message: "the tables refer to each other".into(),
                });
            }
        }
    }
    Ok(order)
}

/// `drop table [if exists] a, b`.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    let targets: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write("DROP TABLE", &targets, started).await?;
    let mut there: Vec<&str> = Vec::new();
    for name in &names {
        match context.table(name) {
            Ok(_) if there.contains(&name.as_str()) => {}
            Ok(_) => there.push(name),
            Err(_) if if_exists => {}
            Err(e) => return Err(e),
        }
    }
    stays_unused(&context, &there)?;
    for name in drop_order(&context.tables, &there)? {
        table::drop(&mut writing.tx, &name)?;
    }
    if !there.is_empty() {
        scope.keep(writing).await?;
    }
    Ok(Answer::changed(None, &context.clock))
}

/// `truncate [table] a, b`.
pub(crate) async fn truncate(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    started: Instant,
) -> Result<Answer> {
    let names = names.iter().map(table_name).collect::<Result<Vec<_>>>()?;
    let targets: Vec<&str> = names.iter().map(String::as_str).collect();
    let (mut writing, context) = scope.write("TRUNCATE TABLE", &targets, started).await?;
    may_empty(&context.tables, &names)?;
    let mut rows = 0;
    for name in &names {
        rows += empty(&context, &mut writing, name)?;
    }
    scope.keep(writing).await?;
    Ok(Answer::changed(Some(rows), &context.clock))
}

/// Removes all rows of a table, and says how many there were.
pub(crate) fn empty(context: &StatementContext, writing: &mut Writing, name: &str) -> Result<u64> {
    let table = context.table(name)?;
    table::truncate(&mut writing.tx, name)?;
    Ok(table.rows())
}
