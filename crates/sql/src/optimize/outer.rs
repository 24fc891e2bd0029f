//! Which columns of the queries around it a plan names.

use std::collections::HashSet;

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, TableReference};
use datafusion_expr::{Expr, LogicalPlan, Subquery, SubqueryAlias};

/// The columns of queries outside that `plan` names. Expressions of its nodes count, and not those in their subqueries:
/// these name columns of the node only, once they are left for DataFusion.
pub(crate) fn outer_columns(plan: &LogicalPlan) -> Vec<Column> {
    let mut columns = Vec::new();
    for expr in plan.expressions() {
        // The closure does not fail.
        let _ = expr.apply(|e| {
            if let Expr::OuterReferenceColumn(_, column) = e {
                columns.push(column.clone());
            }
            Ok(TreeNodeRecursion::Continue)
        });
    }
    if let LogicalPlan::Join(join) = plan
        && lateral(&join.right).is_some()
    {
        columns.extend(outer_columns(&join.left));
        let right = outer_columns(&join.right).into_iter();
        columns.extend(right.filter(|column| !join.left.schema().has_column(column)));
    } else {
        columns.extend(plan.inputs().into_iter().flat_map(outer_columns));
    }
    let mut seen = HashSet::new();
    columns.retain(|column| seen.insert(column.clone()));
    columns
}

/// Whether `plan` names columns of a query outside.
pub(crate) fn depends(plan: &LogicalPlan) -> bool {
    !outer_columns(plan).is_empty()
}

/// Whether every column of an outer query that `plan` names is one of `outer`: of the query right around it.
pub(crate) fn is_shallow(plan: &LogicalPlan, outer: &DFSchema) -> bool {
    outer_columns(plan).iter().all(|c| outer.has_column(c))
}

/// The subquery that `right` is, as the right side of a join, and its alias.
pub(crate) fn lateral(right: &LogicalPlan) -> Option<(&Subquery, Option<&TableReference>)> {
    match right {
        LogicalPlan::Subquery(subquery) => Some((subquery, None)),
        LogicalPlan::SubqueryAlias(SubqueryAlias { input, alias, .. }) => match input.as_ref() {
            LogicalPlan::Subquery(subquery) => Some((subquery, Some(alias))),
            _ => None,
        },
        _ => None,
    }
}
