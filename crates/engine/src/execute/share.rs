//! The share of one NUMA instance in a source (per-node policy).

use std::ops::Range;
use std::sync::Arc;

/// Which of several instances a query state belongs to.
#[derive(Clone, Debug)]
pub(crate) struct InstanceShare {
    pub number: usize,
    /// The number of instances.
    pub of: usize,
    pub homes: Arc<[usize]>,
}

impl InstanceShare {
    /// Whether this instance reads what lies on `node`.
    pub fn takes(&self, node: usize) -> bool {
        self.homes[node % self.homes.len()] == self.number
    }

    /// The instance's number, and the number of instances.
    pub fn place(&self) -> (usize, usize) {
        (self.number, self.of)
    }

    /// The number of instances.
    pub fn of(&self) -> usize {
        self.of
    }

    /// The pieces that this instance takes, of pieces that lie on no particular node.
    pub fn deal(&self, pieces: &[Range<usize>]) -> Arc<[Range<usize>]> {
        let own = pieces.iter().skip(self.number).step_by(self.of);
        own.cloned().collect()
    }
}
