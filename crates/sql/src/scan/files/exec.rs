//! Files as an operator of DataFusion's plans.
//!
//! All partitions of a run take pieces from one reader, so that none waits for another's file.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion::common::Statistics;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::error::Result;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use ingest::{Dataset, Request};

use crate::error::Error;
use crate::scan::files::reader;
use crate::scan::files::reader::Pieces;
use crate::scan::runs::{Delivered, Runs, measured};

/// Reads files.
#[derive(Debug)]
pub(crate) struct FilesExec {
    name: String,
    dataset: Arc<Dataset>,
    request: Request,
    schema: SchemaRef,
    /// Most rows to deliver.
    limit: Option<usize>,
    rows: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    runs: Runs<Run>,
}

/// What the partitions of one run share.
#[derive(Debug)]
struct Run {
    pieces: tokio::sync::Mutex<Pieces>,
    delivered: Delivered,
}

impl FilesExec {
    pub(super) fn new(
        name: String,
        dataset: Arc<Dataset>,
        request: Request,
        limit: Option<usize>,
        partitions: usize,
        rows: usize,
    ) -> FilesExec {
        let fields: Vec<FieldRef> = request.columns.iter().map(|c| c.field.clone()).collect();
        let schema = Arc::new(Schema::new(fields));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        FilesExec {
            name,
            dataset,
            request,
            schema,
            limit,
            rows,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Runs::default(),
        }
    }

    /// A copy that has not run yet.
    fn copy(&self, limit: Option<usize>) -> FilesExec {
        FilesExec::new(
            self.name.clone(),
            Arc::clone(&self.dataset),
            self.request.clone(),
            limit,
            self.properties.partitioning.partition_count(),
            self.rows,
        )
    }

    /// A run whose partitions take pieces from one reader.
    fn begin(&self) -> Run {
        Run {
            pieces: reader::begin(&self.dataset, self.request.clone()).into(),
            delivered: Delivered::new(self.limit),
        }
    }
}

impl DisplayAs for FilesExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .schema
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        write!(
            f,
            "FilesExec: files={}, columns=[{}]",
            self.name,
            names.join(", ")
        )?;
        if let Some(keep) = &self.request.keep {
            let all: usize = keep.iter().map(Vec::len).sum();
            let kept = keep.iter().flatten().filter(|kept| **kept).count();
            write!(f, ", groups={kept} of {all}")?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for FilesExec {
    fn name(&self) -> &str {
        "FilesExec"
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

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.copy(self.limit)))
    }

    fn execute(&self, partition: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let partitions = self.properties.partitioning.partition_count();
        let run = self.runs.join(partition, partitions, || self.begin());
        let stream = read(run, metrics);
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            stream,
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let mut known = Statistics::new_unknown(&self.schema);
        if partition.is_none() || self.properties.partitioning.partition_count() == 1 {
            // Inexact: the file may have changed by the time it is read.
            known.num_rows = Precision::Inexact(self.rows);
            let width = |field: &FieldRef| field.data_type().primitive_width().unwrap_or(32);
            let width: usize = self.schema.fields().iter().map(width).sum();
            known.total_byte_size = Precision::Inexact(self.rows.saturating_mul(width));
        }
        Ok(Arc::new(known))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.copy(limit)))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

fn read(
    run: Arc<Run>,
    metrics: BaselineMetrics,
) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
    async_stream::try_stream! {
        while !run.delivered.is_full() {
            let Some(piece) = run.pieces.lock().await.next().await else { break };
            let mut batches = (piece?.read)().map_err(Error::from)?;
            while let Some(batch) =
                measured(&metrics, || Ok(batches.next().transpose().map_err(Error::from)?))?
            {
                let rows = run.delivered.take(batch.num_rows());
                if rows > 0 {
                    yield batch.slice(0, rows);
                }
            }
        }
        metrics.done();
    }
}

// `Any` is what `downcast_ref` of plans needs.
const _: fn(&FilesExec) -> &dyn Any = |exec| exec;
