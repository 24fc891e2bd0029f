//! Queries on our own engine.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use engine::{Error, Prepared, Runtime};
use futures::stream;

use crate::Result;
use crate::lower::lower;
use crate::parts::{self, Parts};
use crate::scope::Scope;
use crate::stop;

/// What our engine runs of a query.
#[derive(Debug)]
pub(crate) enum Program {
    /// All.
    Whole(Prepared),
    /// Parts, over whose rows DataFusion runs the rest.
    Parts(Parts),
}

/// A program on its way: its rows, and what of it DataFusion runs.
pub(crate) struct Running {
    pub rows: SendableRecordBatchStream,
    pub rest: Option<Arc<dyn ExecutionPlan>>,
    /// How it went, a line each.
    pub told: Vec<String>,
}

impl Program {
    /// What runs it, as statistics tell it.
    pub(crate) fn ran_on(&self) -> &'static str {
        match self {
            Program::Whole(_) => "algebra",
            Program::Parts(_) => "both",
        }
    }

    /// A line for each thing it does.
    pub(crate) fn explain(&self) -> Vec<String> {
        let parts = match self {
            Program::Whole(prepared) => return prepared.explain(),
            Program::Parts(parts) => parts,
        };
        let mut lines = Vec::new();
        for (number, part) in parts.parts.iter().enumerate() {
            lines.push(format!("part {}, run by the algebra:", number + 1));
            let own = part.prepared.explain();
            lines.extend(own.into_iter().map(|line| format!("  {line}")));
        }
        lines.push("the rest, run by datafusion:".into());
        let rest = parts.plan.display_indent().to_string();
        lines.extend(rest.lines().map(|line| format!("  {line}")));
        lines
    }
}

/// The program of `plan`; `None` if the engine cannot run anything of it that is worth it.
pub(crate) async fn prepare(scope: &Scope, plan: &LogicalPlan) -> Result<Option<Program>> {
    let optimised = scope.state.optimize(plan)?;
    match lower(&scope.state, &optimised).await {
        Ok(prepared) => Ok(Some(Program::Whole(prepared))),
        Err(Error::Unsupported(_)) => {
            let parts = parts::carve(&scope.state, &optimised).await?;
            Ok(parts.map(Program::Parts))
        }
        Err(e) => Err(e.into()),
    }
}

/// Runs a program; `None` if the memory limit does not leave enough for it, and somebody who can spill must.
pub(crate) async fn run(scope: &Scope, program: &Program) -> Result<Option<Running>> {
    let done = match program {
        Program::Whole(prepared) => whole(scope, prepared).await,
        Program::Parts(parts) => {
            let mut told = vec![];
            for part in &parts.parts {
                let filled = match batches(scope, &part.prepared).await {
                    Ok((rows, lines)) => {
                        told.extend(lines);
                        let width = scope.engine.workers().width();
                        part.fill(rows, width, &scope.engine.budget)
                    }
                    Err(e) => Err(e),
                };
                match filled {
                    Ok(()) => {}
                    Err(Error::Memory { .. } | Error::Unsupported(_)) => return Ok(None),
                    Err(e) => return Err(e.into()),
                }
            }
            return rest(scope, parts, told).await.map(Some);
        }
    };
    match done {
        Ok(running) => Ok(Some(running)),
        Err(Error::Memory { .. } | Error::Unsupported(_)) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Runs a program to its end, and tells how it went, a line each.
pub(crate) async fn batches(
    scope: &Scope,
    prepared: &Prepared,
) -> engine::Result<(Vec<RecordBatch>, Vec<String>)> {
    let workers = scope.engine.workers();
    let runtime = Runtime {
        workers: Arc::clone(workers),
        budget: Arc::clone(&scope.engine.budget),
        traffic: Arc::clone(scope.clock.traffic()),
        nearness: workers.layout().nearness().clone(),
        stop: stop::present(),
    };
    prepared.run_by(&runtime, &scope.engine.execution).await
}

async fn whole(scope: &Scope, prepared: &Prepared) -> engine::Result<Running> {
    let (batches, told) = batches(scope, prepared).await?;
    let rows = stream::iter(batches.into_iter().map(Ok));
    let rows = RecordBatchStreamAdapter::new(Arc::clone(prepared.schema()), rows);
    Ok(Running {
        rows: Box::pin(rows),
        rest: None,
        told,
    })
}

/// DataFusion's part, once the others have run.
async fn rest(scope: &Scope, parts: &Parts, told: Vec<String>) -> Result<Running> {
    let planner = scope.state.query_planner();
    let physical = planner
        .create_physical_plan(&parts.plan, &scope.state)
        .await?;
    let physical = crate::stop::watched(physical)?;
    Ok(Running {
        rows: execute_stream(Arc::clone(&physical), scope.task())?,
        rest: Some(physical),
        told,
    })
}
