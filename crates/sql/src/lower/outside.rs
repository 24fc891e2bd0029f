//! Rows that code outside the engine makes, as an external source of it: those of the catalog, of functions in `from`, and
//! of arrays. Each part is read by a worker as it comes.

use std::collections::VecDeque;
use std::sync::Arc;

use datafusion_common::DataFusionError;
use datafusion_execution::TaskContext;
use datafusion_expr::TableScan;
use datafusion_expr::expr_rewriter::unnormalize_cols;
use engine::{Error, ExternalPart, ExternalParts, ExternalSource, Opening, Result};
use futures::future::{BoxFuture, FutureExt, ready};
use futures::stream::StreamExt;
use parking_lot::Mutex;

use crate::functions::present::Memory;
use crate::resources::stream::within;
use crate::scan::arrays::definition::ArrayTable;
use crate::scan::arrays::table::ArrayScan;
use crate::scan::rows::{Batches, RowSource, RowTable};
use crate::scan::written_rows::WrittenRows;

/// Rows of a source of which nothing is known.
const ROWS: f64 = 1_000.0;

/// What makes the rows of a table, and what it runs with.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    name: String,
    source: Arc<dyn RowSource>,
    /// The columns that are read of those that it makes, in their order; all if none.
    projection: Option<Vec<usize>>,
    task: Arc<TaskContext>,
    /// Estimated number of rows.
    pub rows: f64,
}

impl Outside {
    /// The rows of a table that `scan` reads.
    ///
    /// # Errors
    /// Those of looking at the table; [`Error::Unsupported`] for one of no such kind.
    pub(super) fn of_scan(scan: &TableScan, task: &Arc<TaskContext>) -> Result<Outside> {
        let table = &scan.source;
        let mut projection = scan.projection.clone();
        let source = if let Some(array) = table.downcast_ref::<ArrayTable>() {
            let columns = projection.take();
            let filters: Vec<_> = unnormalize_cols(scan.filters.iter().cloned());
            let width = task.session_config().target_partitions();
            let scan = ArrayScan::new(array, columns.as_ref(), &filters, width).map_err(called)?;
            Arc::new(scan) as Arc<dyn RowSource>
        } else if let Some(rows) = table.downcast_ref::<RowTable>() {
            Arc::clone(&rows.source)
        } else if let Some(written) = table.downcast_ref::<WrittenRows>() {
            Arc::clone(&written.rows.source)
        } else {
            return Err(Error::Unsupported(format!(
                "rows of {}, which nothing makes",
                scan.table_name.table()
            )));
        };
        Ok(Outside {
            name: scan.table_name.table().to_owned(),
            rows: source.rows().map_or(ROWS, |rows| rows as f64),
            source,
            projection,
            task: Arc::clone(task),
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
        self.source.parts()
    }

    fn is_once(&self) -> bool {
        self.source.is_once()
    }

    fn explain(&self) -> Vec<String> {
        self.source.explain()
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Arc<dyn ExternalParts>> {
        // Rows may be dealt to parts as they come: the first of several readers has all.
        let parts = if opening.share.0 == 0 {
            self.source.begin()
        } else {
            Vec::new()
        };
        Ok(Arc::new(Opened {
            parts: Mutex::new(parts.into_iter().zip(0..).collect()),
            projection: self.projection.clone(),
            task: Arc::clone(&self.task),
        }))
    }
}

/// Hands parts to workers.
struct Opened {
    parts: Mutex<VecDeque<(Batches, u64)>>,
    projection: Option<Vec<usize>>,
    task: Arc<TaskContext>,
}

impl Opened {
    fn part(&self) -> Option<ExternalPart> {
        let (rows, number) = self.parts.lock().pop_front()?;
        // Functions in what makes them ask for the memory of the statement.
        let memory = Memory::beginning(self.task.session_config().options());
        let projection = self.projection.clone();
        let rows = within(memory, rows).map(move |batch| {
            let batch = batch.map_err(called)?;
            Ok(match &projection {
                Some(columns) => batch.project(columns)?,
                None => batch,
            })
        });
        Some(ExternalPart {
            number,
            rows: rows.boxed(),
        })
    }
}

impl ExternalParts for Opened {
    fn next(&self) -> BoxFuture<'_, Result<Option<ExternalPart>>> {
        ready(Ok(self.part())).boxed()
    }
}
