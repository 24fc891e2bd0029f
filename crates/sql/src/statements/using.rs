//! `delete from t using u where ...`: the rows of `t` that the condition holds for with any rows of `u`.

use datafusion::execution::SendableRecordBatchStream;
use datafusion::physical_plan::execute_stream;
use datafusion::sql::sqlparser::ast::{
    Delete, Expr, FromTable, Ident, ObjectName, SelectItem, SetExpr, Statement as Sql, TableFactor,
    TableWithJoins,
};
use table::ROW_COLUMN;

use crate::error::{Error, Result};
use crate::frontend::parse::{Statement, parse};
use crate::run::context::StatementContext;

/// The ids of the rows that are to be deleted; one may come several times.
///
/// # Errors
/// Those of the query that is made of the statement.
pub(super) async fn rows(
    context: &mut StatementContext,
    statement: Delete,
    target: &str,
) -> Result<SendableRecordBatchStream> {
    let plan = context.plan(joined(statement)?, Some(target)).await?;
    let plan = context.with_ctes(&plan).await?;
    let physical = context.physical(&plan).await?;
    context.clock.planned();
    Ok(execute_stream(physical, context.task())?)
}

/// `select t.row from t, u where ...`.
fn joined(statement: Delete) -> Result<Sql> {
    let lost = || Error::Defect {
        message: "a `delete ... using` has no table".into(),
    };
    let (FromTable::WithFromKeyword(from) | FromTable::WithoutKeyword(from)) = statement.from;
    let row = match from.first() {
        Some(TableWithJoins {
            relation: TableFactor::Table { name, alias, .. },
            ..
        }) => row_of(name, alias.as_ref().map(|alias| &alias.name)),
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
    select.projection = vec![SelectItem::UnnamedExpr(row)];
    select.from = from;
    select.from.extend(statement.using.into_iter().flatten());
    select.selection = statement.selection;
    Ok(Sql::Query(query))
}

/// The number of a row of the table that the statement calls `name`, or by an alias.
fn row_of(name: &ObjectName, alias: Option<&Ident>) -> Expr {
    let mut parts: Vec<Ident> = match alias {
        Some(alias) => vec![alias.clone()],
        None => name
            .0
            .iter()
            .filter_map(|part| part.as_ident().cloned())
            .collect(),
    };
    parts.push(Ident::with_quote('"', ROW_COLUMN));
    Expr::CompoundIdentifier(parts)
}
