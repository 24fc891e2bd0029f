//! `default` in the place of a value.

use arrow::array::RecordBatch;
use datafusion::sql::sqlparser::ast::{
    Expr, Ident, Insert, Query, SetExpr, Statement as Sql, Update, Value,
};
use table::{Column, Definition};

use crate::error::{Error, Result};
use crate::frontend::constant::Constant;
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

/// Writes the default of a column in the place of `default`.
///
/// # Errors
/// Those of reading it.
pub(crate) fn fill(value: &mut Expr, definition: &Definition, column: &str) -> Result<()> {
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
fn one_row(columns: usize) -> Result<Box<Query>> {
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

/// The rows of an `insert` of constants, in the columns of the table; none if something has to be planned.
pub(crate) fn constants(
    statement: &Insert,
    definition: &Definition,
    named: &[String],
) -> Option<RecordBatch> {
    let source = statement.source.as_ref()?;
    let SetExpr::Values(values) = source.body.as_ref() else {
        return None;
    };
    let Query {
        with: None,
        order_by: None,
        limit_clause: None,
        fetch: None,
        ..
    } = source.as_ref()
    else {
        return None;
    };
    let rows = values.rows.iter().map(|row| {
        let values = row.content.iter().map(Constant::of);
        values.collect::<Option<Vec<_>>>()
    });
    let rows = rows.collect::<Option<Vec<_>>>()?;
    let known = |name: &String| definition.position(name).is_ok();
    let twice = |at: usize| named[..at].contains(&named[at]);
    if rows.iter().any(|row| row.len() != named.len())
        || !named.iter().all(known)
        || (0..named.len()).any(twice)
    {
        return None;
    }
    let column = |column: &Column| {
        let values: Vec<Constant<'_>> = match named.iter().position(|name| *name == column.name) {
            Some(at) => rows.iter().map(|row| row[at]).collect(),
            None if column.default.is_none() => vec![Constant::Null; rows.len()],
            None => return None,
        };
        Constant::column(&values, &column.data_type)
    };
    let columns = definition.columns.iter().map(column);
    let names = definition.columns.iter().map(|column| &column.name);
    let columns = names.zip(columns.collect::<Option<Vec<_>>>()?);
    let columns = columns.map(|(name, values)| (name, values, true));
    RecordBatch::try_from_iter_with_nullable(columns).ok()
}
