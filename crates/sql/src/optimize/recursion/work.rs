//! The table of a recursive query within its own recursive term: the rows of the round before.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::internal_err;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{EquivalenceProperties, Partitioning, PhysicalExpr};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::memory::MemoryStream;
use datafusion::physical_plan::{
    ChildrenPropertiesMode, DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties,
    ReplaceChildrenOptions,
};
use parking_lot::Mutex;

/// The table as statements name it.
#[derive(Debug)]
pub(crate) struct WorkTable {
    name: String,
    schema: SchemaRef,
}

impl WorkTable {
    /// That of the recursive query of this name.
    pub(crate) fn new(name: &str, schema: SchemaRef) -> WorkTable {
        WorkTable {
            name: name.to_owned(),
            schema,
        }
    }
}

#[async_trait]
impl TableProvider for WorkTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = match projection {
            Some(columns) => Arc::new(self.schema.project(columns)?),
            None => Arc::clone(&self.schema),
        };
        Ok(Arc::new(Work::new(
            self.name.clone(),
            schema,
            projection.cloned(),
            None,
        )))
    }
}

/// The rows of the round before, which a run of a recursive query puts here.
#[derive(Debug, Default)]
pub(super) struct Slot(Mutex<Vec<RecordBatch>>);

impl Slot {
    pub(super) fn put(&self, rows: Vec<RecordBatch>) {
        *self.0.lock() = rows;
    }
}

/// Reads the table.
#[derive(Debug)]
pub(super) struct Work {
    pub name: String,
    pub schema: SchemaRef,
    /// The columns that are read; all if none are named.
    pub projection: Option<Vec<usize>>,
    /// None before the query runs.
    slot: Option<Arc<Slot>>,
    properties: Arc<PlanProperties>,
}

impl Work {
    pub fn new(
        name: String,
        schema: SchemaRef,
        projection: Option<Vec<usize>>,
        slot: Option<Arc<Slot>>,
    ) -> Work {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Work {
            name,
            schema,
            projection,
            slot,
            properties: Arc::new(properties),
        }
    }

    pub(super) fn projection(&self) -> Option<&[usize]> {
        self.projection.as_deref()
    }
}

impl DisplayAs for Work {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "WorkTableExec: name={}", self.name)
    }
}

impl ExecutionPlan for Work {
    fn name(&self) -> &str {
        "WorkTableExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![]
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let Some(slot) = &self.slot else {
            return internal_err!("the table of a recursive query is read outside it");
        };
        let rows = slot.0.lock().clone();
        let rows = MemoryStream::try_new(rows, Arc::clone(&self.schema), self.projection.clone())?;
        Ok(Box::pin(rows))
    }
}

/// Whether `plan` reads the table of any recursive query around it.
pub(super) fn reads(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<Work>() || plan.children().into_iter().any(reads)
}

/// `plan` with these children, which is itself where they are its own.
pub(super) fn with_children(
    plan: Arc<dyn ExecutionPlan>,
    children: Vec<Arc<dyn ExecutionPlan>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let mut pairs = plan.children().into_iter().zip(&children);
    if pairs.all(|(own, child)| Arc::ptr_eq(own, child)) {
        return Ok(plan);
    }
    let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
    plan.replace_children(children, options)
}
