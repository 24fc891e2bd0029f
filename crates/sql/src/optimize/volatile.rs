//! Filters that must not be pushed down.
//!
//! DataFusion pushes a filter below every node that does not compute what the filter reads. That is wrong for volatile
//! filters such as `random() < 0.5`: below an aggregate they choose rows instead of groups. It is also wrong for a
//! filter that reads no column above an aggregate that returns a row even for no rows: `having (select false)`.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion_expr::{Aggregate, Expr, Filter, LogicalPlan};
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::push_down_filter::PushDownFilter;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

/// DataFusion's filter pushdown, for filters that may be moved.
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
            return if chooses_pairs(&plan) {
                Ok(Transformed::no(plan))
            } else {
                self.0.rewrite(plan, config)
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

/// The conjuncts of `filter` and of filters directly below it, in the order in which they apply, and their input.
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

/// Whether `predicate` must stay above `input`.
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

/// Whether `plan` is a join with a volatile condition.
fn chooses_pairs(plan: &LogicalPlan) -> bool {
    let LogicalPlan::Join(join) = plan else {
        return false;
    };
    let conditions = join.filter.iter().flat_map(split_conjunction);
    conditions.into_iter().any(Expr::is_volatile)
}
