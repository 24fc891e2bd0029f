//! Which function runs which statement, and why some statements are refused.

use std::sync::Arc;
use std::time::Instant;

use datafusion::sql::sqlparser::ast::{ObjectType, Statement as Sql};

use crate::error::{Error, Result};
use crate::frontend::parse::Statement;
use crate::names::table_name;
use crate::run::answer::Answer;
use crate::run::context::StatementContext;
use crate::run::instance::Instance;
use crate::run::query;
use crate::statements::{copy, ddl, dml, explain, show};

/// Runs one statement.
pub(crate) async fn run(
    instance: Arc<Instance>,
    statement: Statement,
    started: Instant,
) -> Result<Answer> {
    match statement {
        Statement::Sql(sql) => run_sql(&instance, *sql, started).await,
        Statement::Explain {
            analyze,
            verbose,
            statement,
        } => explain::explain(&instance, *statement, analyze, verbose, started).await,
        Statement::CopyTo(copy) => copy::to(&instance, copy, started).await,
        Statement::CopyFrom(copy) => copy::from(&instance, copy, started).await,
    }
}

async fn run_sql(instance: &Arc<Instance>, statement: Sql, started: Instant) -> Result<Answer> {
    match statement {
        Sql::Query(_) => query::run(instance, statement, started).await,
        Sql::Insert(insert) => dml::insert(instance, insert, started).await,
        Sql::Delete(delete) => dml::delete(instance, delete, started).await,
        Sql::Update(update) => dml::update(instance, update, started).await,
        Sql::CreateTable(create) => ddl::create(instance, create, started).await,
        Sql::Truncate(truncate) => {
            let names = truncate
                .table_names
                .into_iter()
                .map(|target| target.name)
                .collect();
            ddl::truncate(instance, names, started).await
        }
        Sql::Drop {
            object_type: ObjectType::Table,
            if_exists,
            names,
            cascade: false,
            temporary: false,
            ..
        } => ddl::drop(instance, names, if_exists, started).await,
        Sql::ShowTables { .. } => show::show_tables(&context(instance, started)?),
        Sql::ExplainTable {
            table_name: name, ..
        } => show::describe(&context(instance, started)?, &table_name(&name)?),
        other => Err(Error::unsupported(refusal(&other))),
    }
}

fn context(instance: &Arc<Instance>, started: Instant) -> Result<StatementContext> {
    StatementContext::new(instance, &instance.store.snapshot(), started)
}

/// Why a statement is not supported, and what to do instead.
fn refusal(statement: &Sql) -> String {
    match statement {
        Sql::StartTransaction { .. } | Sql::Commit { .. } | Sql::Rollback { .. } | Sql::Savepoint { .. } => {
            "transactions of several statements are not supported: each statement is a transaction of its own, done or undone as a whole".into()
        }
        Sql::CreateView { .. } => "views are not supported: use a `with` clause, or `create table ... as`".into(),
        Sql::CreateIndex(_) => "indexes are not supported, and not needed: scans skip what statistics rule out".into(),
        Sql::AlterTable(_) => "`alter table` is not supported: use `create table new as select ...` and drop the old one".into(),
        Sql::Merge(_) => "`merge` is not supported: use `update`, `delete` and `insert`".into(),
        Sql::Set(_) | Sql::ShowVariable { .. } => {
            "settings are not supported: options are given when the database is opened".into()
        }
        Sql::Drop { object_type: ObjectType::Table, .. } => "`drop table` takes no `cascade`: drop the tables that refer to it first".into(),
        Sql::Drop { object_type, .. } => format!("there is no {} to drop: only tables exist", object_type.to_string().to_lowercase()),
        Sql::ShowColumns { .. } => "`show columns` is not supported: use `describe table`".into(),
        other => {
            let text = other.to_string();
            let start: Vec<&str> = text.split_whitespace().take(2).collect();
            format!("`{}` is not supported", start.join(" ").to_lowercase())
        }
    }
}
