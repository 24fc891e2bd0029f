//! Cells of an array as an operator of DataFusion's plans.
//!
//! All partitions of a run take pieces from one list, so that none waits for another's chunk.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
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
use parking_lot::Mutex;

use crate::scan::arrays::columns;
use crate::scan::arrays::definition::ArrayTable;
use crate::scan::arrays::pieces::Pieces;
use crate::scan::arrays::prune::Wanted;
use crate::scan::runs::{Delivered, Runs};

/// The most rows of a batch.
const ROWS: usize = 8192;

/// Reads an array.
#[derive(Debug)]
pub(crate) struct ArrayExec {
    table: ArrayTable,
    /// Which columns of the table.
    columns: Arc<Vec<usize>>,
    wanted: Arc<Wanted>,
    schema: SchemaRef,
    /// Most rows to deliver.
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    runs: Runs<Run>,
}

/// What the partitions of one run share.
#[derive(Debug)]
struct Run {
    pieces: Mutex<Pieces>,
    delivered: Delivered,
}

impl ArrayExec {
    pub(super) fn new(
        table: ArrayTable,
        columns: Vec<usize>,
        wanted: Arc<Wanted>,
        limit: Option<usize>,
        partitions: usize,
    ) -> ArrayExec {
        let fields = columns.iter().map(|&at| table.schema.field(at).clone());
        let schema = Arc::new(arrow::datatypes::Schema::new(fields.collect::<Vec<_>>()));
        let properties = PlanProperties::new(
            EquivalenceProperties::new(Arc::clone(&schema)),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        ArrayExec {
            table,
            columns: Arc::new(columns),
            wanted,
            schema,
            limit,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Runs::default(),
        }
    }

    /// A copy that has not run yet.
    fn copy(&self, limit: Option<usize>) -> ArrayExec {
        ArrayExec::new(
            self.table.clone(),
            self.columns.to_vec(),
            Arc::clone(&self.wanted),
            limit,
            self.properties.partitioning.partition_count(),
        )
    }

    fn begin(&self) -> Run {
        Run {
            pieces: Mutex::new(Pieces::new(Arc::clone(&self.wanted))),
            delivered: Delivered::new(self.limit),
        }
    }
}

impl DisplayAs for ArrayExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fields = self.schema.fields().iter();
        let names: Vec<&str> = fields.map(|field| field.name().as_str()).collect();
        write!(
            f,
            "ArrayExec: array={}, columns=[{}], chunks={} of {}",
            self.table.array.name(),
            names.join(", "),
            self.wanted.chunks.len(),
            self.wanted.of,
        )?;
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ArrayExec {
    fn name(&self) -> &str {
        "ArrayExec"
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
        let reading = Reading {
            table: self.table.clone(),
            columns: Arc::clone(&self.columns),
            schema: Arc::clone(&self.schema),
            run,
        };
        Ok(Box::pin(RecordBatchStreamAdapter::new(
            Arc::clone(&self.schema),
            read(reading, metrics),
        )))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, _: Option<usize>) -> Result<Arc<Statistics>> {
        let mut known = Statistics::new_unknown(&self.schema);
        let cells = self.wanted.chunks.iter();
        let cells: u64 = cells.map(|part| part.shape().iter().product::<u64>()).sum();
        // Inexact: not all of them need exist.
        known.num_rows = Precision::Inexact(usize::try_from(cells).unwrap_or(usize::MAX));
        Ok(Arc::new(known))
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.copy(limit)))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }
}

/// What one partition needs.
struct Reading {
    table: ArrayTable,
    columns: Arc<Vec<usize>>,
    schema: SchemaRef,
    run: Arc<Run>,
}

fn read(
    reading: Reading,
    metrics: BaselineMetrics,
) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
    async_stream::try_stream! {
        let run = Arc::clone(&reading.run);
        while !run.delivered.is_full() {
            let piece = run.pieces.lock().next();
            let Some(piece) = piece else { break };
            let all = columns::batch(&reading.table, &reading.columns, &reading.schema, &piece).await?;
            let rows = run.delivered.take(all.num_rows());
            for from in (0..rows).step_by(ROWS) {
                let batch = all.slice(from, ROWS.min(rows - from));
                metrics.record_output(batch.num_rows());
                yield batch;
            }
        }
        metrics.done();
    }
}

// `Any` is what `downcast_ref` of plans needs.
const _: fn(&ArrayExec) -> &dyn Any = |exec| exec;
