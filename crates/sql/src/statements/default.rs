//! `default` in the place of a value.

use std::borrow::Cow;

use sqlparser::ast::{
    AssignmentTarget, Expr, Ident, Insert, ObjectName, Query, SelectItem, SetExpr,
    Statement as Sql, Update, Value,
};
use syntax::constant::Constant;
use syntax::expression::{around, expression, written};
use syntax::names::column_name;
use syntax::overriding::{Overriding, overriding};
use table::{Column, Definition, Generated};

use crate::error::{Error, Result};
use crate::functions::lists::types::is_special;
use crate::messages::types::exact_name;
use crate::run::context::StatementContext;
use crate::run::defaults::text_of;
use crate::statements::assigned::{counts, is_default};
use crate::statements::ways;

/// Writes the defaults of the table into an `insert` that says `default`, or `default values`; leaves out the columns
/// whose values the statement may not bring. Returns the columns that its rows have then.
///
/// # Errors
/// If it brings such a value; those of reading the defaults.
pub(crate) async fn fill_insert(
    context: &StatementContext,
    statement: &mut Insert,
    definition: &Definition,
) -> Result<Vec<String>> {
    let overriding = overriding(statement);
    let definition = &*context.with_domain_defaults(definition);
    statement.partitioned = None;
    ways::of_insert(statement, definition)?;
    let mut named = named(statement, definition);
    counts(statement, named.len(), !statement.columns.is_empty())?;
    if statement.source.is_none() {
        statement.source = Some(one_row(named.len())?);
    }
    let special = definition.columns.iter().any(|c| c.generated.is_some());
    if statement.columns.is_empty() {
        let width = width(context, statement, special).await?;
        if let Some(width) = width.filter(|width| *width < named.len()) {
            named.truncate(width);
            statement.columns = named.iter().map(|name| column(name)).collect();
        }
    }
    if special {
        let (kept, left) = chosen(statement, definition, &named, overriding)?;
        if kept.len() < named.len() {
            leave_out(statement, definition, &named, &kept)?;
            named = left;
            statement.columns = named.iter().map(|name| column(name)).collect();
        }
    }
    if let Some(source) = &mut statement.source
        && let SetExpr::Values(values) = source.body.as_mut()
    {
        for row in &mut values.rows {
            for (value, column) in row.content.iter_mut().zip(&named) {
                fill(value, definition, column)?;
                typed(value, definition, column)?;
            }
        }
    } else {
        typed_query(statement, definition, &named)?;
    }
    Ok(named)
}

/// Casts the value of a column whose type the planner does not cast to by itself.
fn typed(value: &mut Expr, definition: &Definition, column: &str) -> Result<()> {
    let own = definition.columns.iter().find(|own| own.name == column);
    if let Some(own) = own.filter(|own| is_special(&own.data_type))
        && Constant::of(value) != Some(Constant::Null)
    {
        let cast = format!("cast(null as {})", exact_name(&own.data_type));
        let mut cast = expression(&cast)?;
        if let Expr::Nested(inner) = &mut cast
            && let Expr::Cast { expr, .. } = inner.as_mut()
        {
            std::mem::swap(&mut **expr, value);
            *value = cast;
        }
    }
    Ok(())
}

/// The same for the columns of a query whose rows are inserted.
fn typed_query(statement: &mut Insert, definition: &Definition, named: &[String]) -> Result<()> {
    let own = |name: &String| definition.columns.iter().find(|own| own.name == *name);
    let special = |name: &String| own(name).filter(|own| is_special(&own.data_type));
    let Some(source) = &mut statement.source else {
        return Ok(());
    };
    if !named.iter().any(|name| special(name).is_some()) {
        return Ok(());
    }
    let items = named
        .iter()
        .enumerate()
        .map(|(at, name)| match special(name) {
            Some(own) => format!("cast(\"c{at}\" as {})", exact_name(&own.data_type)),
            None => format!("\"c{at}\""),
        });
    let items: Vec<String> = items.collect();
    let all: Vec<String> = (0..named.len()).map(|at| format!("\"c{at}\"")).collect();
    around(source, &items, &all)
}

