//! Operators that serve for more than one round.

use std::sync::Arc;

use datafusion::common::JoinType;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::Result;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::filter::FilterExec;
use datafusion::physical_plan::joins::{HashJoinExec, PartitionMode};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};

use crate::optimize::recursion::work::{Work, reads, with_children};

/// For how many rounds an operator serves. What it measures is kept for each of them.
const ROUNDS: usize = 256;

/// Whether such a join can make its table once: no row of it is told apart after it has been looked up.
fn looks_up(join: JoinType) -> bool {
    matches!(
        join,
        JoinType::Inner
            | JoinType::Right
            | JoinType::RightSemi
            | JoinType::RightAnti
            | JoinType::RightMark
    )
}

/// Whether the table of a join stays the same while its other side changes.
fn keeps_its_table(join: &HashJoinExec) -> bool {
    *join.partition_mode() == PartitionMode::CollectLeft
        && looks_up(*join.join_type())
        && join.dynamic_expressions_produced().is_empty()
        && !reads(join.left())
}

/// A recursive term whose hash joins make their tables of the side that stays the same, if there is one. It must not be
/// optimised yet.
pub(super) fn arranged(term: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let arrange = |node: Arc<dyn ExecutionPlan>| {
        let Some(join) = node.downcast_ref::<HashJoinExec>() else {
            return Ok(Transformed::no(node));
        };
        if join.null_aware || !join.dynamic_expressions_produced().is_empty() {
            return Ok(Transformed::no(node));
        }
        let whole = |side: &Arc<dyn ExecutionPlan>| {
            !reads(side) && side.output_partitioning().partition_count() == 1
        };
        if reads(join.left()) && whole(join.right()) && looks_up(join.join_type().swap()) {
            let swapped = join.swap_inputs(PartitionMode::CollectLeft)?;
            return Ok(Transformed::yes(swapped));
        }
        if whole(join.left()) && reads(join.right()) && looks_up(*join.join_type()) {
            let builder = join.builder();
            let join = builder.with_partition_mode(PartitionMode::CollectLeft);
            return Ok(Transformed::yes(join.build_exec()?));
        }
        Ok(Transformed::no(node))
    };
    Ok(term.transform_up(arrange)?.data)
}

/// The operators of a recursive term for the round of this number, made of those of the round before.
pub(super) fn renewed(
    term: &Arc<dyn ExecutionPlan>,
    round: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    if round.is_multiple_of(ROUNDS) {
        return reset_plan_states(Arc::clone(term));
    }
    again(term)
}

fn again(plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(join) = plan.downcast_ref::<HashJoinExec>()
        && keeps_its_table(join)
    {
        let right = again(join.right())?;
        if Arc::ptr_eq(&right, join.right()) {
            return Ok(Arc::clone(plan));
        }
        let children = vec![Arc::clone(join.left()), right];
        return join.builder().with_new_children(children)?.build_exec();
    }
    let children = plan.children().into_iter();
    let children = children.map(again).collect::<Result<Vec<_>>>()?;
    let plan = with_children(Arc::clone(plan), children)?;
    let keeps_nothing = plan.is::<Work>()
        || plan.is::<ProjectionExec>()
        || plan.is::<FilterExec>()
        || plan.is::<CooperativeExec>();
    if keeps_nothing {
        return Ok(plan);
    }
    plan.reset_state()
}
