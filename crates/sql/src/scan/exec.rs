//! The scan of a table as an operator of DataFusion's plans.
//!
//! All partitions claim blocks from one list: each worker those of its own node first, then those of the nearest nodes.
//! Dynamic filters, which joins and top-k operators find while they run, are updated from block to block. A scan may
//! skip them where they prove useless, because their operator tests again.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion::common::Statistics;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::physical_expr::EquivalenceProperties;
use datafusion::physical_expr::expressions::Column;
use datafusion::physical_expr_common::physical_expr::{
    snapshot_generation, snapshot_physical_expr,
};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::filter_pushdown::{
    ChildPushdownResult, FilterPushdownPhase, FilterPushdownPropagation, PushedDown,
};
use datafusion::physical_plan::metrics::{BaselineMetrics, ExecutionPlanMetricsSet, MetricsSet};
use datafusion::physical_plan::projection::ProjectionExec;
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PhysicalExpr, PlanProperties,
};
use memory::Traffic;
use table::{BATCH_ROWS, Filter, Form, Gauge, Morsel, Scan};
use workers::Morsels;

use crate::error::Error;
use crate::scan::context::ScanContext;
use crate::scan::predicate::compile;
use crate::scan::runs::{Delivered, Runs, measured};

/// Reads a table: projection, filters and limit included.
#[derive(Debug)]
pub(crate) struct ScanExec {
    scan: Arc<Scan>,
    filters: Arc<[Filter]>,
    /// The same filters for `explain`.
    shown: Vec<Arc<dyn PhysicalExpr>>,
    /// Filters that change while the query runs; their columns are positions in the table.
    dynamic: Vec<Arc<dyn PhysicalExpr>>,
    statistics: Arc<Statistics>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    runs: Runs<Run>,
}

/// What the partitions of one run share.
#[derive(Debug)]
struct Run {
    morsels: Morsels,
    pieces: Vec<Morsel>,
    delivered: Delivered,
}

/// Orders filters from cheap to costly, so that costly ones see fewer rows.
pub(crate) fn order(filters: &mut [Filter]) {
    filters.sort_by_key(|filter| match filter.form {
        Form::Ranges(_) => 0,
        Form::Labels(_) => 1,
        _ => 2,
    });
}

impl ScanExec {
    /// A scan in at most `partitions` partitions, and no more than there are blocks.
    pub(crate) fn new(
        scan: Scan,
        filters: Vec<Filter>,
        shown: Vec<Arc<dyn PhysicalExpr>>,
        statistics: Statistics,
        limit: Option<usize>,
        partitions: usize,
    ) -> Result<ScanExec> {
        let partitions = partitions.min(scan.morsels().count()).max(1);
        let columns = scan.columns().to_vec();
        let statistics = statistics.project(Some(&columns));
        let statistics = if statistics.column_statistics.len() < scan.schema().fields().len() {
            with_row_ids(statistics)
        } else {
            statistics
        };
        let properties = PlanProperties::new(
            EquivalenceProperties::new(scan.schema().clone()),
            Partitioning::UnknownPartitioning(partitions),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Ok(ScanExec {
            scan: Arc::new(scan),
            filters: filters.into(),
            shown,
            dynamic: vec![],
            statistics: Arc::new(statistics),
            limit,
            properties: Arc::new(properties),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Runs::default(),
        })
    }

    /// The same scan with its columns in another order.
    pub(crate) fn reordered(self, order: &[usize]) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = self.scan.schema().clone();
        let columns = order.iter().map(|position| {
            let name = schema.field(*position).name();
            (
                Arc::new(Column::new(name, *position)) as Arc<dyn PhysicalExpr>,
                name.clone(),
            )
        });
        Ok(Arc::new(ProjectionExec::try_new(
            columns.collect::<Vec<_>>(),
            Arc::new(self),
        )?))
    }

