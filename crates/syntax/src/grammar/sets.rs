//! Where functions that give several rows may stand: in the select list, in `order by` and `group by`, and in `from`.
//!
//! They are all calls of `unnest` here. Elsewhere the planner would refuse them in words of its own, or, within `case`, give
//! rows for branches that are not taken.

use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{
    Expr, Function, FunctionArguments, Join, JoinConstraint, JoinOperator, LimitClause, Query,
    Select, SetExpr, Statement, Visit,
};

use crate::names::column_name;
use crate::outside::seen_outside_queries;

/// Whether a call gives several rows.
fn is_set(function: &Function) -> bool {
    match &function.name.0[..] {
        [part] => part
            .as_ident()
            .is_some_and(|name| column_name(name) == "unnest"),
        _ => false,
    }
}

/// Whether a call that gives several rows stands in `tree`, outside of subqueries.
pub(super) fn is_in(tree: &impl Visit) -> bool {
    let found = seen_outside_queries(tree, |_, expr| match expr {
        Expr::Function(function) if is_set(function) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    found.is_break()
}

fn none_in(tree: &impl Visit, clause: &str) -> Result<()> {
    if is_in(tree) {
        return Err(Error::unsupported(format!(
            "set-returning functions are not allowed in {clause}"
        )));
    }
    Ok(())
}

/// Checks the clauses of a `select`.
pub(super) fn select(select: &Select) -> Result<()> {
    none_in(&select.selection, "WHERE")?;
    none_in(&select.having, "HAVING")?;
    none_in(&select.qualify, "QUALIFY")?;
    let joins = select.from.iter().flat_map(|table| &table.joins);
    joins
        .filter_map(condition)
        .try_for_each(|on| none_in(on, "JOIN conditions"))
}

fn condition(join: &Join) -> Option<&Expr> {
    use JoinOperator::{FullOuter, Inner, Join, Left, LeftOuter, Right, RightOuter};
    match &join.join_operator {
        Join(JoinConstraint::On(on))
        | Inner(JoinConstraint::On(on))
        | Left(JoinConstraint::On(on))
        | LeftOuter(JoinConstraint::On(on))
        | Right(JoinConstraint::On(on))
        | RightOuter(JoinConstraint::On(on))
        | FullOuter(JoinConstraint::On(on)) => Some(on),
        _ => None,
    }
}

/// Checks the clauses around a query, and the rows of `values`.
pub(super) fn query(query: &Query) -> Result<()> {
    match &query.limit_clause {
        Some(LimitClause::LimitOffset { limit, offset, .. }) => {
            none_in(limit, "LIMIT")?;
            none_in(
                &offset.as_ref().map(|offset| &offset.value).cloned(),
                "OFFSET",
            )?;
        }
        Some(LimitClause::OffsetCommaLimit { offset, limit }) => {
            none_in(limit, "LIMIT")?;
            none_in(offset, "OFFSET")?;
        }
        None => {}
    }
    match query.body.as_ref() {
        SetExpr::Values(values) => values
            .rows
            .iter()
            .try_for_each(|row| none_in(row, "VALUES")),
        _ => Ok(()),
    }
}

/// Checks the clauses of statements that change rows.
pub(super) fn statement(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Update(update) => {
            let mut values = update.assignments.iter().map(|set| &set.value);
            values.try_for_each(|value| none_in(value, "UPDATE"))?;
            none_in(&update.selection, "WHERE")
        }
        Statement::Delete(delete) => none_in(&delete.selection, "WHERE"),
        _ => Ok(()),
    }
}

/// Checks what stands in an expression.
pub(super) fn expr(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Case { .. } => none_in(expr, "CASE"),
        Expr::Function(function) => {
            none_in(&function.filter, "FILTER")?;
            let name = match &function.name.0[..] {
                [part] => part.as_ident().map(column_name),
                _ => None,
            };
            if name.as_deref() == Some("coalesce") {
                none_in(&function.args, "COALESCE")?;
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Whether the arguments of a call have a call in them that gives several rows.
pub fn is_in_arguments(function: &Function) -> bool {
    matches!(&function.args, FunctionArguments::List(list) if is_in(list))
}
