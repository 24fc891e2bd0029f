//! Which function runs which statement, and why some statements are refused.

use std::sync::Arc;
use std::time::Instant;

use sqlparser::ast::{ObjectType, Statement as Sql};
use syntax::key_query::KeyQuery;
use syntax::names::table_name;
use syntax::parse::Statement;

use crate::error::{Error, Result};
use crate::run::answer::Answer;
use crate::run::query;
use crate::statements::scope::Scope;
use crate::statements::{
    alter, arrays, comments, composites, constrain, copy, ddl, dml, domains, explain, identity,
    indexes, like, locking, lookup, maintenance, materialized, merge, relations, roles, schemas,
    sequences, show, summarize, targets, views,
};

/// Runs one statement, which says nothing about transactions.
pub(crate) async fn run(
    scope: &mut Scope<'_>,
    statement: Statement,
    started: Instant,
) -> Result<Answer> {
    let (mut statement, analysed) = explain::analysed(statement);
    targets::named(scope, &mut statement)?;
    let Some(change) = analysed else {
        return run_named(scope, statement, started).await;
    };
    let watch = change.watch();
    scope.watch = Some(Arc::clone(&watch));
    let answer = run_named(scope, statement, started).await;
    scope.watch = None;
    change.told(&watch, answer?, (&scope.instance, started))
}

/// Runs a statement whose tables have the names of the catalog.
async fn run_named(
    scope: &mut Scope<'_>,
    statement: Statement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        Statement::Sql(sql) if arrays::changes_one(scope, &sql)? => {
            arrays::change(scope, *sql, started).await
        }
        Statement::Returning { statement, .. } if arrays::changes_one(scope, &statement)? => Err(
            Error::unsupported("`returning` is not supported for arrays: select the cells"),
        ),
        Statement::Array(statement) => arrays::define(scope, statement, started).await,
        Statement::Schema(statement) => schemas::run(scope, statement, started).await,
        Statement::Role(statement) => roles::run(scope, statement, started).await,
        Statement::Type(statement) => composites::run(scope, statement, started).await,
        Statement::Domain(statement) => domains::run(scope, statement, started).await,
        Statement::Sequence(statement) => sequences::define(scope, statement, started).await,
        Statement::Absent(own) => relations::absent(scope, own, started).await,
        Statement::Maintenance(own) => maintenance::run(scope, own, started).await,
        Statement::Change(change) => constrain::own(scope, change, started).await,
        Statement::Identity(change) => identity::alter(scope, change, started).await,
        Statement::Materialized(statement) => materialized::run(scope, statement, started).await,
        Statement::Like(statement) => like::create(scope, statement, started).await,
        Statement::Merge(statement) => merge::merge(scope, *statement, started).await,
        Statement::Sql(sql) => run_sql(scope, *sql, started).await,
        Statement::Returning { statement, query } => match *statement {
            Sql::Insert(insert) => dml::insert(scope, insert, Some(query), started).await,
            Sql::Delete(delete) => dml::delete(scope, delete, Some(query), started).await,
            Sql::Update(update) => dml::update(scope, update, Some(query), started).await,
            other => Err(Error::unsupported(refusal(&other))),
        },
        Statement::Explain {
            analyze,
            verbose,
            json,
            statement,
        } => {
            let how = explain::How {
                analyze,
                verbose,
                json,
            };
            explain::explain(scope.read(started).await?, *statement, how).await
        }
        Statement::Columns(asked) => summarize::run(scope, asked, started).await,
        Statement::View { view, text } => views::create(scope, *view, &text, started).await,
        Statement::Prepare { .. } | Statement::Execute { .. } | Statement::Deallocate(_) => Err(
            Error::unsupported("prepared statements are executed by themselves, not explained"),
        ),
        Statement::CopyTo(copy) => copy::to(scope, copy, started).await,
        Statement::CopyFrom(copy) => copy::from(scope, copy, started).await,
        Statement::NewSchema { .. } => Err(Error::unsupported(
            "`create schema` is explained by none: it runs by itself",
        )),
        Statement::Changes(_) => Err(Error::unsupported(
            "several changes of a table are explained by none: they run by themselves",
        )),
        // They are about the transaction.
        Statement::Constraints(_) => Err(Error::unsupported(
            "`set constraints` is explained by none: it runs by itself",
        )),
        Statement::Modes(_) => Err(Error::unsupported(
            "`begin` and `set transaction` are explained by none: they run by themselves",
        )),
        Statement::Steps { .. } => Err(Error::unsupported(
            "a `with` that changes tables is explained by none: it runs by itself",
        )),
        Statement::Through(_) => Err(Error::unsupported(
            "`copy` to `stdout` and from `stdin` is for clients of `atoll serve`: name a file",
        )),
    }
}

