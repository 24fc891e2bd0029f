//! What a query of AFL gives, as a table: a row for each cell.

use std::sync::Arc;

use array::{Plan, Run};
use arrow::array::RecordBatch;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion_common::Result as DataFusionResult;
use datafusion_expr::TableSource;
use futures::StreamExt;
use workers::Workers;

use crate::error::{Error, Result};
use crate::scan::arrays::columns;
use crate::scan::arrays::definition::fields_of;
use crate::scan::rows::{Batches, RowSource, RowTable};

/// The most rows of a batch.
const ROWS: usize = 8192;

/// The table of the cells that `plan` gives. They are computed when it is read, chunk by chunk, on the workers.
///
/// # Errors
/// If the plan is wrong.
pub(crate) fn table(plan: Plan, workers: &Arc<Workers>) -> Result<Arc<dyn TableSource>> {
    let schema = plan.schema()?;
    // A result may have nulls wherever.
    let fields = fields_of(&schema).map(|field| field.with_nullable(true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let cells = Cells {
        plan,
        schema: Arc::clone(&schema),
        workers: Arc::clone(workers),
    };
    Ok(Arc::new(RowTable::new(schema, Arc::new(cells))))
}

/// What computes the rows of such a table.
struct Cells {
    plan: Plan,
    schema: SchemaRef,
    workers: Arc<Workers>,
}

impl std::fmt::Debug for Cells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.plan)
    }
}

impl RowSource for Cells {
    fn begin(&self) -> Vec<Batches> {
        let schema = Arc::clone(&self.schema);
        vec![rows(self.plan.clone(), schema, Arc::clone(&self.workers)).boxed()]
    }
}

fn rows(
    plan: Plan,
    schema: SchemaRef,
    workers: Arc<Workers>,
) -> impl futures::Stream<Item = DataFusionResult<RecordBatch>> + Send {
    async_stream::try_stream! {
        // Whole chunks for each worker; how many there are is not known before.
        let run = Run::new().on_all(&workers, u64::MAX);
        let mut chunks = plan.chunks(&run).await.map_err(Error::from)?;
        while let Some(block) = chunks.next().await {
            let block = block.map_err(Error::from)?;
            let all = columns::of_block(chunks.schema(), &schema, &block)?;
            for from in (0..all.num_rows()).step_by(ROWS) {
                yield all.slice(from, ROWS.min(all.num_rows() - from));
            }
        }
    }
}
