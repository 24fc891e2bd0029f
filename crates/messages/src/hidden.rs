//! Columns that no `*` returns.

use ingest::{FILE_NAME, FILE_ROW};
use table::ROW_COLUMN;

/// Whether a column of this name is one that `*` does not return: the numbers of rows, the names of files.
pub fn is_hidden(name: &str) -> bool {
    [ROW_COLUMN, FILE_NAME, FILE_ROW].contains(&name)
}
