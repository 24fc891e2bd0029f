//! What one instance of several takes of a source (plan distr).

use std::ops::Range;
use std::sync::Arc;

/// Which instance of a query a run is, if it is one of several.
#[derive(Clone, Debug)]
pub(crate) struct InstanceShare {
    pub number: usize,
    /// How many there are.
    pub of: usize,
    pub homes: Arc<[usize]>,
}

impl InstanceShare {
    /// Whether this instance takes what lies on `node`.
    pub fn takes(&self, node: usize) -> bool {
        self.homes[node % self.homes.len()] == self.number
    }

    /// Which of how many instances it is.
    pub fn place(&self) -> (usize, usize) {
        (self.number, self.of)
    }

    /// How many instances there are.
    pub fn of(&self) -> usize {
        self.of
    }

    /// Of pieces that lie nowhere in particular, those that it takes.
    pub fn deal(&self, pieces: &[Range<usize>]) -> Arc<[Range<usize>]> {
        let own = pieces.iter().skip(self.number).step_by(self.of);
        own.cloned().collect()
    }
}
