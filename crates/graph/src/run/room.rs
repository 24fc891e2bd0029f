//! Memory that is counted against the budget.

use std::sync::Arc;

use memory::Budget;

use crate::error::{Error, Result};

/// Bytes taken from a budget, given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Room {
    /// Takes `bytes` for `what`.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn take(budget: &Arc<Budget>, bytes: u64, what: impl FnOnce() -> String) -> Result<Room> {
        match budget.take(bytes) {
            Ok(()) => Ok(Room {
                budget: budget.clone(),
                bytes,
            }),
            Err(source) => Err(Error::Memory {
                what: what(),
                bytes,
                source,
            }),
        }
    }

    /// Takes as many bytes as there are, at most `most`; less than `least` is refused.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub fn most(
        budget: &Arc<Budget>,
        most: u64,
        least: u64,
        what: impl FnOnce() -> String,
    ) -> Result<Room> {
        let free = budget.limit().saturating_sub(budget.used());
        Room::take(budget, most.min(free).max(least), what)
    }

    /// How many bytes it is.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Room {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}
