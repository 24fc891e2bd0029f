//! The frame of optimizer rules that look at one node of a plan at a time, those below first.

use std::fmt;

use datafusion::common::Result;
use datafusion::common::tree_node::Transformed;
use datafusion::logical_expr::LogicalPlan;
use datafusion::optimizer::optimizer::ApplyOrder;
use datafusion::optimizer::{OptimizerConfig, OptimizerRule};

/// Such a rule.
pub(crate) struct EachNode {
    pub name: &'static str,
    /// What takes the place of a node; `None` if it stays.
    pub rewritten: fn(&LogicalPlan) -> Result<Option<LogicalPlan>>,
}

impl fmt::Debug for EachNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl OptimizerRule for EachNode {
    fn name(&self) -> &str {
        self.name
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _config: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        Ok(match (self.rewritten)(&plan)? {
            Some(plan) => Transformed::yes(plan),
            None => Transformed::no(plan),
        })
    }
}
