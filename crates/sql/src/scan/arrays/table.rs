//! An array as a table of DataFusion's catalog.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::error::Result as DataFusionResult;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion::physical_plan::ExecutionPlan;

use crate::scan::arrays::definition::ArrayTable;
use crate::scan::arrays::exec::ArrayExec;
use crate::scan::arrays::prune;

#[async_trait]
impl TableProvider for ArrayTable {
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

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> DataFusionResult<Arc<dyn ExecutionPlan>> {
        let wanted = prune::wanted(state, self, filters)?;
        let all: Vec<usize> = (0..self.schema.fields().len()).collect();
        let columns = projection.unwrap_or(&all).clone();
        let partitions = wanted
            .chunks
            .len()
            .clamp(1, state.config().target_partitions().max(1));
        Ok(Arc::new(ArrayExec::new(
            self.clone(),
            columns,
            Arc::new(wanted),
            // Filters let fewer rows through than a limit asks for.
            limit.filter(|_| filters.is_empty()),
            partitions,
        )))
    }
}