fn column(name: &str) -> ObjectName {
    ObjectName::from(vec![Ident::with_quote('"', name)])
}

/// How many values the rows of an `insert` have; `None` where that need not be known.
async fn width(
    context: &StatementContext,
    statement: &Insert,
    special: bool,
) -> Result<Option<usize>> {
    let Some(source) = &statement.source else {
        return Ok(None);
    };
    match source.body.as_ref() {
        SetExpr::Values(values) => Ok(values.rows.first().map(|row| row.content.len())),
        SetExpr::Select(select) if !special && !select.projection.iter().any(is_wildcard) => {
            Ok(Some(select.projection.len()))
        }
        _ if special || statement.columns.is_empty() => {
            let plan = context.plan(Sql::Query(source.clone()), None).await?;
            Ok(Some(plan.schema().fields().len()))
        }
        _ => Ok(None),
    }
}

/// Whether an item of a select list may be several columns.
fn is_wildcard(item: &SelectItem) -> bool {
    !matches!(
        item,
        SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
    )
}

/// Which of the columns `named` the rows bring after all: their places, and their names.
fn chosen(
    statement: &Insert,
    definition: &Definition,
    named: &[String],
    overriding: Option<Overriding>,
) -> Result<(Vec<usize>, Vec<String>)> {
    let (mut kept, mut left) = (Vec::new(), Vec::new());
    for (at, name) in named.iter().enumerate() {
        let mut columns = definition.columns.iter();
        let own = columns.find(|c| c.name == *name);
        let brings = match own {
            Some(own) => brings(own, overriding, || only_defaults(statement, at))?,
            None => true,
        };
        if brings {
            kept.push(at);
            left.push(name.clone());
        }
    }
    if left.is_empty()
        && let Some(first) = named.first()
    {
        // An `insert` has at least one column.
        left.push(first.clone());
    }
    Ok((kept, left))
}

/// Whether a column gets the value that a row brings for it, and not its own.
///
/// # Errors
/// If the row must not bring one.
pub(crate) fn is_brought(
    column: &Column,
    overriding: Option<Overriding>,
    value: &Expr,
) -> Result<bool> {
    brings(column, overriding, || is_default(value))
}

/// The same for rows of which `is_default` says whether they have no value for it.
fn brings(
    column: &Column,
    overriding: Option<Overriding>,
    is_default: impl Fn() -> bool,
) -> Result<bool> {
    let name = &column.name;
    let reason = match (&column.generated, overriding) {
        (None, _) | (Some(Generated::Identity { .. }), Some(Overriding::System)) => {
            return Ok(true);
        }
        (Some(Generated::Identity { .. }), Some(Overriding::User)) => return Ok(false),
        (Some(Generated::Identity { always: false, .. }), None) => return Ok(true),
        (Some(Generated::Identity { .. }), None) => {
            "an identity column defined as GENERATED ALWAYS. Use OVERRIDING SYSTEM VALUE to override."
        }
        (Some(Generated::Stored { .. }), _) => "a generated column.",
    };
    if is_default() {
        return Ok(false);
    }
    Err(Error::coded(
        "428C9",
        format!(
            "cannot insert a non-DEFAULT value into column \"{name}\": Column \"{name}\" is {reason}"
        ),
    ))
}

/// Whether all rows have `default` in the place `at`.
fn only_defaults(statement: &Insert, at: usize) -> bool {
    let body = statement.source.as_ref().map(|source| source.body.as_ref());
    match body {
        Some(SetExpr::Values(values)) => values
            .rows
            .iter()
            .all(|row| row.content.get(at).is_some_and(is_default)),
        _ => false,
    }
}

