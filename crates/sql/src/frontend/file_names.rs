//! Names in statements that mean files: paths, and functions that read them.

use datafusion::sql::sqlparser::ast::ObjectName;
use ingest::Format;

/// The functions that read files.
const FUNCTIONS: [(&str, Format); 9] = [
    ("read_csv", Format::Csv),
    ("read_csv_auto", Format::Csv),
    ("read_json", Format::Json),
    ("read_json_auto", Format::Json),
    ("read_ndjson", Format::Json),
    ("read_ndjson_auto", Format::Json),
    ("read_parquet", Format::Parquet),
    ("parquet_scan", Format::Parquet),
    ("read_arrow", Format::Arrow),
];

/// Whether `name` is one of the functions that read files.
pub(crate) fn reads(name: &ObjectName) -> bool {
    function(name).is_some()
}

/// The function of that name, and the format that it reads.
pub(crate) fn function(name: &ObjectName) -> Option<(&'static str, Format)> {
    let called = name.to_string().to_lowercase();
    FUNCTIONS.into_iter().find(|(known, _)| *known == called)
}

/// Whether a table name that no table has is meant as the path of a file.
pub(crate) fn looks_like_file(name: &str) -> bool {
    name.contains(std::path::MAIN_SEPARATOR) || Format::of_name(name).is_some()
}
