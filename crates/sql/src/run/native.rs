//! Queries on Atoll's own engine.

use std::sync::Arc;

use arrow::record_batch::RecordBatch;
use datafusion::execution::SendableRecordBatchStream;
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use engine::{Error, Execution, Prepared, ProfileCollector, Runtime};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;

use crate::error::Result;
use crate::lower::hybrid;
use crate::lower::hybrid::HybridPlan;
use crate::lower::plan::{Findings, lower};
use crate::messages::plain;
use crate::resources::{operators, stop};
use crate::run::context::StatementContext;
use crate::run::watch::{Part, Profile, Profiled};

/// What the engine runs of a query.
#[derive(Debug)]
pub(crate) enum NativePlan {
    /// All of it.
    Whole(Arc<Prepared>),
    /// Subplans, over whose rows DataFusion runs the rest.
    Hybrid(Box<HybridPlan>),
}

/// Batches of an answer that wait to be taken.
const QUEUE: usize = 4;

/// A plan that runs: its rows, and what of it DataFusion runs.
pub(crate) struct Running {
    pub rows: SendableRecordBatchStream,
    /// The parts that the engine runs, if they are measured: of a whole plan the measures come with its last row.
    pub parts: Vec<Part>,
    pub rest: Option<Arc<dyn ExecutionPlan>>,
    /// What the engine did; complete once all rows were taken.
    pub profile: Profile,
}

impl NativePlan {
    /// What runs it, as [`Statistics`](crate::run::clock::Statistics) tell it.
    pub(crate) fn ran_on(&self) -> &'static str {
        match self {
            NativePlan::Whole(_) => "algebra",
            NativePlan::Hybrid(_) => "both",
        }
    }

    /// What it will do, a line each.
    pub(crate) fn explain(&self) -> Vec<String> {
        let hybrid = match self {
            NativePlan::Whole(prepared) => return prepared.explain(),
            NativePlan::Hybrid(hybrid) => hybrid,
        };
        let mut lines = Vec::new();
        for (number, subplan) in hybrid.subplans.iter().enumerate() {
            let readers = match hybrid.readers(number) {
                0 | 1 => String::new(),
                readers => format!(", read {readers} times"),
            };
            lines.push(format!("part {}, run by the algebra{readers}:", number + 1));
            let own = subplan.prepared.explain();
            lines.extend(own.into_iter().map(|line| format!("  {line}")));
        }
        lines.push("the rest, run by datafusion:".into());
        lines.extend(told(&hybrid.refusals).map(|line| format!("  {line}")));
        let rest = hybrid.plan.display_indent().to_string();
        lines.extend(rest.lines().map(|line| format!("  {line}")));
        lines
    }
}

/// The reasons why the engine does not run a part, a line each.
pub(crate) fn told(refusals: &[String]) -> impl Iterator<Item = String> {
    let plain = |why: &String| plain::message(why.lines().next().unwrap_or_default());
    refusals
        .iter()
        .map(move |why| format!("not in Atoll's engine: {}", plain(why)))
}

/// What there is of a plan for the engine.
pub(crate) struct Preparation {
    /// What the engine runs; `None` if there is nothing in the plan that it can run and that is worth it.
    pub native: Option<NativePlan>,
    /// Why it does not run all of it, each reason once.
    pub refusals: Vec<String>,
}

/// What the engine runs of `plan`, which the rules have run on.
pub(crate) async fn prepare(context: &StatementContext, plan: &LogicalPlan) -> Result<Preparation> {
    let none = |why| Preparation {
        native: None,
        refusals: vec![why],
    };
    let mut findings = match Findings::of(plan, context.task()) {
        Ok(findings) => findings,
        Err(Error::Unsupported(why)) => return Ok(none(why)),
        Err(e) => return Err(e.into()),
    };
    let why = match lower(&context.state, plan, &mut findings).await {
        Ok(prepared) => {
            return Ok(Preparation {
                native: Some(NativePlan::Whole(Arc::new(prepared))),
                refusals: vec![],
            });
        }
        Err(Error::Unsupported(why)) => why,
        Err(e) => return Err(e.into()),
    };
    let (hybrid, refusals) = hybrid::extract(&context.state, plan, &mut findings, why).await?;
    Ok(Preparation {
        native: hybrid.map(|own| NativePlan::Hybrid(Box::new(own))),
        refusals,
    })
}

/// What became of a plan by the time of its first rows.
pub(crate) enum Outcome {
    Running(Running),
    /// The memory limit does not leave enough for it.
    OutOfMemory(Error),
    /// It turned out that the engine cannot run it.
    Unsupported,
}

impl Outcome {
    /// The outcome of a plan that failed before its first rows; an error if the query itself is at fault.
    fn of(e: Error) -> Result<Outcome> {
        match e {
            Error::Memory { .. } => Ok(Outcome::OutOfMemory(e)),
            Error::Unsupported(_) => Ok(Outcome::Unsupported),
            e => Err(e.into()),
        }
    }
}

