//! Stopping operators that do not yield.
//!
//! Dropping a statement's future aborts its task, which takes effect where the task next yields.
//! DataFusion's operators do so from batch to batch, except for one: a nested-loop join goes through all
//! pairs of a batch before it looks up, and where none of them pass, that may take hours. So its filter is
//! wrapped in one that fails once the statement was cancelled. What it finds, it gives out without looking up either: it is
//! made to yield after some batches, so that other statements have their turns. Atoll's own engine checks the switch itself.
//!
//! Once a statement has begun to commit it is cancelled no more: its switch is sealed, and whoever wanted to cancel it is
//! told what has become of it.

use std::any::Any;
use std::convert::Infallible;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use arrow::datatypes::{FieldRef, Schema};
use arrow::record_batch::RecordBatch;
use datafusion::common::runtime::{JoinSetTracer, set_join_set_tracer};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::error::{DataFusionError, Result};
use datafusion::logical_expr::ColumnarValue;
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::coop::CooperativeExec;
use datafusion::physical_plan::joins::NestedLoopJoinExec;
use datafusion::physical_plan::joins::utils::JoinFilter;
use engine::Stop;
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::functions::present::Memory;

tokio::task_local! {
    /// The statement that this task runs.
    static STATEMENT: Running;
}

/// What runs, and can be cancelled.
#[derive(Clone, Debug, Default)]
struct Running {
    stop: Stop,
    /// Held by each task that runs for it, so that whoever cancels it can wait until the last has ended.
    _alive: Option<mpsc::Sender<Infallible>>,
}

/// Runs `work` with `stop` as the switch of its statement, as a part of what is cancelled together with the present task.
pub(crate) fn over<F: Future>(stop: Stop, work: F) -> impl Future<Output = F::Output> {
    let alive = STATEMENT.try_with(|running| running._alive.clone());
    let running = Running {
        stop: stop.clone(),
        _alive: alive.ok().flatten(),
    };
    STATEMENT.scope(running, stop.over(work))
}

/// The switch of the statement that this task runs; if it runs none, one that never stops anything.
pub(crate) fn present() -> Stop {
    Stop::present()
}

/// Whether the statement that this task runs was cancelled.
pub(crate) fn is_stopped() -> bool {
    Stop::present().stopped()
}

/// How long whoever cancels something waits for its tasks to end. All look at the switch within a tenth of a second; this
/// is for those of libraries that do not.
pub(crate) const GRACE: Duration = Duration::from_secs(5);

/// Cancels what runs [over](Canceller::over) it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let runtime = tokio::runtime::Builder::new_current_thread().build()?;
/// let canceller = sql::Canceller::default();
/// let work = canceller.over(async { 42 });
/// assert_eq!(runtime.block_on(work), 42);
/// assert!(canceller.cancel(), "nothing was committing");
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Canceller {
    running: Running,
    ended: mpsc::Receiver<Infallible>,
}

impl Default for Canceller {
    fn default() -> Canceller {
        let (alive, ended) = mpsc::channel(1);
        let running = Running {
            stop: Stop::default(),
            _alive: Some(alive),
        };
        Canceller { running, ended }
    }
}

impl Canceller {
    /// Runs `work`, statements of a session, so that it can be cancelled.
    pub fn over<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        let running = self.running.clone();
        let stop = running.stop.clone();
        STATEMENT.scope(running, stop.over(work))
    }

    /// Cancels the work, which is to be dropped then. False if it has begun to commit: then it is to be awaited, as its
    /// outcome is what counts; statements that come after the commit are not run.
    pub fn cancel(&self) -> bool {
        self.running.stop.stop()
    }

    /// Waits until all tasks of work that was cancelled and dropped have ended, for some seconds at most.
    pub async fn ended(self) {
        let Canceller { running, mut ended } = self;
        drop(running);
        let _ = tokio::time::timeout(GRACE, ended.recv()).await;
    }
}

/// Has the tasks that DataFusion's operators spawn work for the statement that spawned them.
pub(crate) fn follow_tasks() {
    // It is the same each time.
    let _ = set_join_set_tracer(&Followed);
}

/// Gives a task the switch and the memory of the one that spawns it.
struct Followed;

impl JoinSetTracer for Followed {
    fn trace_future(
        &self,
        mut work: BoxFuture<'static, Box<dyn Any + Send>>,
    ) -> BoxFuture<'static, Box<dyn Any + Send>> {
        let memory = Memory::present();
        let work = std::future::poll_fn(move |cx| memory.during(|| work.as_mut().poll(cx)));
        Box::pin(Stop::present().over(work))
    }

    fn trace_block(
        &self,
        work: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        let (stop, memory) = (Stop::present(), Memory::present());
        Box::new(move || stop.within(|| memory.during(work)))
    }
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
