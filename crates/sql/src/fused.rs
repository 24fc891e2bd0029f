//! Queries on our own engine.

use std::sync::Arc;

use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use engine::{Error, Prepared, Runtime};
use futures::stream;

use crate::Result;
use crate::lower::lower;
use crate::scope::Scope;

/// The program of `plan`; `None` if the engine cannot run it.
pub(crate) async fn prepare(scope: &Scope, plan: &LogicalPlan) -> Result<Option<Prepared>> {
    let optimised = scope.state.optimize(plan)?;
    match lower(&scope.state, &optimised).await {
        Ok(prepared) => Ok(Some(prepared)),
        Err(Error::Unsupported(_)) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Runs a program, and tells how it went, a line each; `None` if the memory limit does not leave enough for it, and somebody who can spill must.
pub(crate) async fn run(
    scope: &Scope,
    prepared: &Prepared,
) -> Result<Option<(SendableRecordBatchStream, Vec<String>)>> {
    let workers = scope.engine.workers();
    let runtime = Runtime {
        workers: Arc::clone(workers),
        budget: Arc::clone(&scope.engine.budget),
        traffic: Arc::clone(scope.clock.traffic()),
        nearness: workers.layout().nearness().clone(),
    };
    let execution = &scope.engine.execution;
    let (batches, told) = match prepared.run_by(&runtime, execution).await {
        Ok(answer) => answer,
        Err(Error::Memory { .. } | Error::Unsupported(_)) => return Ok(None),
        Err(e) => return Err(e.into()),
    };
    let rows = stream::iter(batches.into_iter().map(Ok));
    let schema = Arc::clone(prepared.schema());
    let stream = Box::pin(RecordBatchStreamAdapter::new(schema, rows));
    Ok(Some((stream, told)))
}
