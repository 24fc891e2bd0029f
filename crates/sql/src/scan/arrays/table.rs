//! An array as a table that plans read.

use std::sync::Arc;

use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::Result as DataFusionResult;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableSource, TableType};
use futures::StreamExt;
use parking_lot::Mutex;

use crate::scan::arrays::columns;
use crate::scan::arrays::definition::ArrayTable;
use crate::scan::arrays::pieces::Pieces;
use crate::scan::arrays::prune::{self, Wanted};
use crate::scan::rows::{Batches, RowSource};

/// The most rows of a batch.
const ROWS: usize = 8192;

impl TableSource for ArrayTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> DataFusionResult<Vec<TableProviderFilterPushDown>> {
        // They only tell what need not be read; the operator above tests them again.
        Ok(vec![TableProviderFilterPushDown::Inexact; filters.len()])
    }

    fn get_column_default(&self, column: &str) -> Option<&Expr> {
        self.defaults.get(column)
    }
}

/// What a plan reads of an array.
#[derive(Clone, Debug)]
pub(crate) struct ArrayScan {
    table: ArrayTable,
    /// Which columns of the table.
    columns: Arc<Vec<usize>>,
    schema: SchemaRef,
    wanted: Arc<Wanted>,
    /// How many workers read side by side.
    width: usize,
}

impl ArrayScan {
    /// Of `table` the columns of `projection`, and the cells that may pass `filters`, for so many workers.
    ///
    /// # Errors
    /// Those of reading the array's statistics.
    pub(crate) fn new(
        table: &ArrayTable,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        width: usize,
    ) -> DataFusionResult<ArrayScan> {
        let all = || (0..table.schema.fields().len()).collect();
        let columns = projection.cloned().unwrap_or_else(all);
        let fields = columns.iter().map(|&at| table.schema.field(at).clone());
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(ArrayScan {
            table: table.clone(),
            columns: Arc::new(columns),
            schema,
            wanted: Arc::new(prune::wanted(table, filters)?),
            width,
        })
    }
}

impl RowSource for ArrayScan {
    /// All parts take pieces from one list, so that none waits for another's chunk.
    fn begin(&self) -> Vec<Batches> {
        let pieces = Arc::new(Mutex::new(Pieces::new(Arc::clone(&self.wanted))));
        let part = |_| read(self.clone(), Arc::clone(&pieces));
        (0..self.parts()).map(part).collect()
    }

    fn explain(&self) -> Vec<String> {
        let Wanted { chunks, of } = &*self.wanted;
        vec![format!("chunks={} of {of}", chunks.len())]
    }

    fn parts(&self) -> usize {
        self.wanted.chunks.len().clamp(1, self.width.max(1))
    }
}

fn read(scan: ArrayScan, pieces: Arc<Mutex<Pieces>>) -> Batches {
    let rows = async_stream::try_stream! {
        loop {
            let piece = pieces.lock().next();
            let Some(piece) = piece else { break };
            let all = columns::batch(&scan.table, &scan.columns, &scan.schema, &piece).await?;
            for from in (0..all.num_rows()).step_by(ROWS) {
                yield all.slice(from, ROWS.min(all.num_rows() - from));
            }
        }
    };
    rows.boxed()
}
