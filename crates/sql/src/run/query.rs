//! Who runs a query, and who does when memory is short.
//!
//! Our own engine is first. Where the limit leaves it too little, which shows before its first row, other queries may
//! be the cause: it waits until one of them ends and tries again. Where there is none, DataFusion is next, whose sorts
//! and aggregates spill; and where the table of a join does not fit either, DataFusion with joins that sort, and spill.

use std::sync::Arc;
use std::time::Instant;

use datafusion::config::ConfigNonZeroUsize;
use datafusion::error::DataFusionError;
use datafusion::execution::{SendableRecordBatchStream, SessionState};
use datafusion::logical_expr::LogicalPlan;
use datafusion::physical_plan::execute_stream;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::sql::sqlparser::ast::Statement as Sql;
use futures::{StreamExt, TryStreamExt, stream};

use crate::error::Result;
use crate::frontend::rewrite;
use crate::resources::admission::{Inside, PATIENCE};
use crate::run::answer::{Answer, Clock};
use crate::run::context::Scope;
use crate::run::engine::Engine;
use crate::run::fused::{self, Outcome, Program};

/// Rows of a batch where memory is short: a sort that merges holds one of each run.
const FRUGAL_BATCH: usize = 1024;

/// Runs `query` and gathers its rows.
pub(crate) async fn run(engine: &Arc<Engine>, query: Sql, started: Instant) -> Result<Answer> {
    let (stream, clock) = open(engine, query, started).await?;
    let schema = stream.schema();
    let batches = stream.try_collect().await?;
    Ok(Answer::rows_of(schema, batches, &clock))
}

/// Runs `query` until its first rows come.
pub(crate) async fn open(
    engine: &Arc<Engine>,
    query: Sql,
    started: Instant,
) -> Result<(SendableRecordBatchStream, Clock)> {
    let snapshot = engine.store.snapshot();
    let mut scope = Scope::new(engine, &snapshot, started)?;
    let plan = scope.plan(query, None).await?;
    let rows = rows(&mut scope, &plan).await?;
    Ok((rows, scope.clock))
}

/// The rows of `plan`, by whoever can, with the names that people see.
pub(crate) async fn rows(
    scope: &mut Scope,
    plan: &LogicalPlan,
) -> Result<SendableRecordBatchStream> {
    Ok(rewrite::named(found(scope, plan).await?))
}

async fn found(scope: &mut Scope, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
    if scope.engine.executor.is_ours()
        && let Some(program) = fused::prepare(scope, plan).await?
    {
        scope.clock.planned();
        if let Some(rows) = ours(scope, &program).await? {
            scope.clock.ran_on = program.ran_on();
            return Ok(rows);
        }
    }
    theirs(scope, plan).await
}

/// Our engine; `None` if memory does not suffice, or it is not for us after all.
async fn ours(scope: &Scope, program: &Program) -> Result<Option<SendableRecordBatchStream>> {
    let crowd = Arc::clone(&scope.engine.crowd);
    let turn = crowd.take_turn().await;
    let inside = crowd.enter();
    let begun = fused::run(scope, program).await;
    drop(turn);
    match begun? {
        Outcome::Running(running) => return Ok(Some(held(running.rows, inside))),
        Outcome::NotOurs => return Ok(None),
        Outcome::Short if inside.alone() => return Ok(None),
        Outcome::Short => drop(inside),
    }
    let mut queue = crowd.queue(PATIENCE).await;
    while let Some(inside) = queue.turn().await {
        if let Outcome::Running(running) = fused::run(scope, program).await? {
            return Ok(Some(held(running.rows, inside)));
        }
        if inside.alone() {
            break;
        }
    }
    Ok(None)
}

async fn theirs(scope: &mut Scope, plan: &LogicalPlan) -> Result<SendableRecordBatchStream> {
    let inside = scope.engine.crowd.enter();
    let first = begin(scope, &scope.state, plan).await;
    scope.clock.planned();
    let rows = match first {
        Err(e) if is_short(&e) => {
            let state = frugal(&scope.state, scope.engine.budget.limit());
            begin(scope, &state, plan).await?
        }
        rows => rows?,
    };
    Ok(held(rows, inside))
}

/// DataFusion, until its first rows come: joins have read one side by then.
async fn begin(
    scope: &Scope,
    state: &SessionState,
    plan: &LogicalPlan,
) -> std::result::Result<SendableRecordBatchStream, DataFusionError> {
    let physical =
        crate::resources::stop::watched(crate::optimize::rules::physical(state, plan).await?)?;
    let mut rows = execute_stream(physical, scope.task())?;
    let schema = rows.schema();
    let first = rows.try_next().await?;
    let rows = stream::iter(first.map(Ok)).chain(rows);
    Ok(Box::pin(RecordBatchStreamAdapter::new(schema, rows)))
}

fn is_short(e: &DataFusionError) -> bool {
    matches!(e.find_root(), DataFusionError::ResourcesExhausted(_))
}

/// The state with joins that sort both sides, which takes longer and spills. Each of the sorts that are under way at the
/// same time needs some memory to merge what it spilled: so few partitions, of small batches. With a single one DataFusion
/// makes no joins that sort.
fn frugal(state: &SessionState, memory_limit: u64) -> SessionState {
    let mut state = state.clone();
    let options = state.config_mut().options_mut();
    options.optimizer.prefer_hash_join = false;
    options.execution.target_partitions = 2;
    if let Ok(rows) = ConfigNonZeroUsize::try_new(FRUGAL_BATCH) {
        options.execution.batch_size = rows;
    }
    options.execution.sort_spill_reservation_bytes = memory_limit as usize / 64;
    state
}

/// The rows, with their query among those that run until the last.
fn held(rows: SendableRecordBatchStream, inside: Inside) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let rows = rows.inspect(move |_| {
        let _ = &inside;
    });
    Box::pin(RecordBatchStreamAdapter::new(schema, rows))
}