    /// A copy that has not run yet, with these dynamic filters and this limit.
    fn copy(&self, dynamic: Vec<Arc<dyn PhysicalExpr>>, limit: Option<usize>) -> ScanExec {
        ScanExec {
            scan: self.scan.clone(),
            filters: self.filters.clone(),
            shown: self.shown.clone(),
            dynamic,
            statistics: self.statistics.clone(),
            limit,
            properties: self.properties.clone(),
            metrics: ExecutionPlanMetricsSet::new(),
            runs: Runs::default(),
        }
    }

    /// A run whose partitions claim the blocks of their own nodes first.
    fn begin(&self, context: &ScanContext) -> Run {
        let nodes = context.nearness.nodes();
        let (buckets, pieces): (Vec<u8>, Vec<Morsel>) = self.scan.morsels().unzip();
        let homes = buckets
            .into_iter()
            .map(|bucket| usize::from(bucket) % nodes)
            .zip(0..);
        let morsels = Morsels::near(&context.nearness, homes);
        Run {
            morsels,
            pieces,
            delivered: Delivered::new(self.limit),
        }
    }

    /// `expr` with positions of columns in the table instead of in this scan's output; `None` if it reads row ids.
    fn in_table(&self, expr: &Arc<dyn PhysicalExpr>) -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let mut foreign = false;
        let moved = expr.clone().transform(|node| {
            let Some(column) = node.downcast_ref::<Column>() else {
                return Ok(Transformed::no(node));
            };
            let Some(position) = self.scan.columns().get(column.index()) else {
                foreign = true;
                return Ok(Transformed::no(node));
            };
            let moved: Arc<dyn PhysicalExpr> = Arc::new(Column::new(column.name(), *position));
            Ok(Transformed::yes(moved))
        })?;
        Ok((!foreign).then_some(moved.data))
    }
}

fn with_row_ids(statistics: Statistics) -> Statistics {
    let mut statistics = statistics;
    statistics
        .column_statistics
        .push(datafusion::common::ColumnStatistics::new_unknown());
    statistics
}

/// The dynamic filters of one stream, compiled again when they change.
struct Dynamic {
    parts: Vec<(Arc<dyn PhysicalExpr>, u64, Vec<Filter>)>,
    schema: SchemaRef,
    fixed: Arc<[Filter]>,
    /// Fixed filters, then the compiled dynamic ones.
    all: Vec<Filter>,
}

impl Dynamic {
    fn new(exec: &ScanExec) -> Dynamic {
        let parts = exec
            .dynamic
            .iter()
            .map(|expr| (expr.clone(), 0, vec![]))
            .collect();
        let schema = exec.scan.table().schema();
        Dynamic {
            parts,
            schema,
            fixed: exec.filters.clone(),
            all: exec.filters.to_vec(),
        }
    }

    /// The current filters.
    fn current(&mut self) -> Result<&[Filter]> {
        let mut changed = false;
        for (expr, seen, filters) in &mut self.parts {
            let generation = snapshot_generation(expr);
            if generation == *seen {
                continue;
            }
            let now = snapshot_physical_expr(expr.clone())?;
            *filters = compile(&now, &self.schema)?;
            for filter in filters.iter_mut() {
                filter.gauge = Some(Arc::new(Gauge::default()));
            }
            *seen = generation;
            changed = true;
        }
        if changed {
            self.all = self.fixed.to_vec();
            self.all.extend(
                self.parts
                    .iter()
                    .flat_map(|(_, _, filters)| filters.iter().cloned()),
            );
            order(&mut self.all);
        }
        Ok(&self.all)
    }
}

fn node() -> usize {
    workers::here().map_or(0, |here| here.node)
}

impl DisplayAs for ScanExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self
            .scan
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().as_str())
            .collect();
        let table = table::titled(&self.scan.table().definition().name);
        write!(f, "ScanExec: table={table}, columns=[{}]", names.join(", "))?;
        for (label, exprs) in [("filters", &self.shown), ("dynamic", &self.dynamic)] {
            if !exprs.is_empty() {
                let exprs: Vec<String> = exprs.iter().map(|e| e.to_string()).collect();
                write!(f, ", {label}=[{}]", exprs.join(", "))?;
            }
        }
        if let Some((key, rows)) = self.scan.table().chosen() {
            write!(f, ", index={key} ({rows} rows)")?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit={limit}"),
            None => Ok(()),
        }
    }
}

