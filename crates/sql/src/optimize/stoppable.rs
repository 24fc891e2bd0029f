//! Rules that end when their statement was cancelled. Plans may be so large that a rule takes seconds; each looks at the
//! switch before it starts, and before each node where it is shown one node after the other.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::Transformed;
use datafusion_expr::LogicalPlan;
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{AnalyzerRule, OptimizerConfig, OptimizerRule};

use crate::error::Error;
use crate::resources::stop;

/// A rule that looks at the switch.
#[derive(Debug)]
pub(crate) struct Stoppable<R: ?Sized>(pub Arc<R>);

/// Fails if the present statement was cancelled.
pub(crate) fn check() -> Result<()> {
    if stop::is_stopped() {
        return Err(Error::Cancelled.into());
    }
    Ok(())
}

impl AnalyzerRule for Stoppable<dyn AnalyzerRule + Send + Sync> {
    fn analyze(&self, plan: LogicalPlan, config: &ConfigOptions) -> Result<LogicalPlan> {
        check()?;
        self.0.analyze(plan, config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }
}

impl OptimizerRule for Stoppable<dyn OptimizerRule + Send + Sync> {
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
        check()?;
        self.0.rewrite(plan, config)
    }
}
