//! The results of `elastic-nodes`.

use emulator::count::Region;

use super::trial::Trial;
use crate::result::counted::Counted;

/// The results for one number of clients.
pub(super) struct Found {
    pub(super) clients: usize,
    pub(super) counted: Vec<Counted>,
    /// Accesses over time in the first run of each variant.
    pub(super) windows: Vec<Vec<Region>>,
    /// The runs of each variant.
    pub(super) trials: Vec<Vec<Trial>>,
}
