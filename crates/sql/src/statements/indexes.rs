//! `create unique index`, which is a unique key here, and `drop index`.

use std::time::Instant;

use datafusion::sql::sqlparser::ast::{
    CreateIndex, Expr, IndexColumn, IndexType, ObjectName, OrderByExpr, Statement as Sql,
};
use futures::FutureExt;
use futures::future::BoxFuture;

use crate::error::{Error, Result};
use crate::frontend::parse::{Statement, parse};
use crate::names::{base, column_name, quoted, schema_of, written};
use crate::run::answer::Answer;
use crate::statements::alter;
use crate::statements::scope::Scope;

/// `create unique index [name] on table (columns)`: adds a key.
///
/// # Errors
/// For any other index, and those of adding a key.
pub(crate) async fn create(
    scope: &mut Scope<'_>,
    statement: CreateIndex,
    started: Instant,
) -> Result<Answer> {
    if !statement.unique {
        return Err(Error::unsupported(
            "indexes are not supported, and not needed: scans skip what statistics rule out; a `unique` index is a key",
        ));
    }
    plain(&statement)?;
    let table = scope.own(&written(&statement.table_name)?)?;
    let columns: Vec<String> = statement
        .columns
        .iter()
        .map(column)
        .collect::<Result<_>>()?;
    let name = match &statement.name {
        Some(name) => {
            let name = written(name)?;
            if table::schema_of(&name).is_some_and(|schema| schema != schema_of(&table)) {
                return Err(Error::coded(
                    "42601",
                    format!(
                        "an index is in the schema of its table: call it {}",
                        base(&name)
                    ),
                ));
            }
            base(&name).to_owned()
        }
        None => format!("{}_{}_idx", base(&table), columns.join("_")),
    };
    let columns: Vec<String> = columns.iter().map(|column| quoted(column)).collect();
    let text = format!(
        "alter table {} add constraint {} unique ({})",
        quoted(&table),
        quoted(&name),
        columns.join(", ")
    );
    changed(scope, &text, started).await
}

/// `drop index [if exists] name, ...`: drops unique keys.
///
/// # Errors
/// If there is none of a name, or a foreign key needs it.
pub(crate) async fn drop(
    scope: &mut Scope<'_>,
    names: Vec<ObjectName>,
    if_exists: bool,
    started: Instant,
) -> Result<Answer> {
    let [name] = &names[..] else {
        return Err(Error::unsupported(
            "`drop index` drops one index at a time: write a statement for each",
        ));
    };
    let written = written(name)?;
    let name = base(&written);
    let tables = scope.tables()?;
    let has = |table: &&str| {
        let definition = tables.get(table).map(|table| table.definition());
        definition.is_some_and(|own| own.keys.iter().any(|key| key.name == name && !key.primary))
    };
    let with = tables.names().into_iter().filter(has);
    let table = match scope.path().first_in(&tables, &written, with) {
        Some(table) => table.to_string(),
        None if if_exists => {
            let context = scope.read(started).await?;
            return Ok(Answer::changed(None, &context.clock));
        }
        None => {
            return Err(Error::coded(
                "42704",
                format!("index \"{written}\" does not exist"),
            ));
        }
    };
    let text = format!(
        "alter table {} drop constraint {}",
        quoted(&table),
        quoted(name)
    );
    changed(scope, &text, started).await
}

/// Runs an `alter table`.
fn changed<'s>(
    scope: &'s mut Scope<'_>,
    text: &'s str,
    started: Instant,
) -> BoxFuture<'s, Result<Answer>> {
    async move {
        let statement = parse(text)?.pop().map(|parsed| parsed.statement);
        match statement {
            Some(Statement::Sql(sql)) => match *sql {
                Sql::AlterTable(change) => alter::alter(scope, change, started).await,
                _ => Err(lost()),
            },
            _ => Err(lost()),
        }
    }
    .boxed()
}

fn lost() -> Error {
    Error::Defect {
        message: "the change of an index is no `alter table`".into(),
    }
}

/// That an index has nothing that a key has not.
fn plain(statement: &CreateIndex) -> Result<()> {
    let CreateIndex {
        name: _,
        table_name: _,
        using,
        columns: _,
        unique: _,
        concurrently: _,
        if_not_exists,
        include,
        nulls_distinct,
        with,
        predicate,
        index_options,
        alter_options,
    } = statement;
    let refused = [
        (*if_not_exists, "if not exists"),
        (!matches!(using, None | Some(IndexType::BTree)), "using"),
        (!include.is_empty(), "include"),
        (*nulls_distinct == Some(false), "nulls not distinct"),
        (!with.is_empty(), "with"),
        (predicate.is_some(), "where"),
        (
            !index_options.is_empty() || !alter_options.is_empty(),
            "an option",
        ),
    ];
    match refused.iter().find(|(there, _)| *there) {
        Some((_, what)) => Err(Error::unsupported(format!(
            "`{what}` is not supported in `create unique index`"
        ))),
        None => Ok(()),
    }
}

/// The column that a part of an index is.
fn column(part: &IndexColumn) -> Result<String> {
    let OrderByExpr { expr, .. } = &part.column;
    match expr {
        Expr::Identifier(name) if part.operator_class.is_none() => Ok(column_name(name)),
        other => Err(Error::unsupported(format!(
            "a unique index is made of columns, not of {other}"
        ))),
    }
}
