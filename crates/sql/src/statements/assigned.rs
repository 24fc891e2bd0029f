//! The columns that an `insert` and an `update` assign.

use std::cmp::Ordering;

use sqlparser::ast::{
    AssignmentTarget, Expr, Ident, Insert, ObjectNamePart, SelectItem, SetExpr, TableFactor,
    TableWithJoins, Update,
};
use syntax::grammar;
use syntax::names::{base, column_name};

use crate::error::{Error, Result};

/// What an `update` calls the table that it changes.
pub(crate) fn called(table: &TableWithJoins) -> Option<String> {
    match &table.relation {
        TableFactor::Table {
            alias: Some(alias), ..
        } => Some(column_name(&alias.name)),
        TableFactor::Table { name, .. } => {
            let last = name.0.last().and_then(ObjectNamePart::as_ident);
            last.map(|ident| base(&column_name(ident)).to_owned())
        }
        _ => None,
    }
}

/// Folds the names of assigned columns to lower case, which DataFusion does not do.
///
/// # Errors
/// If a column is assigned twice, or several at once, or only a part of one.
pub(crate) fn fold_targets(statement: &mut Update) -> Result<()> {
    let own = called(&statement.table);
    for assignment in &mut statement.assignments {
        let AssignmentTarget::ColumnName(name) = &mut assignment.target else {
            return Err(Error::unsupported(
                "`set (a, b) = ...` is not supported: assign each column by itself",
            ));
        };
        grammar::assigned(name, own.as_deref())?;
        if let Some(ObjectNamePart::Identifier(ident)) = name.0.last_mut() {
            ident.value = column_name(ident);
        }
    }
    let mut names: Vec<String> = statement
        .assignments
        .iter()
        .map(|a| a.target.to_string())
        .collect();
    names.sort();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Error::coded(
            "42601",
            format!("column {} is assigned twice", pair[0]),
        )),
        None => Ok(()),
    }
}

/// Whether a value is the word `default`.
pub(crate) fn is_default(value: &Expr) -> bool {
    matches!(
        value,
        Expr::Identifier(Ident { value, quote_style: None, .. }) if value.eq_ignore_ascii_case("default")
    )
}

/// That the rows of an `insert` have as many values as it has columns; where it names none, they may have fewer.
///
/// # Errors
/// As PostgreSQL says it.
pub(crate) fn counts(statement: &Insert, columns: usize, named: bool) -> Result<()> {
    let Some(source) = &statement.source else {
        return Ok(());
    };
    let single = |item: &SelectItem| {
        matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    let width = match source.body.as_ref() {
        SetExpr::Values(values) => {
            let mut widths = values.rows.iter().map(|row| row.content.len());
            let first = widths.next().unwrap_or_default();
            if widths.any(|width| width != first) {
                return Err(Error::coded(
                    "42601",
                    "VALUES lists must all be the same length",
                ));
            }
            first
        }
        SetExpr::Select(select) if select.projection.iter().all(single) => select.projection.len(),
        _ => return Ok(()),
    };
    let what = match width.cmp(&columns) {
        Ordering::Greater => "more expressions than target columns",
        Ordering::Less if named => "more target columns than expressions",
        _ => return Ok(()),
    };
    Err(Error::coded("42601", format!("INSERT has {what}")))
}