/// Leaves the columns out of the rows that are not among the places `kept`; if there are none, the first has its
/// default.
fn leave_out(
    statement: &mut Insert,
    definition: &Definition,
    named: &[String],
    kept: &[usize],
) -> Result<()> {
    let Some(source) = &mut statement.source else {
        return Ok(());
    };
    if let SetExpr::Values(values) = source.body.as_mut() {
        for row in &mut values.rows {
            let mut at = 0..;
            row.content
                .retain(|_| at.next().is_some_and(|at| kept.contains(&at)));
            if kept.is_empty() {
                row.content.push(Expr::Identifier(Ident::new("default")));
            }
        }
        return Ok(());
    }
    let quoted = |at: usize| format!("\"c{at}\"");
    let mut items: Vec<String> = kept.iter().map(|at| quoted(*at)).collect();
    if let (true, Some(first)) = (items.is_empty(), named.first()) {
        items.extend(text_in(definition, first).map(Cow::into_owned));
    }
    if items.is_empty() {
        items.push("null".into());
    }
    let all: Vec<String> = (0..named.len()).map(quoted).collect();
    around(source, &items, &all)
}

/// Writes the default in the place of `default` in `set column = default`; the names of columns have been folded.
///
/// # Errors
/// If a column is assigned that may not be; those of reading the defaults.
pub(crate) fn fill_update(statement: &mut Update, definition: &Definition) -> Result<()> {
    for assignment in &mut statement.assignments {
        let column = match &assignment.target {
            AssignmentTarget::ColumnName(name) => name.0.last().and_then(|part| part.as_ident()),
            AssignmentTarget::Tuple(_) => None,
        };
        if let Some(column) = column.map(|column| column.value.clone()) {
            assign(&mut assignment.value, definition, &column)?;
        }
    }
    Ok(())
}

/// Writes the default of a column in the place of `default` that is assigned to it.
///
/// # Errors
/// If anything else is assigned to a column that may not be; those of reading the default.
pub(crate) fn assign(value: &mut Expr, definition: &Definition, column: &str) -> Result<()> {
    let own = definition.columns.iter().find(|c| c.name == column);
    let reason = match own.and_then(|own| own.generated.as_ref()) {
        Some(Generated::Stored { .. }) => "is a generated column",
        Some(Generated::Identity { always: true, .. }) => {
            "is an identity column defined as GENERATED ALWAYS"
        }
        _ => {
            fill(value, definition, column)?;
            return typed(value, definition, column);
        }
    };
    if !is_default(value) {
        return Err(Error::coded(
            "428C9",
            format!(
                "column \"{column}\" can only be updated to DEFAULT: Column \"{column}\" {reason}."
            ),
        ));
    }
    fill(value, definition, column)
}

fn text_in<'d>(definition: &'d Definition, column: &str) -> Option<Cow<'d, str>> {
    let mut columns = definition.columns.iter();
    columns.find(|c| c.name == column).and_then(text_of)
}

/// Writes the default of a column in the place of `default`.
///
/// # Errors
/// Those of reading it.
pub(crate) fn fill(value: &mut Expr, definition: &Definition, column: &str) -> Result<()> {
    if is_default(value) {
        *value = match text_in(definition, column) {
            Some(text) => expression(&text)?,
            None => Expr::Value(Value::Null.with_empty_span()),
        };
    }
    Ok(())
}

/// `values (default, ...)`.
fn one_row(columns: usize) -> Result<Box<Query>> {
    let row = vec!["default"; columns].join(", ");
    written(&format!("values ({row})"))
}

/// The columns that the rows of an `insert` have.
fn named(statement: &Insert, definition: &Definition) -> Vec<String> {
    match statement.columns.as_slice() {
        [] => definition.columns.iter().map(|c| c.name.clone()).collect(),
        columns => {
            let last = |name: &sqlparser::ast::ObjectName| {
                let ident = name.0.last().and_then(|part| part.as_ident());
                ident.map_or_else(|| name.to_string(), column_name)
            };
            columns.iter().map(last).collect()
        }
    }
}
