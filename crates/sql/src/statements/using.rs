//! `delete from t using u where ...`: the rows of `t` that the condition holds for with any rows of `u`.

use datafusion_execution::SendableRecordBatchStream;
use datafusion_expr::LogicalPlan;
use sqlparser::ast::{
    Delete, Expr, FromTable, Ident, ObjectName, SelectItem, SetExpr, Statement as Sql, TableFactor,
    TableWithJoins,
};
use syntax::parse::{Statement, parse};
use table::ROW_COLUMN;

use crate::error::{Error, Result};
use crate::run::context::StatementContext;
use crate::run::query;

/// The ids of the rows that are to be deleted; one may come several times.
///
/// # Errors
/// Those of the query that is made of the statement.
pub(super) async fn rows(
    context: &mut StatementContext,
    statement: Delete,
    target: &str,
) -> Result<SendableRecordBatchStream> {
    named_rows(context, statement, target, &[]).await
}

/// Whether a `delete` calls its table otherwise, which the planner does not know in its condition.
pub(super) fn is_aliased(statement: &Delete) -> bool {
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = &statement.from;
    let mut tables = from.iter().map(|from| &from.relation);
    tables.any(|table| matches!(table, TableFactor::Table { alias: Some(_), .. }))
}

/// The same with these columns of the table before the ids.
///
/// # Errors
/// As [`rows`].
pub(super) async fn named_rows(
    context: &mut StatementContext,
    statement: Delete,
    target: &str,
    columns: &[&str],
) -> Result<SendableRecordBatchStream> {
    let plan = planned(context, statement, target, columns).await?;
    query::rows_to_write(context, &plan).await
}

/// The plan of these rows.
///
/// # Errors
/// Those of planning it.
pub(super) async fn planned(
    context: &StatementContext,
    statement: Delete,
    target: &str,
    columns: &[&str],
) -> Result<LogicalPlan> {
    let query = joined(statement, columns)?;
    context.plan(query, Some(target)).await
}

/// `select t.a, t.row from t, u where ...`.
fn joined(statement: Delete, columns: &[&str]) -> Result<Sql> {
    let lost = || Error::Defect {
        message: "a `delete ... using` has no table".into(),
    };
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = statement.from;
    let of_table = match from.first() {
        Some(TableWithJoins {
            relation: TableFactor::Table { name, alias, .. },
            ..
        }) => called(name, alias.as_ref().map(|alias| &alias.name)),
        _ => return Err(lost()),
    };
    let mut all = parse("select 1")?;
    let Some(Statement::Sql(sql)) = all.pop().map(|parsed| parsed.statement) else {
        return Err(lost());
    };
    let Sql::Query(mut query) = *sql else {
        return Err(lost());
    };
    let SetExpr::Select(select) = query.body.as_mut() else {
        return Err(lost());
    };
    let names = columns.iter().copied().chain([ROW_COLUMN]);
    let items = names.map(|name| {
        let mut parts = of_table.clone();
        parts.push(Ident::with_quote('"', name));
        SelectItem::UnnamedExpr(Expr::CompoundIdentifier(parts))
    });
    select.projection = items.collect();
    select.from = from;
    select.from.extend(statement.using.into_iter().flatten());
    select.selection = statement.selection;
    Ok(Sql::Query(query))
}

/// What stands before the columns of the table of that name, or alias.
fn called(name: &ObjectName, alias: Option<&Ident>) -> Vec<Ident> {
    match alias {
        Some(alias) => vec![alias.clone()],
        None => name
            .0
            .iter()
            .filter_map(|part| part.as_ident().cloned())
            .collect(),
    }
}