/// Runs `plan` until its first rows come; the operators are measured by `collector`, if there is one.
pub(crate) async fn run(
    context: &StatementContext,
    plan: &NativePlan,
    collector: Option<&Arc<ProfileCollector>>,
) -> Result<Outcome> {
    let mut execution = context.instance.execution.clone();
    if let Some(collector) = collector {
        // Nothing of an attempt before this one.
        collector.take();
        execution.profile = Some(Arc::clone(collector));
    }
    let hybrid = match plan {
        NativePlan::Whole(prepared) => {
            let outcome = whole(context, prepared, execution).await?;
            return Ok(match outcome {
                Outcome::Running(mut running) if collector.is_some() => {
                    running.parts.push((prepared.outline(), vec![]));
                    Outcome::Running(running)
                }
                outcome => outcome,
            });
        }
        NativePlan::Hybrid(hybrid) => hybrid,
    };
    let (mut profile, mut parts) = (vec![], vec![]);
    for subplan in &hybrid.subplans {
        match subplan.fill(&runtime(context), &execution).await {
            Ok(lines) => profile.extend(lines),
            Err(e) => return Outcome::of(e),
        }
        parts.extend(collector.map(|own| (subplan.prepared.outline(), own.take())));
    }
    let running = rest(context, hybrid, profile).await?;
    Ok(Outcome::Running(Running { parts, ..running }))
}

/// Runs `plan` to its end and measures its operators, which costs a few per cent; `None` if the engine cannot run it now.
pub(crate) async fn profiled(
    context: &StatementContext,
    plan: &NativePlan,
) -> Result<Option<Profiled>> {
    let collector = Arc::new(ProfileCollector::default());
    let mut execution = context.instance.execution.clone();
    execution.profile = Some(Arc::clone(&collector));
    let hybrid = match plan {
        NativePlan::Hybrid(hybrid) => hybrid,
        NativePlan::Whole(prepared) => {
            let sent = sent(
                Arc::clone(prepared),
                runtime(context),
                execution,
                Profile::default(),
            );
            let mut batches = std::pin::pin!(sent);
            let mut rows = 0;
            while let Some(batch) = batches.next().await {
                match batch {
                    Ok(batch) => rows += batch.num_rows() as u64,
                    // Whoever asks gets no rows, so that another executor can still take over.
                    Err(e) => return Outcome::of(e).map(|_| None),
                }
            }
            let parts = vec![(prepared.outline(), collector.take())];
            return Ok(Some(Profiled {
                rows,
                parts,
                rest: None,
            }));
        }
    };
    let mut parts = Vec::new();
    for subplan in &hybrid.subplans {
        if let Err(e) = subplan.fill(&runtime(context), &execution).await {
            return Outcome::of(e).map(|_| None);
        }
        parts.push((subplan.prepared.outline(), collector.take()));
    }
    let mut running = rest(context, hybrid, Vec::new()).await?;
    let mut rows = 0;
    while let Some(batch) = running.rows.try_next().await? {
        rows += batch.num_rows() as u64;
    }
    Ok(Some(Profiled {
        rows,
        parts,
        rest: running.rest,
    }))
}

/// Runs a prepared program to its end; returns its rows and its profile.
pub(crate) async fn batches(
    context: &StatementContext,
    prepared: &Prepared,
) -> engine::Result<(Vec<RecordBatch>, Vec<String>)> {
    let runtime = runtime(context);
    prepared.run_by(&runtime, &context.instance.execution).await
}

fn runtime(context: &StatementContext) -> Runtime {
    let workers = context.instance.workers();
    Runtime {
        workers: Arc::clone(workers),
        budget: Arc::clone(context.budget()),
        traffic: Arc::clone(context.clock.traffic()),
        nearness: workers.layout().nearness().clone(),
        stop: stop::present(),
    }
}

/// Runs a whole query until its first rows come: after that no other executor can take over.
async fn whole(
    context: &StatementContext,
    prepared: &Arc<Prepared>,
    execution: Execution,
) -> Result<Outcome> {
    let profile = Profile::default();
    let mut rows = Box::pin(sent(
        prepared.clone(),
        runtime(context),
        execution,
        profile.clone(),
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
        parts: vec![],
        rest: None,
        profile,
    }))
}

/// The rows of a prepared program as it sends them.
fn sent(
    prepared: Arc<Prepared>,
    runtime: Runtime,
    execution: Execution,
    profile: Profile,
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
            Ok(lines) => profile.lock().extend(lines),
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

/// Runs DataFusion's part of a hybrid plan, once the subplans have run.
async fn rest(
    context: &StatementContext,
    hybrid: &HybridPlan,
    profile: Vec<String>,
) -> Result<Running> {
    let planner = context.state.query_planner();
    let physical = planner
        .create_physical_plan(&hybrid.plan, &context.state)
        .await?;
    let physical = stop::watched(physical)?;
    Ok(Running {
        rows: operators::rows(Arc::clone(&physical), context.task())?,
        parts: vec![],
        rest: Some(physical),
        profile: Arc::new(parking_lot::Mutex::new(profile)),
    })
}
