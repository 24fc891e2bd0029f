//! What looks at one node of a plan at a time: the frame of optimizer rules that do, those below first, and a question about all nodes.

use std::fmt;

use datafusion_common::Result;
use datafusion_common::tree_node::{Transformed, TreeNodeRecursion};
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

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

/// Whether some node of `plan`, or of a subquery in it, is one that is looked for.
///
/// # Errors
/// The first that `is` gives.
pub(crate) fn any_node(
    plan: &LogicalPlan,
    mut is: impl FnMut(&LogicalPlan) -> Result<bool>,
) -> Result<bool> {
    let mut found = false;
    plan.apply_with_subqueries(|node| {
        found = is(node)?;
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}
