//! What is said of arrays, their dimensions and attributes, as a view: units and names that came with their files.

use arrow::array::RecordBatch;
use catalog::pg_catalog::Built;
use datafusion_common::Result;
use syntax::names::{CATALOG, SCHEMA};

use crate::scan::arrays::definition::ArrayTable;

/// The view of `information_schema` that has it.
pub(crate) const VIEW: &str = "array_attributes";

/// A row for each thing that is said: the array, the column that it is said of, the name of what is said, and the value as a
/// text; several are separated by commas.
pub(crate) fn view(arrays: &[ArrayTable]) -> Result<RecordBatch> {
    let mut rows: Vec<(&str, Option<&str>, &str, String)> = Vec::new();
    for table in arrays {
        let name = table.array.name();
        let metadata = table.array.schema().metadata();
        let columns = table.schema.fields().iter();
        let columns = columns.map(|field| Some(field.name().as_str()));
        for column in [None].into_iter().chain(columns) {
            let entries = metadata.of(column).iter();
            rows.extend(entries.map(|(of, value)| (name, column, of.as_str(), value.to_string())));
        }
    }
    Built::default()
        .text("table_catalog", CATALOG, rows.len())
        .text("table_schema", SCHEMA, rows.len())
        .names("table_name", rows.iter().map(|of| of.0))
        .texts("column_name", rows.iter().map(|of| of.1))
        .names("attribute_name", rows.iter().map(|of| of.2))
        .names("attribute_value", rows.iter().map(|of| of.3.as_str()))
        .batch()
}
