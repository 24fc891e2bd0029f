//! The results of `plans`.

use serde::Serialize;

use crate::result::compared::Compared;

/// Warm-up runs before a counted one.
pub(super) const WARM: usize = 2;

/// What was counted of one query under one plan.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Found {
    pub(super) query: String,
    pub(super) plan: String,
    pub(super) affinity: bool,
    #[serde(flatten)]
    pub(super) compared: Compared,
    /// For each run: how often workers were moved to another cpu; `None` if the kernel does not say.
    pub(super) moves: Vec<Option<u64>>,
}
