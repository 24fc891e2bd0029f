//! Filters that stay where they are.
//!
//! DataFusion moves a filter below whatever does not compute what it reads. That is wrong of one that is evaluated anew
//! for each row, such as `random() < 0.5`: below a group it chooses rows, not groups. It is wrong, too, of one that reads
//! no column and stands above a group that has a row even for no rows: `having (select false)`.

use std::sync::Arc;

use datafusion::common::tree_node::Transformed;
use datafusion::error::Result;
use datafusion::logical_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion::logical_expr::{Aggregate, Expr, Filter, LogicalPlan};
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::push_down_filter::PushDownFilter;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's rule, for filters that may be moved.
#[derive(Debug, Default)]
pub(crate) struct MoveFilters(PushDownFilter);

impl OptimizerRule for MoveFilters {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        let LogicalPlan::Filter(filter) = plan else {
            return match chooses_pairs(&plan) {
                true => Ok(Transformed::no(plan)),
                false => self.0.rewrite(plan, config),
            };
        };
        let (predicates, input) = chain(&filter);
        if chooses_pairs(input) {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        }
        let (stays, moves): (Vec<Expr>, Vec<Expr>) =
            predicates.into_iter().partition(|p| stays(p, input));
        let Some(stays) = conjunction(stays) else {
            return self.0.rewrite(LogicalPlan::Filter(filter), config);
        };
        let Some(moves) = conjunction(moves) else {
            return Ok(Transformed::no(LogicalPlan::Filter(filter)));
        };
        let below = Filter::try_new(moves, Arc::new(input.clone()))?;
        let below = self.0.rewrite(LogicalPlan::Filter(below), config)?.data;
        let filter = Filter::try_new(stays, Arc::new(below))?;
        Ok(Transformed::yes(LogicalPlan::Filter(filter)))
    }
}

/// The conjuncts of filters that stand on each other, in the order they are applied, and what they filter.
fn chain(filter: &Filter) -> (Vec<Expr>, &LogicalPlan) {
    let (mut filters, mut input) = (vec![filter], filter.input.as_ref());
    while let LogicalPlan::Filter(next) = input {
        filters.push(next);
        input = next.input.as_ref();
    }
    let predicates = filters.into_iter().rev().map(|f| f.predicate.clone());
    (
        predicates.flat_map(split_conjunction_owned).collect(),
        input,
    )
}

/// Whether `predicate` must not go below `input`.
fn stays(predicate: &Expr, input: &LogicalPlan) -> bool {
    if predicate.is_volatile() {
        return true;
    }
    let LogicalPlan::Aggregate(Aggregate { group_expr, .. }) = input else {
        return false;
    };
    let one_row_of_none = group_expr.is_empty() || matches!(group_expr[..], [Expr::GroupingSet(_)]);
    one_row_of_none && !predicate.any_column_refs() || group_expr.iter().any(Expr::is_volatile)
}

/// Whether `plan` is a join whose condition is evaluated anew for each pair of rows.
fn chooses_pairs(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Join(join) = plan else {
        return false;
    };
    let conditions = join.filter.iter().flat_map(split_conjunction);
    conditions.into_iter().any(Expr::is_volatile)
}
