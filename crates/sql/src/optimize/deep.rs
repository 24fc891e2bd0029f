//! The passes over plans whose subqueries stand in each other many levels deep.
//!
//! DataFusion checks a plan before and after its rules: every subquery by walking through all that is in it, and again for each
//! subquery around it. With every level that takes twice as long: seconds for fifteen of them. So plans that are deeper than
//! [`CHECKED`] go through the same rules without these checks, but for the one that tells people what is wrong: how many columns
//! a subquery has that stands for a value.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::plan_err;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion, TreeNodeRewriter};
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_optimizer::analyzer::Analyzer;
use datafusion_optimizer::analyzer::function_rewrite::ApplyFunctionRewrites;
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};

/// The most levels of subqueries in a plan that DataFusion checks.
const CHECKED: usize = 6;

/// Whether the subqueries of `plan` stand in each other more than [`CHECKED`] levels deep.
///
/// # Errors
/// For a deep plan with a subquery that stands for a value and has several columns.
pub(super) fn is_deep(plan: &LogicalPlan) -> Result<bool> {
    if depth(plan)? <= CHECKED {
        return Ok(false);
    }
    plan.apply_with_subqueries(|plan| {
        plan.apply_expressions(|expr| {
            expr.apply(|expr| {
                let subquery = match expr {
                    Expr::ScalarSubquery(subquery) => subquery,
                    Expr::InSubquery(found) => &found.subquery,
                    Expr::SetComparison(compared) => &compared.subquery,
                    _ => return Ok(TreeNodeRecursion::Continue),
                };
                if subquery.subquery.schema().fields().len() > 1 {
                    return plan_err!("subquery must return only one column");
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(true)
}

/// How many levels of subqueries a plan has.
fn depth(plan: &LogicalPlan) -> Result<usize> {
    let mut deepest = 0;
    plan.apply(|node| {
        node.apply_subqueries(|subquery| {
            deepest = deepest.max(1 + depth(subquery)?);
            Ok(TreeNodeRecursion::Continue)
        })
    })?;
    Ok(deepest)
}

/// `plan` after the rules of `analyzer`.
///
/// # Errors
/// Those of the rules.
pub(super) fn analyzed(
    analyzer: &Analyzer,
    plan: LogicalPlan,
    options: &ConfigOptions,
) -> Result<LogicalPlan> {
    let rewrites = analyzer.function_rewrites();
    let mut plan = if rewrites.is_empty() {
        plan
    } else {
        ApplyFunctionRewrites::new(rewrites.to_vec()).analyze(plan, options)?
    };
    for rule in &analyzer.rules {
        plan = rule.analyze(plan, options)?;
    }
    Ok(plan)
}

/// `plan` after `rules`, each of them once.
///
/// # Errors
/// Those of the rules.
pub(super) fn optimised(
    rules: &[Arc<dyn OptimizerRule + Send + Sync>],
    mut plan: LogicalPlan,
    config: &dyn OptimizerConfig,
) -> Result<LogicalPlan> {
    for rule in rules {
        plan = match rule.apply_order() {
            None => rule.rewrite(plan, config)?.data,
            Some(order) => {
                let mut nodes = Nodes {
                    order,
                    rule: rule.as_ref(),
                    config,
                };
                plan.rewrite_with_subqueries(&mut nodes)?.data
            }
        };
    }
    Ok(plan)
}

/// Shows a rule one node after the other.
struct Nodes<'r> {
    order: ApplyOrder,
    rule: &'r dyn OptimizerRule,
    config: &'r dyn OptimizerConfig,
}

impl TreeNodeRewriter for Nodes<'_> {
    type Node = LogicalPlan;

    fn f_down(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match self.order {
            ApplyOrder::TopDown => self.rule.rewrite(node, self.config),
            ApplyOrder::BottomUp => Ok(Transformed::no(node)),
        }
    }

    fn f_up(&mut self, node: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
        match self.order {
            ApplyOrder::BottomUp => self.rule.rewrite(node, self.config),
            ApplyOrder::TopDown => Ok(Transformed::no(node)),
        }
    }
}
