//! Runs DataFusion's operators within the memory of their statement, which functions and aggregates in them ask for.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use futures::{StreamExt, stream};

use crate::functions::present::Memory;

/// The rows of `plan`.
///
/// # Errors
/// Those of beginning with it.
pub(crate) fn rows(
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    within_memory(task, |task| execute_stream(plan, task))
}

/// The rows of partition `number` of `plan`.
///
/// # Errors
/// Those of beginning with it.
pub(crate) fn partition(
    plan: &Arc<dyn ExecutionPlan>,
    number: usize,
    task: Arc<TaskContext>,
) -> Result<SendableRecordBatchStream> {
    within_memory(task, |task| plan.execute(number, task))
}

fn within_memory(
    task: Arc<TaskContext>,
    begin: impl FnOnce(Arc<TaskContext>) -> Result<SendableRecordBatchStream>,
) -> Result<SendableRecordBatchStream> {
    let memory = Memory::beginning(task.session_config().options());
    let mut rows = memory.during(|| begin(task))?;
    let schema = rows.schema();
    let rows = stream::poll_fn(move |cx| memory.during(|| rows.poll_next_unpin(cx)));
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}