/// Runs a query.
async fn select(scope: &mut Scope<'_>, mut query: Sql, started: Instant) -> Result<Answer> {
    if let Some(asked) = KeyQuery::of_sql(&query)
        && let Some(answer) = lookup::answer(scope, (&asked, &[]), started).await?
    {
        return Ok(answer);
    }
    let context = locking::read(scope, &mut query, started).await?;
    query::run(context, query).await
}

async fn run_sql(scope: &mut Scope<'_>, statement: Sql, started: Instant) -> Result<Answer> {
    match statement {
        Sql::Query(_) => select(scope, statement, started).await,
        Sql::Insert(insert) => dml::insert(scope, insert, None, started).await,
        Sql::Delete(delete) => dml::delete(scope, delete, None, started).await,
        Sql::Update(update) => dml::update(scope, update, None, started).await,
        Sql::CreateTable(create) => ddl::create(scope, create, started).await,
        Sql::AlterTable(change) => alter::alter(scope, change, started).await,
        Sql::Truncate(truncate) => ddl::truncate(scope, truncate, started).await,
        Sql::Drop {
            object_type: ObjectType::Table,
            if_exists,
            names,
            cascade,
            temporary: false,
            ..
        } => ddl::drop(scope, names, (if_exists, cascade), started).await,
        Sql::Drop {
            object_type: ObjectType::View,
            if_exists,
            names,
            cascade,
            temporary: false,
            ..
        } => views::drop(scope, names, (if_exists, cascade), started).await,
        Sql::Drop {
            object_type: ObjectType::MaterializedView,
            if_exists,
            names,
            cascade,
            temporary: false,
            ..
        } => materialized::drop(scope, names, (if_exists, cascade), started).await,
        Sql::Drop {
            object_type: ObjectType::Sequence,
            if_exists,
            names,
            cascade: false,
            temporary: false,
            ..
        } => sequences::drop(scope, names, if_exists, started).await,
        Sql::Lock(lock) => locking::lock_table(scope, lock, started).await,
        Sql::CreateIndex(create) => indexes::create(scope, create, started).await,
        Sql::Drop {
            object_type: ObjectType::Index,
            if_exists,
            names,
            cascade: false,
            temporary: false,
            table: None,
            ..
        } => indexes::drop_all(scope, names, if_exists, started).await,
        Sql::Comment {
            object_type,
            object_name,
            comment,
            if_exists: false,
        } => comments::comment(scope, object_type, object_name, comment, started).await,
        Sql::ShowTables { .. } => show::show_tables(&scope.read(started).await?),
        Sql::ExplainTable {
            table_name: name, ..
        } => show::describe(&scope.read(started).await?, &table_name(&name)?).await,
        other => Err(Error::unsupported(refusal(&other))),
    }
}

/// Why a statement is not supported, and what to do instead.
fn refusal(statement: &Sql) -> String {
    match statement {
        Sql::Merge(_) => "`merge` stands by itself: it is no part of another statement".into(),
        Sql::Set(_) | Sql::ShowVariable { .. } => {
            "settings are not supported: options are given when the database is opened".into()
        }
        Sql::Drop {
            object_type: ObjectType::Sequence,
            ..
        } => "`drop sequence` takes no `cascade`: drop the defaults that ask it first".into(),
        Sql::Drop { object_type, .. } => format!(
            "there is no {} to drop: only tables, views, sequences and arrays exist",
            object_type.to_string().to_lowercase()
        ),
        Sql::ShowColumns { .. } => "`show columns` is not supported: use `describe table`".into(),
        other => {
            let text = other.to_string();
            let start: Vec<&str> = text.split_whitespace().take(2).collect();
            format!("`{}` is not supported", start.join(" ").to_lowercase())
        }
    }
}
