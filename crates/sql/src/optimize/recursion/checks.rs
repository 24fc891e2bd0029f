//! What a recursive term must not have.

use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::datasource::source_as_provider;
use datafusion::error::Result;
use datafusion::logical_expr::LogicalPlan;

use crate::error::Error;
use crate::optimize::recursion::work::WorkTable;

/// Refuses aggregates over the rows of the round before: they have a row even where there are none, so that rounds never end.
///
/// # Errors
/// For a recursive query that has one.
pub(crate) fn aggregates(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::RecursiveQuery(query) = node {
            query.recursive_term.apply_with_subqueries(|node| {
                let LogicalPlan::Aggregate(groups) = node else {
                    return Ok(TreeNodeRecursion::Continue);
                };
                if !groups.aggr_expr.is_empty() && reads(&groups.input)? {
                    let message =
                        "aggregate functions are not allowed in a recursive query's recursive term";
                    return Err(Error::coded("42P19", message).into());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Whether `plan` reads the table of a recursive query.
fn reads(plan: &LogicalPlan) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::TableScan(scan) = node {
            let provider = source_as_provider(&scan.source)?;
            found |= provider.downcast_ref::<WorkTable>().is_some();
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}
