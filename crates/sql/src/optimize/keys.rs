//! Duplicate keys of groups: `group by x, y, x` groups by two keys.
//!
//! DataFusion keeps all three keys but gives the groups a column for each distinct one. Code that counts columns by
//! keys, such as its own physical plans, then takes one column for another. [`KeysOnce`] removes the duplicates.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::{Aggregate, Expr, LogicalPlan};
use datafusion::optimizer::AnalyzerRule;

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
    let LogicalPlan::Aggregate(aggregate) = plan else {
        return Ok(Transformed::no(plan));
    };
    let keys = once(&aggregate.group_expr);
    if keys.len() == aggregate.group_expr.len() {
        return Ok(Transformed::no(LogicalPlan::Aggregate(aggregate)));
    }
    let schema = Arc::clone(&aggregate.schema);
    let aggregate =
        Aggregate::try_new_with_schema(aggregate.input, keys, aggregate.aggr_expr, schema)?;
    Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
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
