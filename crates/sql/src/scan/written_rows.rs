//! The rows that a statement has written, as its `returning` reads them.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion_expr::{TableSource, TableType};
use table::ROW_COLUMN;

use crate::scan::rows::RowTable;

/// Rows in memory, and the table that they are or were of.
#[derive(Debug)]
pub(crate) struct WrittenRows {
    /// The name of the table in the catalog.
    pub table: String,
    /// Whether there is a column with the numbers of the rows.
    pub has_places: bool,
    pub rows: RowTable,
}

/// The columns of rows, and the numbers that these have in their table.
pub(crate) fn with_places(schema: &SchemaRef) -> SchemaRef {
    let number = Arc::new(Field::new(ROW_COLUMN, DataType::UInt64, false));
    let fields = schema.fields().iter().cloned().chain([number]);
    Arc::new(Schema::new(fields.collect::<Vec<FieldRef>>()))
}

impl TableSource for WrittenRows {
    fn schema(&self) -> SchemaRef {
        self.rows.schema()
    }

    fn table_type(&self) -> TableType {
        TableType::Temporary
    }
}
