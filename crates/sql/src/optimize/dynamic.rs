//! Filters that a hash join makes of its build side for the scans on its probe side.
//!
//! DataFusion makes such a filter once all partitions of the join have asked for it, and they wait for each other. A
//! join above, whose build side has no rows in a partition, does not read that partition of its probe side: a join
//! there waits for ever. So plans with joins that are made by partition have no such filters.

use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};

/// DataFusion's rule that hands filters of joins and of the first rows to scans, for plans in which no join waits.
#[derive(Debug)]
pub(crate) struct DynamicFilters(FilterPushdown);

impl DynamicFilters {
    pub(crate) fn new() -> DynamicFilters {
        DynamicFilters(FilterPushdown::new_post_optimization())
    }
}

/// Whether a join in `plan` reads some partitions of its inputs and others not.
fn skips_partitions(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        let by_partition = node
            .downcast_ref::<HashJoinExec>()
            .is_some_and(|join| *join.partition_mode() != PartitionMode::CollectLeft);
        found |= by_partition || node.is::<SortMergeJoinExec>();
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}

impl PhysicalOptimizerRule for DynamicFilters {
    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if !skips_partitions(&plan)? {
            return self.0.optimize(plan, config);
        }
        let mut config = config.clone();
        config.optimizer.enable_join_dynamic_filter_pushdown = false;
        self.0.optimize(plan, &config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
