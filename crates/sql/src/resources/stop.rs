//! Stopping operators that do not yield.
//!
//! Dropping a statement's future aborts its task, which takes effect where the task next yields.
//! DataFusion's operators do so from batch to batch, except for one: a nested-loop join goes through all
//! pairs of a batch before it looks up, and where none of them pass, that may take hours. So its filter is
//! wrapped in one that fails once the statement was cancelled. What it finds, it gives out without looking up either: it is
//! made to yield after some batches, so that other statements have their turns. Atoll's own engine checks the switch itself.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use engine::Stop;

tokio::task_local! {
    /// The switch of the statement that this task runs.
    static STATEMENT: Stop;
}

/// Runs `work` with `stop` as the switch of its statement.
pub(crate) fn over<F: Future>(stop: Stop, work: F) -> impl Future<Output = F::Output> {
    STATEMENT.scope(stop, work)
}

/// The switch of the statement that this task runs; if it runs none, one that never stops anything.
pub(crate) fn present() -> Stop {
    STATEMENT.try_with(Stop::clone).unwrap_or_default()
}

/// `plan`, in which operators that would not yield check the switch of the present statement.
pub(crate) fn watched(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let stop = present();
    let watch = |plan: Arc<dyn ExecutionPlan>| {
        let watched = plan
            .downcast_ref::<NestedLoopJoinExec>()
            .and_then(|join| Some((join, join.filter()?)))
            .map(|(join, filter)| rebuilt(join, filter, &stop));
        match watched {
            Some(join) => {
                let join: Arc<dyn ExecutionPlan> = Arc::new(join?);
                Ok(Transformed::yes(Arc::new(CooperativeExec::new(join)) as _))
            }
            None => Ok(Transformed::no(plan)),
        }
    };
    Ok(plan.transform_up(watch)?.data)
}

fn rebuilt(
    join: &NestedLoopJoinExec,
    filter: &JoinFilter,
    stop: &Stop,
) -> Result<NestedLoopJoinExec> {
    let watched = Watched {
        filter: Arc::clone(filter.expression()),
        stop: stop.clone(),
    };
    let filter = JoinFilter::new(
        Arc::new(watched),
        filter.column_indices().to_vec(),
        Arc::clone(filter.schema()),
    );
    let projection = join.projection().as_ref().map(|columns| columns.to_vec());
    NestedLoopJoinExec::try_new(
        Arc::clone(join.left()),
        Arc::clone(join.right()),
        Some(filter),
        join.join_type(),
        projection,
    )
}

/// A filter that fails once its statement was cancelled. Equality and hash ignore the switch.
#[derive(Debug)]
struct Watched {
    filter: Arc<dyn PhysicalExpr>,
    stop: Stop,
}

impl PartialEq for Watched {
    fn eq(&self, other: &Watched) -> bool {
        self.filter.eq(&other.filter)
    }
}

impl Eq for Watched {}

impl Hash for Watched {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.filter.hash(state);
    }
}

impl fmt::Display for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt(f)
    }
}

impl PhysicalExpr for Watched {
    fn evaluate(&self, batch: &RecordBatch) -> Result<ColumnarValue> {
        if self.stop.stopped() {
            return Err(DataFusionError::Execution(
                "the statement was cancelled".into(),
            ));
        }
        self.filter.evaluate(batch)
    }

    fn return_field(&self, schema: &Schema) -> Result<FieldRef> {
        self.filter.return_field(schema)
    }

    fn children(&self) -> Vec<&Arc<dyn PhysicalExpr>> {
        vec![&self.filter]
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn PhysicalExpr>>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        Ok(Arc::new(Watched {
            filter: children.pop().unwrap_or_else(|| Arc::clone(&self.filter)),
            stop: self.stop.clone(),
        }))
    }

    fn fmt_sql(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.filter.fmt_sql(f)
    }
}
