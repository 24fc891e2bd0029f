//! Duplicate keys of groups: `group by x, y, x` groups by two keys.
//!
//! DataFusion keeps all three keys but gives the groups a column for each distinct one. Code that counts columns by
//! keys, such as its own physical plans, then takes one column for another. [`KeysOnce`] removes the duplicates, and those among
//! the keys of the order that `distinct on` and aggregates have, which DataFusion counts in two ways.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_expr::expr_rewriter::NamePreserver;
use datafusion_expr::{Aggregate, Distinct, Expr, LogicalPlan, SortExpr};
use datafusion_optimizer::AnalyzerRule;

/// The analyzer rule.
#[derive(Debug)]
pub(crate) struct KeysOnce;

impl AnalyzerRule for KeysOnce {
    fn name(&self) -> &str {
        "keys_once"
    }

    fn analyze(&self, plan: LogicalPlan, _: &ConfigOptions) -> Result<LogicalPlan> {
        Ok(plan.transform_up_with_subqueries(keys_once)?.data)
    }
}

fn keys_once(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if let LogicalPlan::Distinct(Distinct::On(mut on)) = plan {
        let keys = on.sort_expr.as_mut();
        let changed = keys.is_some_and(ordered_once);
        let plan = LogicalPlan::Distinct(Distinct::On(on));
        return Ok(Transformed::new_transformed(plan, changed));
    }
    let LogicalPlan::Aggregate(aggregate) = plan else {
        return Ok(Transformed::no(plan));
    };
    let keys = once(&aggregate.group_expr);
    let aggregates = aggregate.aggr_expr.iter().map(with_keys_once);
    let aggregates: Vec<Option<Expr>> = aggregates.collect::<Result<_>>()?;
    if keys.len() == aggregate.group_expr.len() && aggregates.iter().all(Option::is_none) {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let schema = Arc::clone(&aggregate.schema);
    let aggregates = aggregates.into_iter().zip(aggregate.aggr_expr);
    let aggregates = aggregates.map(|(changed, own)| changed.unwrap_or(own));
    let aggregate =
        Aggregate::try_new_with_schema(aggregate.input, keys, aggregates.collect(), schema)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
}

/// An aggregate without keys that it is ordered by already, under the name that it has; none if it has no such keys.
fn with_keys_once(expr: &Expr) -> Result<Option<Expr>> {
    if !expr.exists(|part| Ok(is_ordered(part)))? {
        return Ok(None);
    }
    let name = NamePreserver::new_for_projection().save(expr);
    let changed = expr.clone().transform_up(|part| match part {
        Expr::AggregateFunction(mut function) => {
            let changed = ordered_once(&mut function.params.order_by);
            let function = Expr::AggregateFunction(function);
            Ok(Transformed::new_transformed(function, changed))
        }
        part => Ok(Transformed::no(part)),
    })?;
    Ok(changed.transformed.then(|| name.restore(changed.data)))
}

fn is_ordered(expr: &Expr) -> bool {
    matches!(expr, Expr::AggregateFunction(function) if function.params.order_by.len() > 1)
}

/// Removes keys that come again; whether there are some.
fn ordered_once(keys: &mut Vec<SortExpr>) -> bool {
    let before = keys.len();
    let mut seen: Vec<Expr> = Vec::with_capacity(before);
    keys.retain(|key| {
        let is_new = !seen.contains(&key.expr);
        if is_new {
            seen.push(key.expr.clone());
        }
        is_new
    });
    keys.len() < before
}

/// The distinct expressions, in the order in which they first occur.
pub(crate) fn once(exprs: &[Expr]) -> Vec<Expr> {
    let mut all: Vec<Expr> = Vec::with_capacity(exprs.len());
    for expr in exprs {
        if !all.contains(expr) {
            all.push(expr.clone());
        }
    }
    all
}
