//! Rows that code outside the engine makes, as an external source of it: those of the catalog, of functions in `from`, and
//! of arrays. Each partition of DataFusion's operators is a part, which a worker reads as it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use datafusion::catalog::TableProvider;
use datafusion::error::DataFusionError;
use datafusion::execution::{SessionState, TaskContext};
use datafusion::logical_expr::TableScan;
use datafusion::logical_expr::expr_rewriter::unnormalize_cols;
use datafusion::physical_plan::execution_plan::reset_plan_states;
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use engine::{Error, ExternalPart, ExternalParts, ExternalSource, Opening, Result};
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::StreamExt;

use crate::resources::operators;
use crate::scan::read_once::ReadOnce;

/// Rows of a source of which nothing is known.
const ROWS: f64 = 1_000.0;

/// Operators of DataFusion, and what they run with.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    name: String,
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    /// Estimated number of rows.
    pub rows: f64,
    /// Whether they are rows of a stream.
    is_once: bool,
}

impl Outside {
    /// The rows of a table that `scan` reads.
    ///
    /// # Errors
    /// Those of the table; [`Error::Unsupported`] for rows of other types than it says.
    pub(super) async fn of_scan(
        state: &SessionState,
        scan: &TableScan,
        table: &Arc<dyn TableProvider>,
        task: &Arc<TaskContext>,
    ) -> Result<Outside> {
        // What the table tests itself is not tested above it.
        let filters = unnormalize_cols(scan.filters.iter().cloned());
        let plan = table.scan(state, scan.projection.as_ref(), &filters, None);
        let plan = plan.await.map_err(called)?;
        let schema = scan.projected_schema.as_arrow();
        let own = plan.schema();
        let alike = own.fields().iter().zip(schema.fields());
        let mut alike = alike.map(|(own, field)| own.data_type() == field.data_type());
        if own.fields().len() != schema.fields().len() || !alike.all(|is_alike| is_alike) {
            return Err(Error::Unsupported(format!(
                "rows of other types than those of their table ({})",
                scan.table_name.table()
            )));
        }
        let known = table.statistics();
        let known = known.and_then(|known| known.num_rows.get_value().copied());
        let rows = known.map_or(ROWS, |rows| rows as f64);
        Ok(Outside {
            name: scan.table_name.table().to_owned(),
            plan,
            task: Arc::clone(task),
            rows,
            is_once: table.downcast_ref::<ReadOnce>().is_some(),
        })
    }
}

fn called(e: DataFusionError) -> Error {
    Error::Call(Box::new(e))
}

impl ExternalSource for Outside {
    fn name(&self) -> &str {
        &self.name
    }

    fn parts(&self) -> usize {
        self.plan.output_partitioning().partition_count()
    }

    fn is_once(&self) -> bool {
        self.is_once
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Arc<dyn ExternalParts>> {
        // Rows may be dealt to partitions as they come: the first of several readers has all.
        let parts = if opening.share.0 == 0 {
            self.parts()
        } else {
            0
        };
        // Operators keep what they did when they ran before.
        let plan = reset_plan_states(Arc::clone(&self.plan)).map_err(called)?;
        Ok(Arc::new(Partitions {
            plan,
            task: Arc::clone(&self.task),
            parts,
            next: AtomicUsize::new(0),
        }))
    }
}

/// Hands partitions to workers.
struct Partitions {
    plan: Arc<dyn ExecutionPlan>,
    task: Arc<TaskContext>,
    parts: usize,
    next: AtomicUsize,
}

impl Partitions {
    fn part(&self) -> Result<Option<ExternalPart>> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        if number >= self.parts {
            return Ok(None);
        }
        let rows = operators::partition(&self.plan, number, Arc::clone(&self.task));
        let rows = rows.map_err(called)?.map(|batch| batch.map_err(called));
        Ok(Some(ExternalPart {
            number: number as u64,
            rows: rows.boxed(),
        }))
    }
}

impl ExternalParts for Partitions {
    fn next(&self) -> BoxFuture<'_, Result<Option<ExternalPart>>> {
        ready(self.part()).boxed()
    }
}
