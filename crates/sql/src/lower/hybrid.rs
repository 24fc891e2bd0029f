//! Hybrid plans: Atoll's own engine runs subplans, and DataFusion the rest over their rows.
//!
//! A subplan is as large a part of the plan as the engine can run, with a join or an aggregate in it: a bare scan is
//! left to DataFusion, which reads only the rows that it needs. All subplans run first, one after the other; then their
//! rows are tables of the rest.

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
use crate::lower::plan::lower;
use crate::resources::budget::{Held, footprint};

/// A plan of which Atoll's own engine runs subplans, and DataFusion the rest.
#[derive(Debug)]
pub(crate) struct HybridPlan {
    /// What DataFusion runs; each subplan is a table in it.
    pub plan: LogicalPlan,
    /// In the order in which they run.
    pub subplans: Vec<Arc<Subplan>>,
}

/// A subplan that Atoll's own engine runs, and its rows once it has run.
#[derive(Debug)]
pub(crate) struct Subplan {
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
enum Extracted {
    /// DataFusion runs the node and all below it.
    Stays,
    /// The subplan of this number stands for the node.
    Subplan(usize),
    /// The node stays; its inputs, in their order, become these.
    Inputs(Vec<Extracted>),
}

/// Extracts from `plan`, which the engine cannot run as a whole, the subplans that it can run; `None` if there are
/// none.
pub(crate) async fn extract(
    state: &SessionState,
    plan: &LogicalPlan,
) -> Result<Option<HybridPlan>> {
    let mut subplans = Vec::new();
    let extracted = inputs(state, plan, &mut subplans).await?;
    if subplans.is_empty() {
        return Ok(None);
    }
    let plan = replaced(plan.clone(), extracted, &subplans)?;
    Ok(Some(HybridPlan { plan, subplans }))
}

/// Extracts `plan` itself if the engine can run it, or else the subplans in it.
fn node<'a>(
    state: &'a SessionState,
    plan: &'a LogicalPlan,
    subplans: &'a mut Vec<Arc<Subplan>>,
) -> BoxFuture<'a, Result<Extracted>> {
    Box::pin(async move {
        if !is_worthwhile(plan) {
            return Ok(Extracted::Stays);
        }
        match lower(state, plan).await {
            Ok(prepared) => {
                subplans.push(Arc::new(Subplan {
                    prepared,
                    rows: OnceLock::new(),
                }));
                Ok(Extracted::Subplan(subplans.len() - 1))
            }
            Err(Error::Unsupported(_)) => inputs(state, plan, subplans).await,
            Err(e) => Err(e.into()),
        }
    })
}

async fn inputs(
    state: &SessionState,
    plan: &LogicalPlan,
    subplans: &mut Vec<Arc<Subplan>>,
) -> Result<Extracted> {
    // A recursive query runs its inputs again and again; what a lateral join reads is not there beforehand.
    if matches!(plan, LogicalPlan::RecursiveQuery(_)) {
        return Ok(Extracted::Stays);
    }
    let mut all = Vec::new();
    for input in plan.inputs() {
        all.push(node(state, input, subplans).await?);
    }
    Ok(Extracted::Inputs(all))
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
    extracted: Extracted,
    subplans: &[Arc<Subplan>],
) -> DataFusionResult<LogicalPlan> {
    match extracted {
        Extracted::Stays => Ok(plan),
        Extracted::Subplan(number) => Ok(LogicalPlan::TableScan(TableScan {
            table_name: TableReference::bare(format!("part {}", number + 1)),
            source: provider_as_source(Arc::clone(&subplans[number]) as _),
            projection: None,
            projected_schema: Arc::clone(plan.schema()),
            filters: vec![],
            fetch: None,
            statistics_requests: Default::default(),
        })),
        Extracted::Inputs(all) => {
            let mut all = all.into_iter();
            let done = plan.map_children(|input| {
                let extracted = all.next().unwrap_or(Extracted::Stays);
                Ok(Transformed::yes(replaced(input, extracted, subplans)?))
            })?;
            Ok(done.data)
        }
    }
}

impl Subplan {
    /// Runs the subplan and keeps its rows for the rest of the plan, in as many partitions as there are workers.
    /// Returns what it did, a line each.
    ///
    /// # Errors
    /// Those of running it; [`Error::Memory`] if the budget does not leave room for the rows.
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
        let (profile, ()) = tokio::try_join!(sending, keeping)?;
        let table =
            MemTable::try_new(self.schema(), pieces).map_err(|e| Error::Call(Box::new(e)))?;
        let _ = self.rows.set(Rows { table, _held: held });
        Ok(profile)
    }
}

#[async_trait]
impl TableProvider for Subplan {
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
            None => Err(DataFusionError::Internal(
                "a subplan that has not run".into(),
            )),
        }
    }
}
