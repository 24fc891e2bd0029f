//! Plans of which our engine runs parts, and DataFusion the rest over their rows.
//!
//! A part is as large a piece of the plan as our engine can run, with a join or an aggregate in it: a bare scan is
//! left to DataFusion, which reads it row by row as it needs it. All parts run first, one after the other; then their rows
//! are tables of the rest.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::TableReference;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, TableScan, TableType};
use datafusion::physical_plan::ExecutionPlan;
use engine::{Error, Execution, Prepared, Runtime};
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::error::Result;
use crate::lower::lower;
use crate::resources::budget::{Held, footprint};

/// A plan whose parts stand in it as tables.
#[derive(Debug)]
pub(crate) struct Parts {
    pub plan: LogicalPlan,
    pub parts: Vec<Arc<Part>>,
}

/// What our engine runs, and its rows once it has.
#[derive(Debug)]
pub(crate) struct Part {
    pub prepared: Prepared,
    rows: OnceLock<Rows>,
}

#[derive(Debug)]
struct Rows {
    table: MemTable,
    /// Given back when the statement ends.
    _held: Held,
}

/// What becomes of a node of the plan.
enum Carved {
    Stays,
    Part(usize),
    /// In the order of its inputs.
    Inputs(Vec<Carved>),
}

/// `plan`, which our engine cannot run as a whole, with the parts that it can run; `None` if there are none.
pub(crate) async fn carve(state: &SessionState, plan: &LogicalPlan) -> Result<Option<Parts>> {
    let mut parts = Vec::new();
    let carved = inputs(state, plan, &mut parts).await?;
    if parts.is_empty() {
        return Ok(None);
    }
    let plan = replaced(plan.clone(), carved, &parts)?;
    Ok(Some(Parts { plan, parts }))
}

/// Looks for parts in `plan`, which is one itself if it can be.
fn node<'a>(
    state: &'a SessionState,
    plan: &'a LogicalPlan,
    parts: &'a mut Vec<Arc<Part>>,
) -> BoxFuture<'a, Result<Carved>> {
    Box::pin(async move {
        if !is_worthwhile(plan) {
            return Ok(Carved::Stays);
        }
        match lower(state, plan).await {
            Ok(prepared) => {
                parts.push(Arc::new(Part {
                    prepared,
                    rows: OnceLock::new(),
                }));
                Ok(Carved::Part(parts.len() - 1))
            }
            Err(Error::Unsupported(_)) => inputs(state, plan, parts).await,
            Err(e) => Err(e.into()),
        }
    })
}

async fn inputs(
    state: &SessionState,
    plan: &LogicalPlan,
    parts: &mut Vec<Arc<Part>>,
) -> Result<Carved> {
    // A recursive query runs its inputs again and again; what a lateral join reads is not there beforehand.
    if matches!(plan, LogicalPlan::RecursiveQuery(_)) {
        return Ok(Carved::Stays);
    }
    let mut all = Vec::new();
    for input in plan.inputs() {
        all.push(node(state, input, parts).await?);
    }
    Ok(Carved::Inputs(all))
}

/// Whether more is to be done in `plan` than to read a table.
fn is_worthwhile(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Join(_) | LogicalPlan::Aggregate(_) | LogicalPlan::Distinct(_) => true,
        other => other.inputs().into_iter().any(is_worthwhile),
    }
}

fn replaced(
    plan: LogicalPlan,
    carved: Carved,
    parts: &[Arc<Part>],
) -> DataFusionResult<LogicalPlan> {
    match carved {
        Carved::Stays => Ok(plan),
        Carved::Part(number) => Ok(LogicalPlan::TableScan(TableScan {
            table_name: TableReference::bare(format!("part {}", number + 1)),
            source: provider_as_source(Arc::clone(&parts[number]) as _),
            projection: None,
            projected_schema: Arc::clone(plan.schema()),
            filters: vec![],
            fetch: None,
            statistics_requests: Default::default(),
        })),
        Carved::Inputs(all) => {
            let mut all = all.into_iter();
            let done = plan.map_children(|input| {
                let carved = all.next().unwrap_or(Carved::Stays);
                Ok(Transformed::yes(replaced(input, carved, parts)?))
            })?;
            Ok(done.data)
        }
    }
}

impl Part {
    /// Runs the part and keeps its rows for the rest of the plan, in as many pieces as there are workers; tells how it
    /// went, a line each.
    ///
    /// # Errors
    /// Those of running it; [`Error::Memory`] as soon as the budget does not leave the memory that the rows take.
    pub async fn fill(
        &self,
        runtime: &Runtime,
        execution: &Execution,
    ) -> engine::Result<Vec<String>> {
        let (sender, mut rows) = mpsc::channel(1);
        let mut pieces = vec![Vec::new(); runtime.workers.threads().max(1)];
        let mut held = Held::of(&runtime.budget);
        let keeping = async {
            let mut next = 0;
            while let Some(batch) = rows.recv().await {
                let (wanted, what) = (footprint(&batch), "a part of the plan");
                let taken = held.more(wanted);
                taken.map_err(|_| Error::Memory { what, wanted })?;
                let count = pieces.len();
                pieces[next % count].push(batch);
                next += 1;
            }
            Ok::<(), Error>(())
        };
        let sending = self.prepared.send(runtime, execution, sender);
        let (told, ()) = tokio::try_join!(sending, keeping)?;
        let table =
            MemTable::try_new(self.schema(), pieces).map_err(|e| Error::Call(Box::new(e)))?;
        let _ = self.rows.set(Rows { table, _held: held });
        Ok(told)
    }
}

#[async_trait]
impl TableProvider for Part {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.prepared.schema())
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        match self.rows.get() {
            Some(rows) => rows.table.scan(state, projection, filters, limit).await,
            None => Err(DataFusionError::Internal("a part that did not run".into())),
        }
    }
}
