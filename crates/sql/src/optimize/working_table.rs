//! The table of a recursive query within its own recursive term: the rows of the round before.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_expr::{TableSource, TableType};
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

impl TableSource for WorkTable {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }
}
