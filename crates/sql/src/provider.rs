//! A table of a snapshot as DataFusion sees it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::datasource::memory::MemorySourceConfig;
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use memory::Traffic;
use table::{Scan, Table};

use crate::scope::Query;
use crate::{Error, ROW_ID};

/// One table, optionally with the hidden column of row ids that `delete` and `update` ask for.
#[derive(Debug)]
pub(crate) struct Provider {
    table: Arc<Table>,
    schema: SchemaRef,
    row_ids: bool,
}

impl Provider {
    /// With `row_ids`, a last column [`ROW_ID`] tells which row of the table each row is.
    pub(crate) fn new(table: Arc<Table>, row_ids: bool) -> Provider {
        let mut schema = table.schema().clone();
        if row_ids {
            let mut fields = schema.fields().to_vec();
            fields.push(Arc::new(Field::new(ROW_ID, DataType::UInt64, false)));
            schema = Arc::new(Schema::new(fields));
        }
        Provider {
            table,
            schema,
            row_ids,
        }
    }
}

#[async_trait]
impl TableProvider for Provider {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _filters: &[Expr],
        _limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let all: Vec<usize> = (0..self.table.schema().fields().len()).collect();
        let scan = Scan::new(Arc::clone(&self.table), all, self.row_ids);
        let pool = self.table.snapshot().pool();
        let own = Traffic::new(pool.nodes());
        let query = state.config().get_extension::<Query>();
        let traffic = query.as_ref().map_or(&own, |query| &query.traffic);
        let mut batches = Vec::new();
        for (_, morsel) in scan.morsels() {
            let here = || fiber::here().map_or(0, |here| here.node);
            let Some(mut cursor) = scan
                .open(pool, morsel, &[], traffic, here)
                .await
                .map_err(Error::from)?
            else {
                continue;
            };
            while let Some(batch) = cursor.next(table::BATCH_ROWS).map_err(Error::from)? {
                batches.push(batch);
            }
        }
        Ok(MemorySourceConfig::try_new_exec(
            &[batches],
            Arc::clone(&self.schema),
            projection.cloned(),
        )?)
    }
}
