//! Errors of DataFusion that the engine hands through.

use datafusion::error::DataFusionError;
use engine::Error;

/// What DataFusion fails at while we lower, it shall tell itself when it runs the statement.
pub(crate) fn failed(e: DataFusionError) -> Error {
    Error::Unsupported(e.to_string())
}
