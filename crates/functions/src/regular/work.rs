//! How much a search has done: it is cancelled with its statement.

use messages::Result;

use crate::present;

/// After how many steps the switch of the statement is looked at: a few milliseconds.
const STEPS: usize = 1 << 16;

/// The work of a search.
#[derive(Debug, Default)]
pub(super) struct Work {
    steps: usize,
}

impl Work {
    /// Counts some steps.
    ///
    /// # Errors
    /// If the statement was cancelled.
    pub(super) fn done(&mut self, steps: usize) -> Result<()> {
        self.steps += steps;
        if self.steps < STEPS {
            return Ok(());
        }
        self.steps = 0;
        present::check()
    }
}
