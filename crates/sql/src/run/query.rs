//! How a query runs, and what becomes of it when memory is short.
//!
//! Atoll's own engine runs every query. Where the memory limit leaves it too little, which shows before its first row, other
//! queries may be the cause: the query waits until one of them ends and tries again. If no other query runs, or the wait was
//! too long, it fails and says for what there was no memory.

use std::collections::VecDeque;
use std::sync::{Arc, OnceLock};

use crate::resources::stream::RowStream;
use arrow::record_batch::RecordBatch;
use datafusion_execution::SendableRecordBatchStream;
use datafusion_expr::LogicalPlan;
use engine::Prepared;
use futures::{StreamExt, TryStreamExt, stream};
use memory::Budget;
use sqlparser::ast::Statement as Sql;

use crate::error::{Error, Result};
use crate::optimize::rules;
use crate::resources::admission::{PATIENCE, Ticket};
use crate::resources::budget::{Held, footprint};
use crate::run::answer::Answer;
use crate::run::clock::Clock;
use crate::run::context::StatementContext;
use crate::run::generic_plans::GenericRun;
use crate::run::kept_plans::{self, Planned, Slot};
use crate::run::native::Running;
use crate::run::origins::Origins;
use crate::run::watch::{Ran, Watch};
use crate::run::{native, output, shared_plans, visible};

/// A query that is to run.
pub(crate) enum Asked {
    /// As it is written, and where its plan is kept if it is.
    Written(Arc<Sql>, Option<Arc<Slot>>),
    /// One that was prepared.
    Prepared(Box<GenericRun>),
}

/// Most labels of a program that is kept, as it may keep a value of a function for each.
const MOST_LABELS: usize = 16_384;

/// Batches of a query that somebody may have who takes them when they like: in the queue, at either end of it, and the one
/// that is being made.
const IN_FLIGHT: usize = 4;

/// Bytes of rows that are handed on together, about.
const PIECE: u64 = 4 << 20;

/// Runs `query` and gathers its rows. Those of a client of a server, who may take long to read them, are accounted for.
pub(crate) async fn run(context: StatementContext, query: Sql) -> Result<Answer> {
    let mut held = budget_of_client(&context).map(|budget| Held::of(&budget));
    let Opened {
        mut rows,
        clock,
        origins,
    } = opened(context, Asked::Written(Arc::new(query), None)).await?;
    let schema = rows.schema();
    let mut batches = Vec::new();
    while let Some(batch) = rows.try_next().await? {
        if let Some(held) = &mut held {
            account(held, &batch)?;
        }
        batches.push(batch);
    }
    let answer = Answer::rows_of(schema, batches, &clock).with_origins(origins);
    Ok(answer.holding(held))
}

/// The memory in which rows are accounted for that wait for a client; none where whoever asks takes them at once.
fn budget_of_client(context: &StatementContext) -> Option<Arc<Budget>> {
    context
        .settings
        .is_served()
        .then(|| Arc::clone(context.budget()))
}

/// Takes the memory of a batch that waits for a client.
fn account(held: &mut Held, batch: &RecordBatch) -> Result<()> {
    held.more(footprint(batch)).map_err(|e| Error::Memory {
        message: format!("rows wait in memory for the client: {e}"),
    })
}

/// `rows` in pieces, of which so many as may wait for their reader are accounted for: a batch of wide rows is made only when
/// little is left of the one before.
fn accounted(rows: SendableRecordBatchStream, budget: Arc<Budget>) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let mut waiting: VecDeque<Arc<Held>> = VecDeque::new();
    let rows = rows.flat_map(move |batch| {
        let mut held = Held::of(&budget);
        let batch = batch.and_then(|batch| {
            account(&mut held, &batch)?;
            Ok(batch)
        });
        let held = Arc::new(held);
        let pieces: Vec<_> = match batch {
            Ok(batch) => pieces(&batch).into_iter().map(Ok).collect(),
            Err(e) => vec![Err(e)],
        };
        for _ in &pieces {
            waiting.push_back(Arc::clone(&held));
        }
        let most = pieces.len().max(IN_FLIGHT);
        while waiting.len() > most {
            waiting.pop_front();
        }
        stream::iter(pieces)
    });
    Box::pin(RowStream::new(schema, rows))
}

