//! Expressions from the texts that tables [keep](crate::kept), and queries from texts of this program.

use messages::{Error, Result};
use sqlparser::ast::{Expr, Query, SelectItem, SetExpr, Statement as Sql, TableFactor};

use crate::parse::{Statement, parse};

/// `select text`.
///
/// # Errors
/// If the text is not one expression.
pub fn query(text: &str) -> Result<Box<Query>> {
    let mut statements = parse(&format!("select {text}"))?;
    if let (Some(parsed), true) = (statements.pop(), statements.is_empty())
        && let Statement::Sql(statement) = parsed.statement
        && let Sql::Query(query) = *statement
        && let SetExpr::Select(select) = query.body.as_ref()
        && let ([_], []) = (&select.projection[..], &select.from[..])
    {
        return Ok(query);
    }
    Err(Error::coded(
        "42601",
        format!("{text}: expected one expression"),
    ))
}

/// The expression of a text, to stand in a statement that is planned.
///
/// # Errors
/// As [`query`].
pub fn expression(text: &str) -> Result<Expr> {
    let mut query = query(text)?;
    if let SetExpr::Select(select) = query.body.as_mut()
        && let Some(SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. }) =
            select.projection.pop()
    {
        return Ok(Expr::Nested(Box::new(expr)));
    }
    Err(Error::coded(
        "42601",
        format!("{text}: expected one expression"),
    ))
}

/// A query that the program has written itself.
///
/// # Errors
/// If it is none: a defect.
pub fn written(text: &str) -> Result<Box<Query>> {
    let mut parsed = parse(text)?;
    if let Some(Statement::Sql(statement)) = parsed.pop().map(|parsed| parsed.statement)
        && let Sql::Query(query) = *statement
    {
        return Ok(query);
    }
    Err(Error::Defect {
        message: format!("{text}: expected a query"),
    })
}

/// Puts a query around `rows` that computes `items` from their columns, which it calls `columns`. Both are texts that the
/// program has written itself.
///
/// # Errors
/// If they are none of a query: a defect.
pub fn around(rows: &mut Box<Query>, items: &[String], columns: &[String]) -> Result<()> {
    let text = format!(
        "select {} from (select 1) as rows ({})",
        items.join(", "),
        columns.join(", ")
    );
    let mut outer = written(&text)?;
    if let SetExpr::Select(select) = outer.body.as_mut()
        && let Some(from) = select.from.first_mut()
        && let TableFactor::Derived { subquery, .. } = &mut from.relation
    {
        std::mem::swap(subquery, rows);
        *rows = outer;
        return Ok(());
    }
    Err(Error::Defect {
        message: format!("{text}: expected a query of rows"),
    })
}
