//! What `elastic-nodes` found.

use emulator::count::Region;

use super::trial::Trial;
use crate::result::counted::Counted;

/// A number of clients: what was counted, and what happened.
pub(super) struct Found {
    pub(super) clients: usize,
    pub(super) counted: Vec<Counted>,
    /// What was counted over time in the first run of each variant.
    pub(super) windows: Vec<Vec<Region>>,
    /// The runs of each variant.
    pub(super) trials: Vec<Vec<Trial>>,
}
