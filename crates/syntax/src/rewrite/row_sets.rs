//! `(a, b) in (select c, d ...)`: a row that is looked for among those of a subquery.
//!
//! Two rows are equal if all their values are, differ if some differ, and otherwise nobody knows, as some are NULL. So `in` is
//! true if a row of the subquery is equal, else NULL if there is one that may be, else false. In a condition that keeps rows, NULL
//! is as good as false: there the first half is enough, which is a semi-join.

use std::ops::ControlFlow;

use messages::{Error, Result};
use sqlparser::ast::{
    BinaryOperator, Expr, Query, Select, SetExpr, TableFactor, UnaryOperator, VisitorMut,
};

use crate::flow::flow;
use crate::names::column_name;
use crate::rewrite::composed;
use crate::walk::WalkMut;

/// Makes conditions over single values of them.
pub(super) struct RowSets;

impl VisitorMut for RowSets {
    type Break = Box<Error>;

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Box<Error>> {
        match &mut select.selection {
            Some(condition) => flow(kept(condition)),
            None => ControlFlow::Continue(()),
        }
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Box<Error>> {
        flow(replace(expr, false))
    }
}

/// The same in the parts of a condition that all must be true.
fn kept(condition: &mut Expr) -> Result<()> {
    match condition {
        Expr::BinaryOp {
            left,
            op: BinaryOperator::And,
            right,
        } => {
            kept(left)?;
            kept(right)
        }
        Expr::Nested(inner) => kept(inner),
        part => replace(part, true),
    }
}

fn replace(expr: &mut Expr, only_true: bool) -> Result<()> {
    let Expr::InSubquery {
        expr: left,
        subquery,
        negated,
    } = expr
    else {
        return Ok(());
    };
    let row = match left.as_mut() {
        Expr::Tuple(row) => row,
        Expr::Nested(inner) => match inner.as_mut() {
            Expr::Tuple(row) => row,
            _ => return Ok(()),
        },
        _ => return Ok(()),
    };
    let (row, negated) = (std::mem::take(row), *negated);
    let rows = Box::new(subquery.as_ref().clone());
    let mut made = composed::expression(&text(row.len(), only_true && !negated))?;
    let mut parts = Parts { row: &row, rows };
    let _ = made.walk_mut(&mut parts);
    *expr = if negated {
        Expr::UnaryOp {
            op: UnaryOperator::Not,
            expr: Box::new(made),
        }
    } else {
        made
    };
    Ok(())
}

/// What the subquery is called.
const ROWS: &str = "rows that are searched";
/// What the names of the values of the row begin with.
const VALUE: &str = "value that is searched ";

/// The condition, with names in the places of the values of a row and of the subquery.
fn text(values: usize, only_true: bool) -> String {
    let all = 1..=values;
    let columns: Vec<String> = all.clone().map(|at| format!("\"column {at}\"")).collect();
    let equal: Vec<String> = all
        .clone()
        .map(|at| format!("\"{ROWS}\".\"column {at}\" = \"{VALUE}{at}\""))
        .collect();
    let exists = |condition: &str| {
        format!(
            "exists (select 1 from (select 1) as \"{ROWS}\" ({}) where {condition})",
            columns.join(", ")
        )
    };
    let is_equal = exists(&equal.join(" and "));
    if only_true {
        return is_equal;
    }
    let may_be: Vec<String> = equal
        .iter()
        .map(|equal| format!("({equal}) is not false"))
        .collect();
    let may_be = exists(&may_be.join(" and "));
    format!("case when {is_equal} then true when {may_be} then null::boolean else false end")
}

/// Puts the values and the subquery in their places.
struct Parts<'r> {
    row: &'r [Expr],
    rows: Box<Query>,
}

impl VisitorMut for Parts<'_> {
    type Break = ();

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<()> {
        if let TableFactor::Derived {
            subquery,
            alias: Some(alias),
            ..
        } = factor
            && column_name(&alias.name) == ROWS
            && !matches!(subquery.body.as_ref(), SetExpr::Values(_))
        {
            *subquery = self.rows.clone();
        }
        ControlFlow::Continue(())
    }

    fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
        if let Expr::Identifier(ident) = expr
            && let Some(number) = column_name(ident).strip_prefix(VALUE)
            && let Some(at) = number
                .parse::<usize>()
                .ok()
                .and_then(|at| at.checked_sub(1))
            && let Some(value) = self.row.get(at)
        {
            *expr = Expr::Nested(Box::new(value.clone()));
        }
        ControlFlow::Continue(())
    }
}
