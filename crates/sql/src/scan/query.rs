//! What a scan knows of the statement that it is of.

use std::sync::Arc;

use fiber::Nearness;
use memory::Traffic;

/// What a scan finds in its `TaskContext`: `context.session_config().get_extension::<Query>()`.
#[derive(Debug)]
pub(crate) struct Query {
    /// Bytes that the statement's kernels read.
    pub traffic: Arc<Traffic>,
    /// Which node is how near to which.
    pub nearness: Nearness,
}
