//! What a scan has to know of the statement that runs it.

use std::sync::Arc;

use memory::Traffic;
use workers::Nearness;

/// What a scan finds in its `TaskContext`: `context.session_config().get_extension::<ScanContext>()`.
#[derive(Debug)]
pub(crate) struct ScanContext {
    /// Bytes that the statement's kernels read.
    pub traffic: Arc<Traffic>,
    /// How near NUMA nodes are to each other.
    pub nearness: Nearness,
}
