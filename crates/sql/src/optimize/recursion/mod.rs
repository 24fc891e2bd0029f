//! `with recursive`, whose rounds are cheap.
//!
//! DataFusion makes all operators of the recursive term anew for each round, and parts its rows among tasks, which takes a
//! hundred times as long as computing the one row that a round often has. So an operator of this crate stands in its place:
//!
//! * A term of projections and filters over the rows of the round before is computed [as it is](direct), batch by batch.
//! * The operators of others are planned for one partition, and [used again](reused) where they keep nothing: the table of a
//!   hash join with a table that stays the same is made once.
//! * [Rounds](rounds) hand their rows on in batches that grow, keep those of `union`, and look at the switch of the statement.
//!
//! The term is no child of that operator while DataFusion's rules run, which would part its rows among tasks again.

pub(crate) mod checks;
mod direct;
mod reused;
mod rounds;
pub(crate) mod work;

use std::fmt;
use std::sync::Arc;

use datafusion::common::config::ConfigOptions;
use datafusion::common::internal_err;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_optimizer::PhysicalOptimizerRule;
use datafusion::physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion::physical_plan::coop::make_cooperative;
use datafusion::physical_plan::execution_plan::{
    Boundedness, EmissionType, SchedulingType, reset_plan_states,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, Distribution, ExecutionPlan, ExecutionPlanProperties,
    InputDistributionRequirements, PlanProperties,
};
use futures::stream;

use crate::error::Error;
use crate::optimize::recursion::direct::Direct;
use crate::optimize::recursion::rounds::{Rounds, Way};
use crate::optimize::recursion::work::{Slot, Work, with_children};

/// The rules for physical plans, without those of this module.
pub(crate) type Rules = Vec<Arc<dyn PhysicalOptimizerRule + Send + Sync>>;

/// The rule that puts [`Recursion`] in the place of DataFusion's operator. It must be the first.
#[derive(Debug)]
pub(crate) struct Recursions {
    /// Those that a recursive term is optimised by.
    rules: Rules,
}

impl Recursions {
    pub(crate) fn new(rules: Rules) -> Recursions {
        Recursions { rules }
    }

    /// A recursive term for one partition.
    fn optimised(
        &self,
        term: &Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut config = config.clone();
        config.execution.target_partitions = 1;
        // They are of one round.
        config.optimizer.enable_join_dynamic_filter_pushdown = false;
        let mut term = reused::arranged(Arc::clone(term))?;
        for rule in &self.rules {
            term = rule.optimize(term, &config)?;
        }
        if term.output_partitioning().partition_count() != 1 {
            term = Arc::new(CoalescePartitionsExec::new(term));
        }
        Ok(term)
    }
}

