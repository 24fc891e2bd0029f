//! Limits of which it is known how many rows pass, and the others.

use datafusion_common::ScalarValue;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::{Expr, Limit, LogicalPlan};

use crate::error::Result;

/// Whether a clause is a number as it stands, or missing.
pub(crate) fn is_plain(expr: Option<&Expr>) -> bool {
    match expr {
        None => true,
        Some(Expr::Literal(ScalarValue::Int64(count), _)) => count.is_none_or(|count| count >= 0),
        Some(_) => false,
    }
}

/// Whether how many rows pass does not depend on anything that is computed.
pub(crate) fn is_known(limit: &Limit) -> bool {
    is_plain(limit.skip.as_deref()) && is_plain(limit.fetch.as_deref())
}

/// `plan` without the limits that are still to be computed: for its columns.
///
/// # Errors
/// Those of going through the plan.
pub(crate) fn left_out(plan: LogicalPlan) -> Result<LogicalPlan> {
    let without = plan.transform_down_with_subqueries(|node| match node {
        LogicalPlan::Limit(limit) if !is_known(&limit) => {
            Ok(Transformed::yes(LogicalPlan::Limit(Limit {
                skip: None,
                fetch: None,
                input: limit.input,
            })))
        }
        other => Ok(Transformed::no(other)),
    });
    Ok(without?.data)
}
