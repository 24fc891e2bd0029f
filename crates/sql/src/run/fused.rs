//! Queries on our own engine.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{ExecutionPlan, execute_stream};
use engine::{Error, Execution, Prepared, Runtime};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;

use crate::error::Result;
use crate::lower::hybrid::{self, Parts};
use crate::lower::lower;
use crate::resources::stop;
use crate::run::context::Scope;

/// What our engine runs of a query.
#[derive(Debug)]
pub(crate) enum Program {
    /// All.
    Whole(Arc<Prepared>),
    /// Parts, over whose rows DataFusion runs the rest.
    Parts(Parts),
}

/// Lines that come to be while a query runs.
pub(crate) type Told = Arc<parking_lot::Mutex<Vec<String>>>;

/// Batches of an answer that wait to be taken.
const QUEUE: usize = 4;

/// A program on its way: its rows, and what of it DataFusion runs.
pub(crate) struct Running {
    pub rows: SendableRecordBatchStream,
    pub rest: Option<Arc<dyn ExecutionPlan>>,
    /// How it went, a line each, once all rows were taken.
    pub told: Told,
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
    let optimised = crate::optimize::rules::logical(&scope.state, plan)?;
    match lower(&scope.state, &optimised).await {
        Ok(prepared) => Ok(Some(Program::Whole(Arc::new(prepared)))),
        Err(Error::Unsupported(_)) => {
            let parts = hybrid::carve(&scope.state, &optimised).await?;
            Ok(parts.map(Program::Parts))
        }
        Err(e) => Err(e.into()),
    }
}

/// What became of a program once its first rows were due.
pub(crate) enum Outcome {
    Running(Running),
    /// The memory limit does not leave enough for it.
    Short,
    /// It turned out to be nothing for our engine.
    NotOurs,
}

impl Outcome {
    /// Of a program that could not begin; any other error is the query's.
    fn of(e: Error) -> Result<Outcome> {
        match e {
            Error::Memory { .. } => Ok(Outcome::Short),
            Error::Unsupported(_) => Ok(Outcome::NotOurs),
            e => Err(e.into()),
        }
    }
}

/// Runs a program until its first rows come.
pub(crate) async fn run(scope: &Scope, program: &Program) -> Result<Outcome> {
    let parts = match program {
        Program::Whole(prepared) => return whole(scope, prepared).await,
        Program::Parts(parts) => parts,
    };
    let mut told = vec![];
    for part in &parts.parts {
        match part.fill(&runtime(scope), &scope.engine.execution).await {
            Ok(lines) => told.extend(lines),
            Err(e) => return Outcome::of(e),
        }
    }
    rest(scope, parts, told).await.map(Outcome::Running)
}

/// Runs a program to its end, and tells how it went, a line each.
pub(crate) async fn batches(
    scope: &Scope,
    prepared: &Prepared,
) -> engine::Result<(Vec<RecordBatch>, Vec<String>)> {
    let runtime = runtime(scope);
    prepared.run_by(&runtime, &scope.engine.execution).await
}

fn runtime(scope: &Scope) -> Runtime {
    let workers = scope.engine.workers();
    Runtime {
        workers: Arc::clone(workers),
        budget: Arc::clone(&scope.engine.budget),
        traffic: Arc::clone(scope.clock.traffic()),
        nearness: workers.layout().nearness().clone(),
        stop: stop::present(),
    }
}

/// Runs it until its first rows come: from then on it is too late for somebody else to run it.
async fn whole(scope: &Scope, prepared: &Arc<Prepared>) -> Result<Outcome> {
    let told = Told::default();
    let mut rows = Box::pin(sent(
        prepared.clone(),
        runtime(scope),
        scope.engine.execution.clone(),
        told.clone(),
    ));
    let first = match rows.next().await {
        None => None,
        Some(Ok(batch)) => Some(Ok(batch)),
        Some(Err(e)) => return Outcome::of(e),
    };
    let rows = stream::iter(first).chain(rows);
    let rows = rows.map_err(|e| crate::error::Error::from(e).into());
    let rows = RecordBatchStreamAdapter::new(Arc::clone(prepared.schema()), rows);
    Ok(Outcome::Running(Running {
        rows: Box::pin(rows),
        rest: None,
        told,
    }))
}

/// The rows of a program while it runs.
fn sent(
    prepared: Arc<Prepared>,
    runtime: Runtime,
    execution: Execution,
    told: Told,
) -> impl Stream<Item = engine::Result<RecordBatch>> + Send {
    let (sender, mut rows) = mpsc::channel(QUEUE);
    async_stream::stream! {
        let work = prepared.send(&runtime, &execution, sender);
        let mut work = std::pin::pin!(work);
        let done = loop {
            tokio::select! {
                biased;
                Some(batch) = rows.recv() => yield Ok(batch),
                done = &mut work => break done,
            }
        };
        match done {
            Ok(lines) => told.lock().extend(lines),
            Err(e) => {
                yield Err(e);
                return;
            }
        }
        while let Some(batch) = rows.recv().await {
            yield Ok(batch);
        }
    }
}

/// DataFusion's part, once the others have run.
async fn rest(scope: &Scope, parts: &Parts, told: Vec<String>) -> Result<Running> {
    let planner = scope.state.query_planner();
    let physical = planner
        .create_physical_plan(&parts.plan, &scope.state)
        .await?;
    let physical = crate::resources::stop::watched(physical)?;
    Ok(Running {
        rows: execute_stream(Arc::clone(&physical), scope.task())?,
        rest: Some(physical),
        told: Arc::new(parking_lot::Mutex::new(told)),
    })
}
