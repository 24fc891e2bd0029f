//! The order of a query in `from`, which reaches what reads it: `select * from (select ... order by a) limit 3`.
//!
//! SQL says nothing of it, and DataFusion forgets it; PostgreSQL's users count on it. It is kept where rows go on one by one to
//! the result or to a limit: through projections, filters and names. Aggregates that gather values take it as their own
//! `order by`. Elsewhere, below joins, groups and sets, nobody could see it, and the sort is left out.

use std::sync::Arc;

use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, Result};
use datafusion_expr::expr::{AggregateFunction, Sort as SortKey};
use datafusion_expr::{
    Aggregate, Expr, LogicalPlan, LogicalPlanBuilder, Projection, SubqueryAlias,
};
use datafusion_optimizer::AnalyzerRule;

use crate::optimize::each_node::any_node;

/// The analyzer rule. It must come first: others would not find what a query in `from` is.
#[derive(Debug)]
pub(crate) struct Orders;

impl AnalyzerRule for Orders {
    fn name(&self) -> &str {
        "orders"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        if is_sorted_within(&plan)? {
            ordered(plan, true)
        } else {
            Ok(plan)
        }
    }
}

/// Whether a node of a plan sorts.
fn is_sorted_within(plan: &LogicalPlan) -> Result<bool> {
    any_node(plan, |node| Ok(matches!(node, LogicalPlan::Sort(_))))
}

/// `plan` without the sorts that nobody can see. `wanted` says whether somebody sees the order of its rows.
fn ordered(plan: LogicalPlan, wanted: bool) -> Result<LogicalPlan> {
    let plan = plan
        .map_subqueries(|subquery| Ok(Transformed::yes(ordered(subquery, false)?)))?
        .data;
    let below = match &plan {
        LogicalPlan::Sort(sort) if sort.fetch.is_none() && !wanted => {
            return ordered(sort.input.as_ref().clone(), false);
        }
        // It reads itself, and its parts are told apart by their places.
        LogicalPlan::RecursiveQuery(_) => return Ok(plan),
        LogicalPlan::Aggregate(aggregate) => {
            if let Some(gathered) = gathered(aggregate)? {
                return ordered(gathered, wanted);
            }
            false
        }
        LogicalPlan::Limit(_)
        | LogicalPlan::Dml(_)
        | LogicalPlan::Ddl(_)
        | LogicalPlan::Copy(_)
        | LogicalPlan::Explain(_)
        | LogicalPlan::Analyze(_) => true,
        LogicalPlan::Projection(_) | LogicalPlan::Filter(_) | LogicalPlan::SubqueryAlias(_) => {
            wanted
        }
        _ => false,
    };
    let children = plan.map_children(|child| Ok(Transformed::yes(ordered(child, below)?)));
    Ok(children?.data)
}

/// Aggregates whose value depends on the order of the rows.
const GATHER: [&str; 4] = ["array_agg", "string_agg", "first_value", "last_value"];

fn is_gathering(expr: &Expr) -> bool {
    match expr {
        Expr::AggregateFunction(function) => {
            GATHER.contains(&function.func.name())
                && function.params.order_by.is_empty()
                && !function.params.distinct
        }
        _ => false,
    }
}

/// The groups with the order of their input as that of the aggregates that gather; none if there is nothing to say.
fn gathered(aggregate: &Aggregate) -> Result<Option<LogicalPlan>> {
    if !aggregate.aggr_expr.iter().any(is_gathering) {
        return Ok(None);
    }
    let Some(keys) = keys(&aggregate.input) else {
        return Ok(None);
    };
    let with_order = |expr: &Expr| match expr {
        Expr::AggregateFunction(function) if is_gathering(expr) => {
            let mut params = function.params.clone();
            params.order_by.clone_from(&keys);
            Expr::AggregateFunction(AggregateFunction {
                func: Arc::clone(&function.func),
                params,
            })
        }
        other => other.clone(),
    };
    let exprs: Vec<Expr> = aggregate.aggr_expr.iter().map(with_order).collect();
    let input = Arc::clone(&aggregate.input);
    let made = Aggregate::try_new(input, aggregate.group_expr.clone(), exprs)?;
    // Under the names that they had.
    let columns = made.schema.columns().into_iter();
    let before = aggregate.schema.columns();
    let columns = columns.zip(before).map(|(own, old)| {
        let name = (own != old).then(|| old.name.clone());
        match name {
            Some(name) => Expr::Column(own).alias(name),
            None => Expr::Column(own),
        }
    });
    let columns: Vec<Expr> = columns.collect();
    let plan = LogicalPlanBuilder::from(LogicalPlan::Aggregate(made));
    Ok(Some(plan.project(columns)?.build()?))
}

/// What rows are sorted by, in the columns that they have; none if they are not, or not by those.
fn keys(plan: &LogicalPlan) -> Option<Vec<SortKey>> {
    match plan {
        LogicalPlan::Sort(sort) => Some(sort.expr.clone()),
        LogicalPlan::Filter(filter) => keys(&filter.input),
        LogicalPlan::Limit(limit) => keys(&limit.input),
        LogicalPlan::SubqueryAlias(alias) => {
            let own = keys(&alias.input)?;
            own.into_iter().map(|key| renamed(key, alias)).collect()
        }
        LogicalPlan::Projection(projection) => {
            let own = keys(&projection.input)?;
            own.into_iter()
                .map(|key| projected(key, projection))
                .collect()
        }
        _ => None,
    }
}

/// A key with the names that columns have above `alias`.
fn renamed(key: SortKey, alias: &SubqueryAlias) -> Option<SortKey> {
    let below = alias.input.schema();
    let above = alias.schema.columns();
    let mut known = true;
    let expr = key.expr.transform(|expr| match expr {
        Expr::Column(column) => {
            let at = below.maybe_index_of_column(&column);
            match at.and_then(|at| above.get(at)) {
                Some(own) => Ok(Transformed::yes(Expr::Column(own.clone()))),
                None => {
                    known = false;
                    Ok(Transformed::no(Expr::Column(column)))
                }
            }
        }
        other => Ok(Transformed::no(other)),
    });
    let expr = expr.ok()?.data;
    known.then_some(SortKey { expr, ..key })
}

/// A key as a column of a projection.
fn projected(key: SortKey, projection: &Projection) -> Option<SortKey> {
    let columns: Vec<Column> = projection.schema.columns();
    let bare = |expr: &Expr| expr.clone().unalias_nested().data;
    let wanted = bare(&key.expr);
    let mut exprs = projection.expr.iter().zip(columns);
    let (_, column) = exprs.find(|(expr, _)| bare(expr) == wanted)?;
    Some(SortKey {
        expr: Expr::Column(column),
        ..key
    })
}
