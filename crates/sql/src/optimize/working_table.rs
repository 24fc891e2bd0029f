//! The table of a recursive query within its own recursive term: the rows of the round before.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use async_trait::async_trait;
use datafusion::catalog::{Session, TableProvider};
use datafusion::common::internal_err;
use datafusion::error::Result;
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_plan::ExecutionPlan;
use engine::WorkingTable;

/// The table as statements name it.
#[derive(Debug)]
pub(crate) struct WorkTable {
    /// The name of the recursive query.
    pub name: String,
    schema: SchemaRef,
    pub working: WorkingTable,
}

impl WorkTable {
    /// That of the recursive query of this name.
    pub(crate) fn new(name: &str, schema: SchemaRef) -> WorkTable {
        WorkTable {
            name: name.to_owned(),
            schema,
            working: WorkingTable::new(name),
        }
    }
}

#[async_trait]
impl TableProvider for WorkTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }

    async fn scan(
        &self,
        _: &dyn Session,
        _: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        internal_err!("a recursive query runs in the engine alone")
    }
}
