//! Reservations: memory that a query holds of its limit.

use std::sync::Arc;

use memory::Budget;

use crate::error::{Error, Result};

/// A growing reservation is extended in steps of this many bytes.
const STEP: u64 = 256 << 10;

/// Bytes that a worker may collect even if the memory limit leaves nothing for them. With fewer, it would spill row
/// by row.
pub(crate) const SLACK: usize = 512 << 10;

/// Bytes reserved from a budget. Dropping it releases them.
#[derive(Debug, Default)]
pub(crate) struct Reservation {
    budget: Option<Arc<Budget>>,
    bytes: u64,
}

impl Reservation {
    /// Reserves `bytes` for `what`.
    ///
    /// # Errors
    /// [`Error::Memory`] if the budget has less left.
    pub fn take(budget: &Arc<Budget>, bytes: u64, what: &'static str) -> Result<Reservation> {
        let mut held = Reservation::default();
        held.more(budget, bytes, what)?;
        Ok(held)
    }

    /// Grows the reservation to at least `bytes`, in steps.
    ///
    /// # Errors
    /// [`Error::Memory`] if the budget has less left.
    pub fn cover(&mut self, budget: &Arc<Budget>, bytes: usize, what: &'static str) -> Result<()> {
        match (bytes as u64).checked_sub(self.bytes) {
            None | Some(0) => Ok(()),
            Some(missing) => self.more(budget, missing.next_multiple_of(STEP), what),
        }
    }

    /// How many bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Releases all but the share `of / all` of the bytes.
    pub fn shrink(&mut self, of: usize, all: usize) {
        let kept = u128::from(self.bytes) * of as u128 / all.max(1) as u128;
        let kept = self.bytes.min(kept as u64);
        if let Some(budget) = &self.budget {
            budget.give(self.bytes - kept);
            self.bytes = kept;
        }
    }

    fn more(&mut self, budget: &Arc<Budget>, wanted: u64, what: &'static str) -> Result<()> {
        budget
            .take(wanted)
            .map_err(|_| Error::Memory { what, wanted })?;
        self.budget.get_or_insert_with(|| Arc::clone(budget));
        self.bytes += wanted;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.give(self.bytes);
        }
    }
}