impl PhysicalOptimizerRule for Recursions {
    fn name(&self) -> &str {
        "Recursions"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        config: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let own = |node: Arc<dyn ExecutionPlan>| {
            let Some(query) = node.downcast_ref::<RecursiveQueryExec>() else {
                return Ok(Transformed::no(node));
            };
            let name = query.name();
            if references(query.recursive_term(), name) > 1 {
                let message = format!(
                    "recursive reference to query \"{name}\" must not appear more than once"
                );
                return Err(Error::coded("42P19", message).into());
            }
            let term = self.optimised(query.recursive_term(), config)?;
            let parts = Parts {
                name: name.to_string(),
                first: Arc::clone(query.static_term()),
                term,
                distinct: query.is_distinct(),
                shown: false,
            };
            Ok(Transformed::yes(Arc::new(Recursion::new(parts)) as _))
        };
        Ok(plan.transform_up(own)?.data)
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// The rule that makes recursive terms children of their operators, for those who look at the whole plan. It must be the last.
#[derive(Debug)]
pub(crate) struct ShownRecursions;

fn shown(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let show = |node: Arc<dyn ExecutionPlan>| {
        let Some(recursion) = node.downcast_ref::<Recursion>() else {
            return Ok(Transformed::no(node));
        };
        let mut parts = recursion.parts.clone();
        parts.term = shown(parts.term)?;
        parts.shown = true;
        Ok(Transformed::yes(Arc::new(Recursion::new(parts)) as _))
    };
    Ok(plan.transform_up(show)?.data)
}

impl PhysicalOptimizerRule for ShownRecursions {
    fn name(&self) -> &str {
        "ShownRecursions"
    }

    fn optimize(
        &self,
        plan: Arc<dyn ExecutionPlan>,
        _: &ConfigOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        shown(plan)
    }

    fn schema_check(&self) -> bool {
        true
    }
}

/// What a recursive query consists of.
#[derive(Clone, Debug)]
struct Parts {
    name: String,
    /// The rows that it begins with.
    first: Arc<dyn ExecutionPlan>,
    /// Those of a round.
    term: Arc<dyn ExecutionPlan>,
    /// Whether it is `union`, and no row comes twice.
    distinct: bool,
    /// Whether the term is a child.
    shown: bool,
}

/// A recursive query.
#[derive(Debug)]
struct Recursion {
    parts: Parts,
    /// The term, where it needs no operators.
    direct: Option<Arc<Direct>>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
}

impl Recursion {
    fn new(parts: Parts) -> Recursion {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(parts.first.schema()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        )
        .with_scheduling_type(SchedulingType::Cooperative);
        Recursion {
            direct: Direct::of(&parts.term).map(Arc::new),
            parts,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
        }
    }

    /// How rounds are computed. Each run has rows of its own.
    fn way(&self, context: &Arc<TaskContext>) -> Result<Way> {
        if let Some(direct) = &self.direct {
            return Ok(Way::Direct(Arc::clone(direct)));
        }
        let slot = Arc::new(Slot::default());
        let term = reset_plan_states(Arc::clone(&self.parts.term))?;
        let term = filled(term, &self.parts.name, &slot)?;
        Ok(Way::operators(term, slot, Arc::clone(context)))
    }
}

impl DisplayAs for Recursion {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Parts { name, distinct, .. } = &self.parts;
        write!(f, "RecursiveQueryExec: name={name}, is_distinct={distinct}")?;
        if self.direct.is_some() {
            f.write_str(", direct")?;
        }
        Ok(())
    }
}

impl ExecutionPlan for Recursion {
    fn name(&self) -> &str {
        "RecursiveQueryExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        if self.parts.shown {
            vec![&self.parts.first, &self.parts.term]
        } else {
            vec![&self.parts.first]
        }
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        let one = vec![Distribution::SinglePartition; self.children().len()];
        InputDistributionRequirements::new(one)
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        vec![false; self.children().len()]
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut parts = self.parts.clone();
        let mut children = children.into_iter();
        if let Some(first) = children.next() {
            parts.first = first;
        }
        if let Some(term) = children.next() {
            parts.term = term;
        }
        Ok(Arc::new(Recursion::new(parts)))
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
        if partition != 0 {
            return internal_err!("a recursive query has one partition");
        }
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let first = self.parts.first.execute(0, Arc::clone(&context))?;
        let way = self.way(&context)?;
        let rounds = Rounds::new(first, way, self.parts.distinct, &context)?;
        let rows = stream::try_unfold((rounds, metrics), |(mut rounds, metrics)| async move {
            let batch = rounds.next().await?;
            Ok(batch.map(|batch| {
                metrics.record_output(batch.num_rows());
                (batch, (rounds, metrics))
            }))
        });
        let rows = RecordBatchStreamAdapter::new(self.schema(), rows);
        Ok(make_cooperative(Box::pin(rows)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }
}

/// How often `plan` reads the table of the recursive query `name`. One within it may have the same name.
fn references(plan: &Arc<dyn ExecutionPlan>, name: &str) -> usize {
    if let Some(work) = plan.downcast_ref::<Work>() {
        return usize::from(work.name == name);
    }
    let below = |plans: &mut dyn Iterator<Item = &Arc<dyn ExecutionPlan>>| {
        plans.map(|plan| references(plan, name)).sum()
    };
    match plan.downcast_ref::<Recursion>() {
        Some(other) if other.parts.name == name => references(&other.parts.first, name),
        Some(other) => below(&mut [&other.parts.first, &other.parts.term].into_iter()),
        None => below(&mut plan.children().into_iter()),
    }
}

/// `plan` with the rows that a run puts into `slot` for the table of the recursive query `name`.
fn filled(
    plan: Arc<dyn ExecutionPlan>,
    name: &str,
    slot: &Arc<Slot>,
) -> Result<Arc<dyn ExecutionPlan>> {
    if let Some(work) = plan.downcast_ref::<Work>() {
        if work.name != name {
            return Ok(plan);
        }
        let slot = Some(Arc::clone(slot));
        let (schema, projection) = (Arc::clone(&work.schema), work.projection.clone());
        return Ok(Arc::new(Work::new(
            work.name.clone(),
            schema,
            projection,
            slot,
        )));
    }
    let shadowed = plan
        .downcast_ref::<Recursion>()
        .is_some_and(|other| other.parts.name == name);
    let mut children = Vec::new();
    for (at, child) in plan.children().into_iter().enumerate() {
        let child = Arc::clone(child);
        children.push(if shadowed && at > 0 {
            child
        } else {
            filled(child, name, slot)?
        });
    }
    with_children(plan, children)
}