/// A batch in parts of no more than about [`PIECE`] bytes.
fn pieces(batch: &RecordBatch) -> Vec<RecordBatch> {
    let count = usize::try_from(footprint(batch) / PIECE).unwrap_or(usize::MAX);
    let rows = batch.num_rows().div_ceil(count.saturating_add(1)).max(1);
    if rows >= batch.num_rows() {
        return vec![batch.clone()];
    }
    let starts = (0..batch.num_rows()).step_by(rows);
    starts
        .map(|from| batch.slice(from, rows.min(batch.num_rows() - from)))
        .collect()
}

/// A query that runs.
pub(crate) struct Opened {
    pub rows: SendableRecordBatchStream,
    pub clock: Clock,
    /// Which of its columns are columns of a table.
    pub origins: Origins,
}

/// Runs a query until its first rows come, by the plan that was kept if it is still the plan of this statement, for a reader
/// who takes them one by one.
pub(crate) async fn open(context: StatementContext, asked: Asked) -> Result<Opened> {
    let budget = budget_of_client(&context);
    let opened = opened(context, asked).await?;
    Ok(match budget {
        Some(budget) => Opened {
            rows: accounted(opened.rows, budget),
            ..opened
        },
        None => opened,
    })
}

async fn opened(mut context: StatementContext, asked: Asked) -> Result<Opened> {
    let plans = &context.instance.plans;
    let planned = match &asked {
        Asked::Written(_, kept) => {
            let kept = kept.as_ref();
            kept.and_then(|kept| kept.find(plans, || context.plan_key()))
        }
        Asked::Prepared(run) => run.planned(&context).await?,
    };
    if let Some(planned) = planned {
        let rows = of_plan(&mut context, &planned).await?;
        let origins = match asked {
            Asked::Written(..) => context.origins(&planned.plan),
            // They were told when it was described.
            Asked::Prepared(_) => Origins::default(),
        };
        return Ok(Opened {
            rows: visible::rows(output::named(rows)),
            clock: context.clock,
            origins,
        });
    }
    let (query, kept) = match asked {
        Asked::Written(query, kept) => (Arc::unwrap_or_clone(query), kept),
        Asked::Prepared(run) => (run.written()?, None),
    };
    let plan = context.plan(query, None).await?;
    let origins = context.origins(&plan);
    let rows = match kept {
        Some(kept) => rows_to_repeat(&mut context, plan, &kept).await?,
        None => rows(&mut context, &plan).await?,
    };
    Ok(Opened {
        rows: visible::rows(rows),
        clock: context.clock,
        origins,
    })
}

/// The rows of `plan`, with the column names that people see.
pub(crate) async fn rows(
    context: &mut StatementContext,
    plan: &LogicalPlan,
) -> Result<SendableRecordBatchStream> {
    rows_of(context, plan, None).await
}

/// The same of the plan of a query that runs again and again, which is kept there if planning comes to the same then.
async fn rows_to_repeat(
    context: &mut StatementContext,
    plan: LogicalPlan,
    kept: &Arc<Slot>,
) -> Result<SendableRecordBatchStream> {
    let is_whole = kept_plans::is_lasting(&plan, false)? && !shared_plans::has_parts(&plan)?;
    let key = context.plan_key().filter(|_| is_whole);
    let Some(key) = key else {
        return rows(context, &plan).await;
    };
    let optimised = rules::logical(&context.planner, &plan)?;
    let planned = Planned::new(plan, optimised);
    let instance = Arc::clone(&context.instance);
    let plans = &instance.plans;
    plans.keep_again(kept, (key, planned.clone()), instance.workers())?;
    Ok(output::named(of_plan(context, &planned).await?))
}

/// The same of the plan by which a statement gets the rows that it writes, or finds those that it changes. Whoever
/// analyses the statement sees what runs it.
pub(crate) async fn rows_to_write(
    context: &mut StatementContext,
    plan: &LogicalPlan,
) -> Result<SendableRecordBatchStream> {
    let watch = context.watch.clone();
    rows_of(context, plan, watch.as_deref()).await
}

async fn rows_of(
    context: &mut StatementContext,
    plan: &LogicalPlan,
    watch: Option<&Watch>,
) -> Result<SendableRecordBatchStream> {
    if context.settings.locks().is_some_and(|locks| locks.waits()) {
        return waiting(context, plan, watch).await;
    }
    at_once(context, plan, watch).await
}

/// The same of a plan whose functions do not wait.
async fn at_once(
    context: &mut StatementContext,
    plan: &LogicalPlan,
    watch: Option<&Watch>,
) -> Result<SendableRecordBatchStream> {
    let plan = context.with_ctes(plan).await?;
    context.in_order(&plan)?;
    let optimised = rules::logical(&context.planner, &plan)?;
    Ok(output::named(
        found(context, &optimised, None, watch).await?,
    ))
}

