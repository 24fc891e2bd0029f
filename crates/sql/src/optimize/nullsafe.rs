//! Joins whose keys are compared by `is not distinct from`, where NULL equals NULL.
//!
//! DataFusion makes such a comparison a key of the join, for which the join then says that NULL equals NULL. That holds
//! for all keys of a join: rules that add keys of `=` later, or make one of two joins, find NULL equal to NULL where it
//! is not, or the other way round. So these keys come last ([`NullSafeKeys`]), and before that there are only those of
//! `=` ([`EqualKeys`]).

use datafusion_common::NullEquality;
use datafusion_common::Result;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

/// Makes comparisons by `=` keys of joins.
#[derive(Debug, Default)]
pub(crate) struct EqualKeys(ExtractEquijoinPredicate);

/// Makes comparisons by `is not distinct from` keys of joins that have no others.
#[derive(Debug, Default)]
pub(crate) struct NullSafeKeys(ExtractEquijoinPredicate);

impl NullSafeKeys {
    pub(crate) const NAME: &str = "null_safe_keys";
}

fn is_null_safe(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if join.null_equality == NullEquality::NullEqualsNull)
}

impl OptimizerRule for EqualKeys {
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
        let LogicalPlan::Join(join) = &plan else {
            return Ok(Transformed::no(plan));
        };
        if is_null_safe(&plan) || join.filter.is_none() {
            return Ok(Transformed::no(plan));
        }
        let keyed = self.0.rewrite(plan.clone(), config)?;
        if is_null_safe(&keyed.data) {
            return Ok(Transformed::no(plan));
        }
        Ok(keyed)
    }
}

impl OptimizerRule for NullSafeKeys {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        self.0.apply_order()
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match &plan {
            LogicalPlan::Join(join) if join.on.is_empty() => self.0.rewrite(plan, config),
            _ => Ok(Transformed::no(plan)),
        }
    }
}
