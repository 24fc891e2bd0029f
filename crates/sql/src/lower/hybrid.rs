//! Hybrid plans: Atoll's own engine runs subplans, and DataFusion the rest over their rows.
//!
//! A subplan is as large a part of the plan as the engine can run, with a join, an aggregate or a window in it: a bare
//! scan is left to DataFusion, which reads only the rows that it needs. All subplans run first, one after the other;
//! then their rows are tables of the rest. Subplans with the same rows run once.

use std::sync::{Arc, OnceLock};

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, TableReference};
use datafusion::datasource::{MemTable, provider_as_source};
use datafusion::error::{DataFusionError, Result as DataFusionResult};
use datafusion::execution::SessionState;
use datafusion::logical_expr::{Expr, LogicalPlan, Projection, TableScan, TableType};
use datafusion::physical_plan::ExecutionPlan;
use engine::{Error, Execution, Prepared, Runtime};
use futures::future::BoxFuture;
use tokio::sync::mpsc;

use crate::error::Result;
use crate::lower::plan::{Findings, lower};
use crate::lower::subplans::Single;
use crate::resources::budget::{Held, footprint};

/// A plan of which Atoll's own engine runs subplans, and DataFusion the rest.
#[derive(Debug)]
pub(crate) struct HybridPlan {
    /// What DataFusion runs; each subplan is a table in it.
    pub plan: LogicalPlan,
    /// In the order in which they run.
    pub subplans: Vec<Arc<Subplan>>,
    /// Why the engine does not run the rest, each reason once.
    pub refusals: Vec<String>,
}

impl HybridPlan {
    /// How often the rest reads the rows of the subplan of this number.
    pub(crate) fn readers(&self, number: usize) -> usize {
        let (name, mut readers) = (part_name(number), 0);
        // The closure does not fail.
        let _ = self.plan.apply(|plan| {
            if let LogicalPlan::TableScan(scan) = plan {
                readers += usize::from(scan.table_name == name);
            }
            Ok(TreeNodeRecursion::Continue)
        });
        readers
    }
}

/// What the rows of the subplan of this number are called in the rest of the plan.
fn part_name(number: usize) -> TableReference {
    TableReference::bare(format!("part {}", number + 1))
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

/// A subplan, and where it is in the plan.
struct Part<'p> {
    plan: Single<'p>,
    subplan: Arc<Subplan>,
}

impl<'p> Part<'p> {
    fn new(plan: Single<'p>, prepared: Prepared) -> Part<'p> {
        let rows = OnceLock::new();
        let subplan = Arc::new(Subplan { prepared, rows });
        Part { plan, subplan }
    }
}

/// What becomes of a node of the plan.
enum Extracted<'p> {
    /// DataFusion runs the node and all below it.
    Stays,
    /// The rows of the part of this number stand for the node.
    Part(usize, &'p LogicalPlan),
    /// The node stays; its inputs, in their order, become these.
    Inputs(Vec<Extracted<'p>>),
}

/// Takes parts out of a plan.
struct Extraction<'e, 'p> {
    state: &'e SessionState,
    findings: &'e mut Findings<'p>,
    parts: Vec<Part<'p>>,
    /// Why the engine does not run the rest, each reason once.
    refusals: Vec<String>,
}

/// Extracts from `plan`, which the engine cannot run as a whole because of `refusal`, the subplans that it can run; `None`
/// if there are none. Also why it does not run the rest.
pub(crate) async fn extract<'p>(
    state: &SessionState,
    plan: &'p LogicalPlan,
    findings: &mut Findings<'p>,
    refusal: String,
) -> Result<(Option<HybridPlan>, Vec<String>)> {
    let mut extraction = Extraction {
        state,
        findings,
        parts: Vec::new(),
        refusals: vec![refusal],
    };
    let extracted = extraction.inputs(plan).await?;
    if extraction.parts.is_empty() {
        return Ok((None, extraction.refusals));
    }
    let plan = extraction.replaced(plan.clone(), extracted)?;
    let subplans = extraction.parts.into_iter().map(|part| part.subplan);
    let hybrid = HybridPlan {
        plan,
        subplans: subplans.collect(),
        refusals: extraction.refusals.clone(),
    };
    Ok((Some(hybrid), extraction.refusals))
}

impl<'p> Extraction<'_, 'p> {
    /// Extracts `plan` itself if the engine can run it, or else the subplans in it.
    fn node<'a>(&'a mut self, plan: &'p LogicalPlan) -> BoxFuture<'a, Result<Extracted<'p>>>
    where
        'p: 'a,
    {
        Box::pin(async move {
            if !self.findings.is_worthwhile(plan) {
                return Ok(Extracted::Stays);
            }
            let has_all = |part: &Part<'_>| self.columns(part, plan).is_some();
            if let Some(number) = self.parts.iter().position(has_all) {
                return Ok(Extracted::Part(number, plan));
            }
            match lower(self.state, plan, self.findings).await {
                Ok(prepared) => Ok(Extracted::Part(self.part(plan, prepared).await?, plan)),
                Err(Error::Unsupported(why)) => {
                    if !self.refusals.contains(&why) {
                        self.refusals.push(why);
                    }
                    self.inputs(plan).await
                }
                Err(e) => Err(e.into()),
            }
        })
    }