/// The rows of a plan with functions that wait for locks: it runs again each time that it has got one, until it comes to its
/// end.
async fn waiting(
    context: &mut StatementContext,
    plan: &LogicalPlan,
    watch: Option<&Watch>,
) -> Result<SendableRecordBatchStream> {
    loop {
        let error = match gathered(context, plan, watch).await {
            Ok(rows) => return Ok(rows),
            Err(error) => error,
        };
        let locks = context.settings.locks().cloned();
        match locks {
            Some(locks) if locks.wait().await? => {}
            _ => return Err(error),
        }
    }
}

/// All rows of a plan, in memory.
async fn gathered(
    context: &mut StatementContext,
    plan: &LogicalPlan,
    watch: Option<&Watch>,
) -> Result<SendableRecordBatchStream> {
    let mut held = Held::of(context.budget());
    let mut rows = Box::pin(at_once(context, plan, watch)).await?;
    let (schema, mut batches) = (rows.schema(), Vec::new());
    while let Some(batch) = rows.try_next().await? {
        account(&mut held, &batch)?;
        batches.push(Ok(batch));
    }
    let rows = stream::iter(batches).inspect(move |_| {
        let _ = &held;
    });
    Ok(Box::pin(RowStream::new(schema, rows)))
}

/// The rows of a plan that is kept. It is lowered once.
async fn of_plan(
    context: &mut StatementContext,
    planned: &Planned,
) -> Result<SendableRecordBatchStream> {
    let program = Some(&*planned.program);
    found(context, &planned.optimised, program, None).await
}

/// The program of a plan, as it was lowered before if it was.
async fn lowered(
    context: &StatementContext,
    optimised: &LogicalPlan,
    program: Option<&OnceLock<Arc<Prepared>>>,
) -> Result<Arc<Prepared>> {
    if let Some(known) = program.and_then(OnceLock::get) {
        return Ok(Arc::clone(known));
    }
    let prepared = native::prepare(context, optimised).await?;
    if let Some(program) = program
        && prepared.labels() <= MOST_LABELS
    {
        program.get_or_init(|| Arc::clone(&prepared));
    }
    Ok(prepared)
}

/// The rows of a plan that the rules have run on; its `program` is kept if there is a place for it.
async fn found(
    context: &mut StatementContext,
    optimised: &LogicalPlan,
    program: Option<&OnceLock<Arc<Prepared>>>,
    watch: Option<&Watch>,
) -> Result<SendableRecordBatchStream> {
    let prepared = lowered(context, optimised, program).await?;
    context.clock.planned();
    on_engine(context, &prepared, watch).await
}

/// Runs a program until its first rows come.
async fn on_engine(
    context: &StatementContext,
    prepared: &Arc<Prepared>,
    watch: Option<&Watch>,
) -> Result<SendableRecordBatchStream> {
    let collector = watch.map(Watch::collector);
    let seen = |running: Running| {
        watch.inspect(|watch| watch.see(Ran::new(prepared, &running.profile)));
        running.rows
    };
    let admission = Arc::clone(&context.instance.admission);
    let permit = admission.permit().await;
    let ticket = admission.admit();
    let begun = native::run(context, prepared, collector).await;
    drop(permit);
    let short = match begun {
        Ok(running) => return Ok(held(seen(running), ticket)),
        Err(e @ engine::Error::Memory { .. }) => {
            // What others give back would not be this user's.
            if ticket.is_alone() || context.is_limited() || prepared.reads_once() {
                return Err(e.into());
            }
            drop(ticket);
            e
        }
        Err(e) => return Err(e.into()),
    };
    let mut wait = admission.wait_for_memory(PATIENCE).await;
    while let Some(ticket) = wait.retry().await {
        match native::run(context, prepared, collector).await {
            Ok(running) => return Ok(held(seen(running), ticket)),
            Err(engine::Error::Memory { .. }) if !ticket.is_alone() => {}
            Err(e) => return Err(e.into()),
        }
    }
    Err(short.into())
}

/// `rows`, which hold the ticket of their query until the last of them is taken.
fn held(rows: SendableRecordBatchStream, ticket: Ticket) -> SendableRecordBatchStream {
    let schema = rows.schema();
    let rows = rows.inspect(move |_| {
        let _ = &ticket;
    });
    Box::pin(RowStream::new(schema, rows))
}
