//! The scan as an operator of DataFusion's plans.
//!
//! All partitions claim blocks from one list: each worker those of its own node first, then the
//! nearest ones (design point 4). Filters that joins and top-n operators find while running
//! (dynamic filters) are taken up from block to block; they may be skipped where they prove
//! useless, since their operator tests again.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

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
use fiber::Morsels;
use memory::Traffic;
use parking_lot::Mutex;
use table::{BATCH_ROWS, Filter, Form, Gauge, Morsel, Scan};

use crate::error::Error;
use crate::scan::predicate::compile;
use crate::scan::query::Query;

/// Reads a table: projection, filters and limit included.
#[derive(Debug)]
pub(crate) struct ScanExec {
    scan: Arc<Scan>,
    filters: Arc<[Filter]>,
    /// The same filters as the plan shows them.
    shown: Vec<Arc<dyn PhysicalExpr>>,
    /// Filters that change while the query runs; columns count in the table.
    dynamic: Vec<Arc<dyn PhysicalExpr>>,
    statistics: Arc<Statistics>,
    limit: Option<usize>,
    properties: Arc<PlanProperties>,
    metrics: ExecutionPlanMetricsSet,
    runs: Mutex<Runs>,
}

/// One list of morsels per run of the plan: the n-th call of `execute` for a partition belongs
/// to the n-th run.
#[derive(Debug, Default)]
struct Runs {
    /// How often each partition was executed.
    executed: Vec<usize>,
    runs: Vec<Arc<Run>>,
}

/// What the partitions of one run share.
#[derive(Debug)]
struct Run {
    morsels: Morsels,
    pieces: Vec<Morsel>,
    /// Rows delivered, kept up to date only under a limit.
    delivered: AtomicUsize,
}

/// Cheapest filters first, so that costly ones see few rows.
pub(crate) fn order(filters: &mut [Filter]) {
    filters.sort_by_key(|filter| match filter.form {
        Form::Ranges(_) => 0,
        Form::Labels(_) => 1,
        _ => 2,
    });
}

impl ScanExec {
    /// A scan in at most `partitions` partitions, each of which has a block to begin with.
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
        let statistics = match statistics.column_statistics.len() < scan.schema().fields().len() {
            true => with_row_ids(statistics),
            false => statistics,
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
            runs: Mutex::default(),
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

    /// A copy that has run never, with these dynamic filters and this limit.
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
            runs: Mutex::default(),
        }
    }

    /// The run that this execution of `partition` belongs to.
    fn run(&self, partition: usize, query: &Query) -> Arc<Run> {
        let mut runs = self.runs.lock();
        let partitions = self.properties.partitioning.partition_count();
        runs.executed.resize(partitions, 0);
        let turn = runs.executed[partition];
        runs.executed[partition] += 1;
        if runs.runs.len() == turn {
            runs.runs.push(Arc::new(self.begin(query)));
        }
        runs.runs[turn].clone()
    }

    fn begin(&self, query: &Query) -> Run {
        let nodes = query.nearness.nodes();
        let (buckets, pieces): (Vec<u8>, Vec<Morsel>) = self.scan.morsels().unzip();
        let homes = buckets
            .into_iter()
            .map(|bucket| usize::from(bucket) % nodes)
            .zip(0..);
        let morsels = Morsels::near(&query.nearness, homes);
        Run {
            morsels,
            pieces,
            delivered: AtomicUsize::new(0),
        }
    }

    /// `expr`, whose columns count in this scan's output, with columns that count in the table;
    /// `None` if it reads the row ids.
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

/// The dynamic filters of one stream, compiled anew when they change.
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

    /// The filters as of now.
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
    fiber::here().map_or(0, |here| here.node)
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
        let table = &self.scan.table().definition().name;
        write!(f, "ScanExec: table={table}, columns=[{}]", names.join(", "))?;
        for (label, exprs) in [("filters", &self.shown), ("dynamic", &self.dynamic)] {
            if !exprs.is_empty() {
                let exprs: Vec<String> = exprs.iter().map(|e| e.to_string()).collect();
                write!(f, ", {label}=[{}]", exprs.join(", "))?;
            }
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
        let query = match context.session_config().get_extension::<Query>() {
            Some(query) => query,
            None => {
                return Err(DataFusionError::Internal(
                    "a scan outside a statement".into(),
                ));
            }
        };
        let run = self.run(partition, &query);
        let metrics = BaselineMetrics::new(&self.metrics, partition);
        let stream = read(
            self.scan.clone(),
            Dynamic::new(self),
            run,
            query,
            self.limit,
            metrics,
        );
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
        // Answered "no": whoever made the filter goes on testing, which lets a scan skip it.
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
    query: Arc<Query>,
    limit: Option<usize>,
    metrics: BaselineMetrics,
) -> impl futures::Stream<Item = Result<arrow::array::RecordBatch>> + Send {
    async_stream::try_stream! {
        let pool = scan.table().snapshot().pool().clone();
        let traffic: &Traffic = &query.traffic;
        while let Some(piece) = run.morsels.claim(node()) {
            let full = limit.is_some_and(|limit| run.delivered.load(Ordering::Relaxed) >= limit);
            if full {
                break;
            }
            let filters = dynamic.current()?;
            let morsel = run.pieces[piece as usize];
            let opened = scan.open(&pool, morsel, filters, traffic, node).await;
            let Some(mut cursor) = opened.map_err(Error::from)? else { continue };
            while let Some(batch) = step(&mut cursor, &metrics)? {
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

fn step(
    cursor: &mut table::Cursor<'_>,
    metrics: &BaselineMetrics,
) -> Result<Option<arrow::array::RecordBatch>> {
    let timer = metrics.elapsed_compute().timer();
    let batch = cursor.next(BATCH_ROWS).map_err(Error::from)?;
    timer.done();
    if let Some(batch) = &batch {
        metrics.record_output(batch.num_rows());
    }
    Ok(batch)
}

// `Any` is what `downcast_ref` of plans needs.
const _: fn(&ScanExec) -> &dyn Any = |exec| exec;
