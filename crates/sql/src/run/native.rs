//! Queries on Atoll's own engine.

use std::sync::Arc;

use crate::resources::stream::RowStream;
use arrow::record_batch::RecordBatch;
use datafusion_execution::SendableRecordBatchStream;
use datafusion_expr::LogicalPlan;
use engine::{Execution, Prepared, ProfileCollector, Runtime};
use futures::{Stream, StreamExt, TryStreamExt, stream};
use tokio::sync::mpsc;

use crate::error::Result;
use crate::lower::plan::lower;
use crate::resources::stop;
use crate::run::context::StatementContext;
use crate::run::watch::{Profile, Profiled};

/// Batches of an answer that wait to be taken.
const QUEUE: usize = 4;

/// A program that runs.
pub(crate) struct Running {
    pub rows: SendableRecordBatchStream,
    /// What the engine did; complete once all rows were taken.
    pub profile: Profile,
}

/// The program of `plan`, which the rules have run on.
///
/// # Errors
/// [`Error::Unsupported`](crate::Error::Unsupported) for what the engine cannot run.
pub(crate) async fn prepare(
    context: &StatementContext,
    plan: &LogicalPlan,
) -> Result<Arc<Prepared>> {
    let prepared = lower(
        &context.planner,
        plan,
        &context.task(),
        context.instance.execution.any_join_order,
    )
    .await?;
    Ok(Arc::new(prepared))
}

/// Runs a program until its first rows come; its operators are measured by `collector`, if there is one.
pub(crate) async fn run(
    context: &StatementContext,
    prepared: &Arc<Prepared>,
    collector: Option<&Arc<ProfileCollector>>,
) -> engine::Result<Running> {
    let mut execution = context.instance.execution.clone();
    if let Some(collector) = collector {
        // Nothing of an attempt before this one.
        collector.take();
        execution.profile = Some(Arc::clone(collector));
    }
    let profile = Profile::default();
    let mut rows = Box::pin(sent(
        prepared.clone(),
        runtime(context),
        execution,
        profile.clone(),
    ));
    let first = rows.next().await.transpose()?;
    let rows = stream::iter(first.map(Ok)).chain(rows);
    let rows = rows.map_err(|e| crate::error::Error::from(e).into());
    let rows = RowStream::new(Arc::clone(prepared.schema()), rows);
    Ok(Running {
        rows: Box::pin(rows),
        profile,
    })
}

/// Runs a program to its end and measures its operators, which costs a few per cent.
pub(crate) async fn profiled(
    context: &StatementContext,
    prepared: &Arc<Prepared>,
) -> Result<Profiled> {
    let collector = Arc::new(ProfileCollector::default());
    let mut running = run(context, prepared, Some(&collector)).await?;
    let mut rows = 0;
    while let Some(batch) = running.rows.try_next().await? {
        rows += batch.num_rows() as u64;
    }
    Ok(Profiled {
        rows,
        stages: prepared.outline(),
        records: collector.take(),
    })
}

/// Runs a program to its end; returns its rows and its profile.
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

/// The rows of a program as it sends them.
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
