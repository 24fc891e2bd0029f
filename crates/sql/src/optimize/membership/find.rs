//! Which subqueries an expression has.

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr, LogicalPlan};

use crate::optimize::outer;

fn is_member(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::InSubquery(_) | Expr::Exists(_) | Expr::SetComparison(_)
    )
}

/// Whether the expressions of `node` have a subquery. Asked of each node of each plan, so nothing is copied.
pub(super) fn has_subquery(node: &LogicalPlan) -> bool {
    let is_subquery = |e: &Expr| is_member(e) || matches!(e, Expr::ScalarSubquery(_));
    let mut found = false;
    let walked = node.apply_expressions(|expr| {
        found |= expr.exists(|e| Ok(is_subquery(e)))?;
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    });
    // The closure does not fail.
    found || walked.is_err()
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
