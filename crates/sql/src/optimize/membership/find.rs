//! Which subqueries an expression has.

use datafusion::common::tree_node::TreeNode;
use datafusion::logical_expr::Expr;

use crate::optimize::outer;

fn is_member(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
    )
}

pub(super) fn has_member(expr: &Expr) -> bool {
    // The closure does not fail.
    expr.exists(|e| Ok(is_member(e))).unwrap_or(true)
}

/// Whether `expr` has a subquery that stands for a value and depends on the row outside.
pub(super) fn has_dependent(expr: &Expr) -> bool {
    let found = expr.exists(|e| {
        Ok(matches!(e, Expr::ScalarSubquery(subquery) if outer::depends(&subquery.subquery)))
    });
    found.unwrap_or(true)
}
