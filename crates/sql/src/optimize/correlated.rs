//! Which correlated subqueries a join can replace.
//!
//! A join applies the conditions that name columns of the outer query after the subquery has run. So no node between
//! such a condition and the top of the subquery may depend on how many rows there are. DataFusion does not check all
//! of this.

use datafusion::common::JoinType;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::logical_expr::{Distinct, Expr, FetchType, LogicalPlan, SkipType, Subquery};

use crate::error::Error;

/// Where a subquery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Exists,
    In,
    Scalar,
}

/// Checks that a join can replace `subquery`.
///
/// # Errors
/// If it cannot.
pub(crate) fn check(subquery: &Subquery, place: Place) -> Result<()> {
    if passes(&subquery.subquery, place)? {
        Ok(())
    } else {
        Err(refused().into())
    }
}

/// The error for a subquery that no join can replace.
pub(crate) fn refused() -> Error {
    Error::unsupported(
        "not supported: a subquery that names a column of the query around it below a `limit`, an outer join, a window function or \
         groups of its own; name it in the `where` of the subquery itself, or join",
    )
}

/// Whether conditions that name columns of the outer query may be applied after `plan`.
fn passes(plan: &LogicalPlan, place: Place) -> Result<bool> {
    if plan.all_out_ref_exprs().is_empty() {
        return Ok(true);
    }
    let above = match plan {
        LogicalPlan::Filter(_)
        | LogicalPlan::Projection(_)
        | LogicalPlan::SubqueryAlias(_)
        | LogicalPlan::Distinct(Distinct::All(_)) => true,
        LogicalPlan::Aggregate(aggregate) => match &aggregate.group_expr[..] {
            [] => place == Place::Scalar,
            [Expr::GroupingSet(_)] => false,
            _ => true,
        },
        LogicalPlan::Join(join) => {
            let free = |side: &LogicalPlan| side.all_out_ref_exprs().is_empty();
            match join.join_type {
                JoinType::Inner => true,
                JoinType::Left | JoinType::LeftSemi | JoinType::LeftAnti | JoinType::LeftMark => {
                    free(&join.right) && join.filter.iter().all(|f| !f.contains_outer())
                }
                JoinType::Right
                | JoinType::RightSemi
                | JoinType::RightAnti
                | JoinType::RightMark => {
                    free(&join.left) && join.filter.iter().all(|f| !f.contains_outer())
                }
                JoinType::Full => false,
            }
        }
        // Where it only matters whether there is a row, any row is as good as the first.
        LogicalPlan::Limit(limit) => {
            let first = matches!(limit.get_skip_type()?, SkipType::Literal(0));
            let known = matches!(limit.get_fetch_type()?, FetchType::Literal(_));
            place == Place::Exists && first && known
        }
        // DataFusion refuses these itself.
        LogicalPlan::Subquery(_) => return Ok(true),
        _ => false,
    };
    if !above {
        return Ok(false);
    }
    for input in plan.inputs() {
        if !passes(input, place)? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether `plan` returns exactly one row, whatever it reads: an aggregate over all rows.
pub(crate) fn is_one_row(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_one_row(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_one_row(&alias.input),
        LogicalPlan::Subquery(subquery) => is_one_row(&subquery.subquery),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        _ => false,
    }
}

/// Whether `plan` returns the same rows each time it runs.
pub(crate) fn is_repeatable(plan: &LogicalPlan) -> bool {
    let mut repeatable = true;
    let visited = plan.apply_with_subqueries(|node| {
        let ordered = |input: &LogicalPlan| matches!(input, LogicalPlan::Sort(_));
        if let LogicalPlan::Limit(limit) = node {
            repeatable &= ordered(&limit.input);
        }
        repeatable &= !node.expressions().iter().any(Expr::is_volatile);
        Ok(if repeatable {
            TreeNodeRecursion::Continue
        } else {
            TreeNodeRecursion::Stop
        })
    });
    visited.is_ok() && repeatable
}

/// Checks that the optimised `plan` has no subquery left that no executor runs.
///
/// # Errors
/// If it has one.
pub(crate) fn all_joined(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        node.apply_expressions(|expr| {
            let left = expr.exists(|e| {
                Ok(match e {
                    Expr::Exists(_) | Expr::InSubquery(_) | Expr::SetComparison(_) => true,
                    Expr::ScalarSubquery(subquery) => {
                        !subquery.subquery.all_out_ref_exprs().is_empty()
                    }
                    _ => false,
                })
            })?;
            if left {
                Err(refused().into())
            } else {
                Ok(TreeNodeRecursion::Continue)
            }
        })
    })?;
    Ok(())
}
