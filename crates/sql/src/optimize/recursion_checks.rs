//! Which plans have recursive queries, and what their terms must not have.

use datafusion_common::JoinType;
use datafusion_common::Result;
use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_expr::LogicalPlan;

use crate::error::Error;
use crate::optimize::each_node::any_node;
use crate::optimize::working_table::WorkTable;

/// Refuses aggregates over the rows of the round before, and outer joins that would keep rows without any of them: they have a row
/// even where there are none, so that rounds never end.
///
/// # Errors
/// For a recursive query that has one.
pub(crate) fn terms(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::RecursiveQuery(query) = node {
            query.recursive_term.apply_with_subqueries(|node| {
                match refused(node, &query.name)? {
                    Some(message) => Err(Error::coded("42P19", message).into()),
                    None => Ok(TreeNodeRecursion::Continue),
                }
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Why a node of a recursive term is refused, if it is.
fn refused(node: &LogicalPlan, name: &str) -> Result<Option<String>> {
    match node {
        LogicalPlan::Aggregate(groups) if !groups.aggr_expr.is_empty() => {
            let message =
                "aggregate functions are not allowed in a recursive query's recursive term";
            Ok(reads(&groups.input)?.then(|| message.to_owned()))
        }
        LogicalPlan::Join(join) => {
            let may_be_null = match join.join_type {
                JoinType::Left => reads(&join.right)?,
                JoinType::Right => reads(&join.left)?,
                JoinType::Full => reads(&join.left)? || reads(&join.right)?,
                _ => false,
            };
            Ok(may_be_null.then(|| {
                format!(
                    "recursive reference to query \"{name}\" must not appear within an outer join"
                )
            }))
        }
        _ => Ok(None),
    }
}

/// Whether `plan` reads the table of a recursive query.
fn reads(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| {
        let LogicalPlan::TableScan(scan) = node else {
            return Ok(false);
        };
        Ok(scan.source.is::<WorkTable>())
    })
}
