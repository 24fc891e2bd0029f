//! What is known of rows below grouping sets is not known of the groups above them.
//!
//! A column that has one value below, or by which rows are sorted or parted, is NULL in the groups of the sets that leave it
//! out. DataFusion takes what holds below for what holds above: it left out the sort above `group by rollup (k)` where `k` is
//! a constant. So below such groups stands an operator of which nothing is known.

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::aggregates::{AggregateExec, AggregateInputMode};
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, ExecutionPlanProperties,
    PlanProperties, ReplaceChildrenOptions,
};

/// The rule for physical plans. It must come before those that leave out sorts.
#[derive(Debug)]
pub struct GroupingSets;

impl PhysicalOptimizerRule for GroupingSets {
    fn name(&self) -> &str {
        "GroupingSets"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let apart = |node: Arc<dyn ExecutionPlan>| {
            let Some(groups) = node.downcast_ref::<AggregateExec>() else {
                return Ok(Transformed::no(node));
            };
            let reads_rows = groups.mode().input_mode() == AggregateInputMode::Raw;
            if !reads_rows || !groups.group_expr().has_grouping_set() {
                return Ok(Transformed::no(node));
            }
            let input = Arc::new(Unknown::new(Arc::clone(groups.input())));
            let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
            let groups = Arc::clone(&node).replace_children(vec![input], options)?;
            Ok(Transformed::yes(groups))
        };
        Ok(plan.transform_up(apart)?.data)
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rows of its input, of which nothing is known.
#[derive(Debug)]
struct Unknown {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Unknown {
    fn new(input: Arc<dyn ExecutionPlan>) -> Unknown {
        let below = input.properties();
        let properties = PlanProperties::new(
            EquivalenceProperties::new(input.schema()),
            Partitioning::UnknownPartitioning(input.output_partitioning().partition_count()),
            below.emission_type,
            below.boundedness,
        );
        Unknown {
            properties: Arc::new(properties),
            input,
        }
    }
}

impl DisplayAs for Unknown {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupingSetsInput")
    }
}

impl ExecutionPlan for Unknown {
    fn name(&self) -> &str {
        "GroupingSetsInput"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        match children.pop() {
            Some(input) => Ok(Arc::new(Unknown::new(input))),
            None => Ok(self),
        }
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.input.execute(partition, context)
    }
}
