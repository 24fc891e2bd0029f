//! What one consumer has of a budget, where some of it must be had whether there is room or not.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Budget, Result};

/// The bytes of one consumer, taken from a budget and given back when this is dropped.
///
/// What a consumer cannot do without, [`must`](Account::must) counts: where the budget has no room it is *owed*, and
/// taken from the budget as soon as there is, before this consumer takes anything else. So the budget's limit is
/// exceeded by no more than what is owed, and others find less room.
///
/// ```
/// let budget = memory::Budget::new(100);
/// let account = memory::Account::new(budget.clone());
/// account.take(80)?;
/// account.must(30);
/// assert_eq!((budget.used(), account.bytes(), account.owed()), (80, 110, 30));
/// account.give(20);
/// assert_eq!((budget.used(), account.owed()), (80, 10), "what is owed goes first");
/// drop(account);
/// assert_eq!(budget.used(), 0);
/// # Ok::<(), memory::Error>(())
/// ```
#[derive(Debug)]
pub struct Account {
    budget: Arc<Budget>,
    held: Mutex<Held>,
}

/// Invariant: `counted` bytes are taken from the budget, at most `bytes`.
#[derive(Debug, Default)]
struct Held {
    bytes: u64,
    counted: u64,
}

impl Account {
    /// An account without any bytes.
    pub fn new(budget: Arc<Budget>) -> Account {
        Account {
            budget,
            held: Mutex::default(),
        }
    }

    /// Takes `bytes`, and what is owed, all or none of them.
    ///
    /// # Errors
    /// [`Error::Budget`](crate::Error::Budget) when the budget has less; nothing is taken then.
    pub fn take(&self, bytes: u64) -> Result<()> {
        let mut held = self.held.lock();
        let owed = held.bytes - held.counted;
        self.budget.take(owed.saturating_add(bytes))?;
        held.bytes += bytes;
        held.counted = held.bytes;
        Ok(())
    }

    /// Has `bytes` more; where the budget has less they are owed.
    pub fn must(&self, bytes: u64) {
        let mut held = self.held.lock();
        held.bytes += bytes;
        let owed = held.bytes - held.counted;
        if self.budget.take(owed).is_ok() {
            held.counted = held.bytes;
        }
    }

    /// Gives back `bytes` that were had: those that are owed first. Giving back more is a bug of the caller: asserted
    /// in debug builds, otherwise the count stops at zero.
    pub fn give(&self, bytes: u64) {
        let mut held = self.held.lock();
        debug_assert!(bytes <= held.bytes, "gave back more than was had");
        held.bytes = held.bytes.saturating_sub(bytes);
        if held.counted > held.bytes {
            self.budget.give(held.counted - held.bytes);
            held.counted = held.bytes;
        }
    }

    /// Bytes that are had, those owed included.
    pub fn bytes(&self) -> u64 {
        self.held.lock().bytes
    }

    /// Bytes that are had and that the budget had no room for.
    pub fn owed(&self) -> u64 {
        let held = self.held.lock();
        held.bytes - held.counted
    }

    /// The budget.
    pub fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.budget.give(self.held.get_mut().counted);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_owed_is_taken_before_anything_else() {
        let budget = Budget::new(10);
        let account = Account::new(budget.clone());
        budget.take(8).unwrap();
        account.must(5);
        assert_eq!((account.bytes(), account.owed(), budget.used()), (5, 5, 8));
        assert!(account.take(1).is_err());
        budget.give(8);
        assert!(account.take(6).is_err(), "5 are owed");
        account.take(1).unwrap();
        assert_eq!((account.bytes(), account.owed(), budget.used()), (6, 0, 6));
        account.give(6);
        assert_eq!((account.bytes(), budget.used()), (0, 0));
        account.must(3);
        assert_eq!(account.owed(), 0);
        drop(account);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn all_is_given_back_under_threads() {
        let budget = Budget::new(1000);
        let account = Account::new(budget.clone());
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for step in 0..500 {
                        if step % 3 == 0 {
                            account.must(700);
                            account.give(700);
                        } else if account.take(400).is_ok() {
                            account.give(400);
                        }
                        assert!(budget.used() <= 1000);
                    }
                });
            }
        });
        assert_eq!((account.bytes(), account.owed(), budget.used()), (0, 0, 0));
    }
}
