//! Files as an operator of DataFusion's plans.
//!
//! All partitions of a run take pieces from one drawing, so that none waits for another's file.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
use futures::StreamExt;
use ingest::{Dataset, Request};
use parking_lot::Mutex;

use crate::error::Error;
use crate::scan::files::draw::{self, Pieces};

/// Reads files.
#[derive(Debug)]
pub(crate) struct FilesExec {
    name: String,
    dataset: Arc<Dataset>,
    request: Request,
    schema: SchemaRef,
    /// Rows that are enough.
    limit: Option<usize>,
    rows: usize,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    runs: Mutex<Runs>,
}

/// One drawing per run of the plan: the n-th call of `execute` for a partition belongs to the n-th run.
#[derive(Debug, Default)]
struct Runs {
    /// How often each partition was executed.
    executed: Vec<usize>,
    runs: Vec<Arc<Run>>,
}

/// What the partitions of one run share.
#[derive(Debug)]
struct Run {
    pieces: tokio::sync::Mutex<Pieces>,
    /// Rows delivered, kept up to date only under a limit.
    delivered: AtomicUsize,
}

impl FilesExec {
    pub(crate) fn new(
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
            runs: Mutex::default(),
        }
    }

    /// A copy that has run never.
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

    /// The run that this execution of `partition` belongs to.
    fn run(&self, partition: usize) -> Arc<Run> {
        let mut runs = self.runs.lock();
        let partitions = self.properties.partitioning.partition_count();
        runs.executed.resize(partitions, 0);
        let turn = runs.executed[partition];
        runs.executed[partition] += 1;
        if runs.runs.len() == turn {
            runs.runs.push(Arc::new(Run {
                pieces: draw::begin(&self.dataset, self.request.clone()).into(),
                delivered: AtomicUsize::new(0),
            }));
        }
        Arc::clone(&runs.runs[turn])
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
        let stream = read(self.run(partition), self.limit, metrics);
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
            // The file may be another when it is read: nothing is answered from this.
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
    limit: Option<usize>,
    metrics: BaselineMetrics,
) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
    async_stream::try_stream! {
        loop {
            let full = limit.is_some_and(|limit| run.delivered.load(Ordering::Relaxed) >= limit);
            if full {
                break;
            }
            let Some(piece) = run.pieces.lock().await.next().await else { break };
            let mut batches = (piece?.read)().map_err(Error::from)?;
            while let Some(batch) = step(&mut batches, &metrics)? {
                // The optimiser takes its own limit away, so not one row too many may leave.
                let rows = match limit {
                    Some(limit) => {
                        let before = run.delivered.fetch_add(batch.num_rows(), Ordering::Relaxed);
                        batch.num_rows().min(limit.saturating_sub(before))
                    }
                    None => batch.num_rows(),
                };
                if rows > 0 {
                    yield batch.slice(0, rows);
                }
            }
        }
        metrics.done();
    }
}

fn step(batches: &mut ingest::Batches, metrics: &BaselineMetrics) -> Result<Option<RecordBatch>> {
    let timer = metrics.elapsed_compute().timer();
    let batch = batches.next().transpose().map_err(Error::from)?;
    timer.done();
    if let Some(batch) = &batch {
        metrics.record_output(batch.num_rows());
    }
    Ok(batch)
}

// `Any` is what `downcast_ref` of plans needs.
const _: fn(&FilesExec) -> &dyn Any = |exec| exec;