    async fn inputs(&mut self, plan: &'p LogicalPlan) -> Result<Extracted<'p>> {
        // A recursive query is run by the engine alone.
        if let LogicalPlan::RecursiveQuery(query) = plan {
            return Err(Error::Unsupported(format!("the recursive query {}", query.name)).into());
        }
        let mut all = Vec::new();
        for input in plan.inputs() {
            all.push(self.node(input).await?);
        }
        Ok(Extracted::Inputs(all))
    }

    /// Adds `plan` to the parts, in place of one that has the same rows and that reads them from here on. Returns its
    /// number.
    async fn part(&mut self, plan: &'p LogicalPlan, prepared: Prepared) -> Result<usize> {
        let own = Part::new(Single::Own(plan), prepared);
        let has_all = |old: &Part<'_>| self.columns(&own, old.plan.plan()).is_some();
        let narrower = self.parts.iter().position(has_all);
        if let Some(number) = narrower {
            self.parts[number] = own;
            return Ok(number);
        }
        for number in 0..self.parts.len() {
            let old = self.parts[number].plan.plan();
            let Some(wide) = self.findings.subplans.with_columns_of(plan, old) else {
                continue;
            };
            match lower(self.state, &wide, self.findings).await {
                Ok(prepared) => {
                    self.parts[number] = Part::new(Single::Widened(wide), prepared);
                    return Ok(number);
                }
                Err(Error::Unsupported(_)) => {}
                Err(e) => return Err(e.into()),
            }
        }
        self.parts.push(own);
        Ok(self.parts.len() - 1)
    }

    /// For each column of `plan` its position in the rows of `part`, if that has all of its rows and columns.
    fn columns(&self, part: &Part<'_>, plan: &LogicalPlan) -> Option<Vec<usize>> {
        if std::ptr::eq(part.plan.plan(), plan) {
            return Some((0..plan.schema().fields().len()).collect());
        }
        self.findings.subplans.columns(part.plan.plan(), plan)
    }

    fn replaced(
        &self,
        plan: LogicalPlan,
        extracted: Extracted<'p>,
    ) -> DataFusionResult<LogicalPlan> {
        match extracted {
            Extracted::Stays => Ok(plan),
            Extracted::Part(number, plan) => self.reading(number, plan),
            Extracted::Inputs(all) => {
                let mut all = all.into_iter();
                let done = plan.map_children(|input| {
                    let extracted = all.next().unwrap_or(Extracted::Stays);
                    Ok(Transformed::yes(self.replaced(input, extracted)?))
                })?;
                Ok(done.data)
            }
        }
    }

    /// The rows of a part in place of `plan`, with its columns.
    fn reading(&self, number: usize, plan: &LogicalPlan) -> DataFusionResult<LogicalPlan> {
        let part = &self.parts[number];
        let (from, to) = (part.plan.plan().schema(), plan.schema());
        let Some(columns) = self.columns(part, plan) else {
            return Err(DataFusionError::Internal(
                "a subplan without the columns that are read".into(),
            ));
        };
        let is_alike =
            from.as_arrow() == to.as_arrow() && columns.iter().copied().eq(0..columns.len());
        let scan = LogicalPlan::TableScan(TableScan {
            table_name: part_name(number),
            source: provider_as_source(Arc::clone(&part.subplan) as _),
            projection: None,
            projected_schema: Arc::clone(if is_alike { to } else { from }),
            filters: vec![],
            fetch: None,
            statistics_requests: Default::default(),
        });
        if is_alike {
            return Ok(scan);
        }
        let mut exprs = Vec::with_capacity(columns.len());
        for (position, (relation, field)) in columns.into_iter().zip(to.iter()) {
            let column = Expr::Column(Column::from(from.qualified_field(position)));
            exprs.push(column.alias_qualified(relation.cloned(), field.name()));
        }
        let projection =
            Projection::try_new_with_schema(exprs, Arc::new(scan), Arc::clone(plan.schema()))?;
        Ok(LogicalPlan::Projection(projection))
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
