//! `default` in the place of a value.

use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Insert, SetExpr, Statement as Sql, Update, Value,
};
use table::Definition;

use crate::error::{Error, Result};
use crate::frontend::expression::expression;
use crate::frontend::parse::{Statement, parse};
use crate::names::column_name;

/// Writes the defaults of the table into an `insert` that says `default`, or `default values`. `named` are the columns
/// that its rows have.
///
/// # Errors
/// Those of reading the defaults.
pub(crate) fn fill_insert(
    statement: &mut Insert,
    definition: &Definition,
    named: &[String],
) -> Result<()> {
    if statement.source.is_none() {
        statement.source = Some(one_row(named.len())?);
    }
    let Some(source) = &mut statement.source else {
        return Ok(());
    };
    if let SetExpr::Values(values) = source.body.as_mut() {
        for row in &mut values.rows {
            for (value, column) in row.content.iter_mut().zip(named) {
                fill(value, definition, column)?;
            }
        }
    }
    Ok(())
}

/// The same for `set column = default`; the names of columns have been folded.
///
/// # Errors
/// Those of reading the defaults.
pub(crate) fn fill_update(statement: &mut Update, definition: &Definition) -> Result<()> {
    for assignment in &mut statement.assignments {
        let column = assignment.target.to_string();
        fill(&mut assignment.value, definition, column.trim_matches('"'))?;
    }
    Ok(())
}

fn fill(value: &mut Expr, definition: &Definition, column: &str) -> Result<()> {
    let is_default = matches!(
        value,
        Expr::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default")
    );
    if !is_default {
        return Ok(());
    }
    let column = definition.columns.iter().find(|c| c.name == column);
    *value = match column.and_then(|column| column.default.as_deref()) {
        Some(text) => expression(text)?,
        None => Expr::Value(Value::Null.with_empty_span()),
    };
    Ok(())
}

/// `values (default, ...)`.
fn one_row(columns: usize) -> Result<Box<datafusion::sql::sqlparser::ast::Query>> {
    let row = vec!["default"; columns].join(", ");
    let mut parsed = parse(&format!("values ({row})"))?;
    if let Some(Statement::Sql(statement)) = parsed.pop().map(|parsed| parsed.statement)
        && let Sql::Query(query) = *statement
    {
        return Ok(query);
    }
    Err(Error::Defect {
        message: "a row of defaults does not parse".into(),
    })
}

/// The columns that the rows of an `insert` have.
pub(crate) fn named(statement: &Insert, definition: &Definition) -> Vec<String> {
    match statement.columns.as_slice() {
        [] => definition.columns.iter().map(|c| c.name.clone()).collect(),
        columns => {
            let last = |name: &datafusion::sql::sqlparser::ast::ObjectName| {
                let ident = name.0.last().and_then(|part| part.as_ident());
                ident.map_or_else(|| name.to_string(), column_name)
            };
            columns.iter().map(last).collect()
        }
    }
}
