//! Which correlated subqueries a join can replace.
//!
//! A join applies the conditions that name columns of the outer query after the subquery has run. So no node between
//! such a condition and the top of the subquery may depend on how many rows there are. DataFusion does not check all
//! of this.

use datafusion_common::Result;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, JoinType};
use datafusion_expr::{Distinct, Expr, FetchType, Limit, LogicalPlan, SkipType, Subquery};
use datafusion_optimizer::decorrelate::PullUpCorrelatedExpr;

use crate::error::Error;
use crate::optimize::outer::{depends, is_shallow};

/// Where a subquery stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Exists,
    In,
    Scalar,
}

/// Whether a join can replace `subquery`, which names columns of the query right around it only, whose rows are
/// `outer`; otherwise it is to be [unnested](crate::optimize::unnest).
pub(crate) fn is_join(subquery: &Subquery, place: Place, outer: &DFSchema) -> Result<bool> {
    let plan = subquery.subquery.as_ref();
    if !depends(plan) {
        return Ok(true);
    }
    if !is_shallow(plan, outer) || !passes(plan, place)? {
        return Ok(false);
    }
    let mut pull = PullUpCorrelatedExpr::new()
        .with_exists_sub_query(place == Place::Exists)
        .with_need_handle_count_bug(place == Place::Scalar);
    // It fails where a name of a table in `from` hides the column of a condition.
    let Ok(pulled) = plan.clone().rewrite(&mut pull) else {
        return Ok(false);
    };
    let schema = pulled.data.schema();
    let conditions = pull.join_filters.iter();
    let mut columns = conditions.flat_map(Expr::column_refs);
    Ok(pull.can_pull_up
        && (place == Place::Scalar || !pull.pulled_up_scalar_agg)
        && columns.all(|column| schema.has_column(column) || outer.has_column(column)))
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
        LogicalPlan::Filter(_) | LogicalPlan::Projection(_) | LogicalPlan::SubqueryAlias(_) => true,
        // The columns of the conditions become columns of it: rows that were the same are not.
        LogicalPlan::Distinct(Distinct::All(_)) => place != Place::Scalar,
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

/// Whether `plan` returns at most one row, for what it says itself.
pub(crate) fn is_single(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_single(&projection.input),
        LogicalPlan::SubqueryAlias(alias) => is_single(&alias.input),
        LogicalPlan::Filter(filter) => is_single(&filter.input),
        LogicalPlan::Sort(sort) => is_single(&sort.input),
        LogicalPlan::Distinct(Distinct::All(input)) => is_single(input),
        LogicalPlan::Aggregate(aggregate) => aggregate.group_expr.is_empty(),
        LogicalPlan::EmptyRelation(_) => true,
        LogicalPlan::Limit(limit) => {
            is_single(&limit.input)
                || matches!(limit.get_fetch_type(), Ok(FetchType::Literal(Some(0 | 1))))
        }
        _ => false,
    }
}

/// Whether `limit` lets all rows pass: `offset 0`.
pub(crate) fn is_all(limit: &Limit) -> bool {
    let first = matches!(limit.get_skip_type(), Ok(SkipType::Literal(0)));
    first && matches!(limit.get_fetch_type(), Ok(FetchType::Literal(None)))
}

/// Whether `expr` numbers rows in any order.
fn is_any_number(expr: &Expr) -> bool {
    let found = expr.exists(|e| {
        let Expr::WindowFunction(function) = e else {
            return Ok(false);
        };
        Ok(function.params.order_by.is_empty() && function.fun.name() == "row_number")
    });
    found.unwrap_or(true)
}

/// Whether `plan` returns the same rows each time it runs.
pub(crate) fn is_repeatable(plan: &LogicalPlan) -> bool {
    let mut repeatable = true;
    let visited = plan.apply_with_subqueries(|node| {
        let ordered = |input: &LogicalPlan| matches!(input, LogicalPlan::Sort(_));
        if let LogicalPlan::Limit(limit) = node {
            repeatable &= ordered(&limit.input) || is_all(limit);
        }
        if let LogicalPlan::Window(window) = node {
            repeatable &= !window.window_expr.iter().any(is_any_number);
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

/// Checks that no aggregate in a subquery is one of the query around it, which it is in PostgreSQL if it names columns of that
/// query alone: `select (select max(o.a) from t) from o`.
///
/// # Errors
/// If there is one.
pub(crate) fn own_aggregates(plan: &LogicalPlan) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        if let LogicalPlan::Aggregate(aggregate) = node {
            let within = aggregate.input.schema();
            for expr in &aggregate.aggr_expr {
                if is_outer(expr, within)? {
                    return Err(Error::unsupported(
                        "not supported: an aggregate in a subquery that names columns of the query around it alone, of which it is an aggregate then: compute it there, in a subquery in `from`",
                    )
                    .into());
                }
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// Whether an aggregate names columns, and none of the rows that it is over.
fn is_outer(expr: &Expr, within: &DFSchema) -> Result<bool> {
    let (mut outer, mut own) = (false, false);
    expr.apply(|expr| {
        let subquery = match expr {
            Expr::Column(_) => {
                own = true;
                None
            }
            Expr::OuterReferenceColumn(..) => {
                outer = true;
                None
            }
            Expr::ScalarSubquery(subquery) => Some(subquery),
            Expr::Exists(exists) => Some(&exists.subquery),
            Expr::InSubquery(found) => Some(&found.subquery),
            _ => None,
        };
        for named in subquery
            .iter()
            .flat_map(|subquery| &subquery.outer_ref_columns)
        {
            if let Expr::OuterReferenceColumn(_, column) = named {
                let here = within.has_column(column);
                (own, outer) = (own || here, outer || !here);
            }
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(outer && !own)
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