impl ExecutionPlan for ScanExec {
    fn name(&self) -> &str {
        "ScanExec"
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
        f: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        let mut recursion = TreeNodeRecursion::Continue;
        for expr in &self.dynamic {
            recursion = recursion.visit_sibling(|| f(expr))?;
        }
        Ok(recursion)
    }

    fn reset_state(self: Arc<Self>) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(self.copy(self.dynamic.clone(), self.limit)))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let Some(context) = context.session_config().get_extension::<ScanContext>() else {
            return Err(DataFusionError::Internal(
                "a scan that no statement runs".into(),
            ));
        };
        let partitions = self.properties.partitioning.partition_count();
        let run = self
            .runs
            .join(partition, partitions, || self.begin(&context));
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let stream = read(self.scan.clone(), Dynamic::new(self), run, context, metrics);
        let schema = self.scan.schema().clone();
        Ok(Box::pin(RecordBatchStreamAdapter::new(schema, stream)))
    }

    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn partition_statistics(&self, partition: Option<usize>) -> Result<Arc<Statistics>> {
        let partitions = self.properties.partitioning.partition_count();
        if partition.is_none() || partitions == 1 {
            return Ok(self.statistics.clone());
        }
        Ok(Arc::new(Statistics::new_unknown(self.scan.schema())))
    }

    fn supports_limit_pushdown(&self) -> bool {
        false
    }

    fn with_fetch(&self, limit: Option<usize>) -> Option<Arc<dyn ExecutionPlan>> {
        Some(Arc::new(self.copy(self.dynamic.clone(), limit)))
    }

    fn fetch(&self) -> Option<usize> {
        self.limit
    }

    fn handle_child_pushdown_result(
        &self,
        phase: FilterPushdownPhase,
        result: ChildPushdownResult,
        _: &ConfigOptions,
    ) -> Result<FilterPushdownPropagation<Arc<dyn ExecutionPlan>>> {
        let count = result.parent_filters.len();
        let mut dynamic = self.dynamic.clone();
        if phase == FilterPushdownPhase::Post {
            for filter in &result.parent_filters {
                dynamic.extend(self.in_table(&filter.filter)?);
            }
        }
        // "No" makes the operator that made the filter test it, too, so that the scan may skip it.
        let answers = vec![PushedDown::No; count];
        let propagation = FilterPushdownPropagation::with_parent_pushdown_result(answers);
        if dynamic.len() == self.dynamic.len() {
            return Ok(propagation);
        }
        let node: Arc<dyn ExecutionPlan> = Arc::new(self.copy(dynamic, self.limit));
        Ok(propagation.with_updated_node(node))
    }
}

fn read(
    scan: Arc<Scan>,
    mut dynamic: Dynamic,
    run: Arc<Run>,
    context: Arc<ScanContext>,
    metrics: BaselineMetrics,
) -> impl futures::Stream<Item = Result<RecordBatch>> + Send {
    async_stream::try_stream! {
        let pool = scan.table().snapshot().pool().clone();
        let traffic: &Traffic = &context.traffic;
        while let Some(piece) = run.morsels.claim(node()) {
            if run.delivered.is_full() {
                break;
            }
            let filters = dynamic.current()?;
            let morsel = run.pieces[piece as usize];
            let opened = scan.open(&pool, morsel, filters, traffic, node).await;
            let Some(mut cursor) = opened.map_err(Error::from)? else { continue };
            while let Some(batch) =
                measured(&metrics, || Ok(cursor.next(BATCH_ROWS).map_err(Error::from)?))?
            {
                // Of a file that was mapped and lost a part, rows may be wrong: none is delivered.
                pool.intact().map_err(table::Error::from).map_err(Error::from)?;
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
const _: fn(&ScanExec) -> &dyn Any = |exec| exec;
