//! What `plans` found.

use serde::Serialize;

use crate::result::compared::Compared;

/// Runs before one that is counted.
pub(super) const WARM: usize = 2;

/// What was counted of one query under one plan.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Found {
    pub(super) query: String,
    pub(super) plan: String,
    pub(super) affinity: bool,
    #[serde(flatten)]
    pub(super) compared: Compared,
    /// How often workers were moved to another cpu, of each run; none where the kernel does not say.
    pub(super) moves: Vec<Option<u64>>,
}
