//! Filters that a hash join makes of its build side for the scans on its probe side.
//!
//! DataFusion makes such a filter once all partitions of the join have asked for it, and they wait for each other. A
//! join above, whose build side has no rows in a partition, does not read that partition of its probe side: a join
//! there waits for ever. So plans with joins that are made by partition have no such filters.
//!
//! The filters compare as Arrow does, which is not how joins, groups and sorts compare everything: an array with a NULL among
//! its items is compared to nothing, and -0.0 is not 0.0. Rows would be lost, so keys of such types make no filters. Nor do several
//! extremes at once: a column that had only NULLs yet takes no part in their filter, which drops the rows that have its first value.
//!
//! On its way down a filter finds its columns by name in the rows of each input. Where two columns of an input share a name, it
//! takes the first, whichever was meant, and how many rows that drops depends on whether the filter is made before they are read.
//! So plans in which two columns of some rows share a name have no such filters at all.

use std::collections::HashSet;
use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_optimizer::filter_pushdown::FilterPushdown;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::aggregates::AggregateExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode, SortMergeJoinExec};
use datafusion::physical_plan::sorts::sort::SortExec;

/// DataFusion's rule that hands filters of joins and of the first rows to scans, for plans in which no join waits.
#[derive(Debug)]
pub(crate) struct DynamicFilters(FilterPushdown);

impl DynamicFilters {
    pub(crate) fn new() -> DynamicFilters {
        DynamicFilters(FilterPushdown::new_post_optimization())
    }
}

/// Whether two columns of the rows of some operator in `plan` have the same name.
fn has_equal_names(plan: &Arc<dyn ExecutionPlan>) -> Result<bool> {
    let mut found = false;
    plan.apply(|node| {
        let schema = node.schema();
        let mut names = HashSet::new();
        found |= !schema
            .fields()
            .iter()
            .all(|field| names.insert(field.name()));
        Ok(if found {
            TreeNodeRecursion::Stop
        } else {
            TreeNodeRecursion::Continue
        })
    })?;
    Ok(found)
}

/// Whether values of a type are equal for filters where they are for joins.
fn is_equal_alike(ty: &DataType) -> bool {
    !ty.is_nested() && !ty.is_floating()
}

/// Which kinds of operators make no filters in `plan`.
#[derive(Clone, Copy, Debug, Default)]
struct Without {
    joins: bool,
    sorts: bool,
    aggregates: bool,
}

impl Without {
    fn of(plan: &Arc<dyn ExecutionPlan>) -> Result<Without> {
        let mut without = Without {
            joins: skips_partitions(plan)?,
            ..Without::default()
        };
        plan.apply(|node| {
            if let Some(join) = node.downcast_ref::<HashJoinExec>() {
                let schema = join.left().schema();
                for (key, _) in join.on() {
                    without.joins |= !is_equal_alike(&key.data_type(&schema)?);
                }
            } else if let Some(sort) = node.downcast_ref::<SortExec>() {
                let schema = sort.input().schema();
                for key in sort.expr() {
                    without.sorts |= key.expr.data_type(&schema)?.is_nested();
                }
            } else if let Some(aggregate) = node.downcast_ref::<AggregateExec>() {
                let schema = aggregate.input_schema();
                without.aggregates |= aggregate.aggr_expr().len() > 1;
                for expr in aggregate.aggr_expr() {
                    for argument in expr.expressions() {
                        without.aggregates |= argument.data_type(&schema)?.is_nested();
                    }
                }
            }
            Ok(TreeNodeRecursion::Continue)
        })?;
        Ok(without)
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
        if has_equal_names(&plan)? {
            return Ok(plan);
        }
        let without = Without::of(&plan)?;
        let mut config = config.clone();
        let options = &mut config.optimizer;
        options.enable_join_dynamic_filter_pushdown &= !without.joins;
        options.enable_topk_dynamic_filter_pushdown &= !without.sorts;
        options.enable_aggregate_dynamic_filter_pushdown &= !without.aggregates;
        self.0.optimize(plan, &config)
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn schema_check(&self) -> bool {
        self.0.schema_check()
    }
}
