//! The memory budget: one limit that all large consumers of memory share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::resident::Watch;
use crate::{Error, Result};

/// One memory limit, shared by everything that takes memory in bulk: pool frames, operators.
///
/// It only counts: the caller allocates what it took, and gives back what it freed. Lock-free. Freed memory that the
/// allocator keeps does not count; a budget that [watches](Budget::watch) the process has it returned to the system.
///
/// ```
/// let budget = memory::Budget::new(100);
/// budget.take(60)?;
/// let error = budget.take(50).unwrap_err();
/// assert!(error.to_string().contains("60 of 100"));
/// # Ok::<(), memory::Error>(())
/// ```
#[derive(Debug)]
pub struct Budget {
    limit: u64,
    /// Never above `limit`.
    used: AtomicU64,
    /// The highest value `used` ever had.
    peak: AtomicU64,
    watch: OnceLock<Watch>,
}

impl Budget {
    /// A budget of `limit` bytes, none of them taken.
    pub fn new(limit: u64) -> Arc<Budget> {
        Arc::new(Budget {
            limit,
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            watch: OnceLock::new(),
        })
    }

    /// Watches the resident memory of this process: when it exceeds the limit plus `base` bytes, a [`take`](Budget::take)
    /// calls `reclaim`, which should return freed memory to the system. Whether a `take` is granted depends only on what
    /// was taken, never on resident memory. Only the first call has an effect, and none where the system does not report
    /// the resident memory of a process.
    pub fn watch(&self, base: u64, reclaim: fn()) {
        if let Some(watch) = Watch::new(self.limit.saturating_add(base), reclaim) {
            let _ = self.watch.set(watch);
        }
    }

    /// Takes `bytes`, all or none of them.
    ///
    /// # Errors
    ///
    /// [`Error::Budget`] when fewer than `bytes` are left; nothing is taken then.
    pub fn take(&self, bytes: u64) -> Result<()> {
        if let Some(watch) = self.watch.get() {
            watch.look();
        }
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        // Relaxed: the counter guards no other data.
        match self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits)
        {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(used) => Err(Error::Budget {
                wanted: bytes,
                used,
                limit: self.limit,
            }),
        }
    }

    /// Gives back `bytes` that were taken. Giving more than was taken is a bug of the caller:
    /// asserted in debug builds, otherwise the count stops at zero.
    pub fn give(&self, bytes: u64) {
        let rest = |used: u64| Some(used.saturating_sub(bytes));
        let before = self
            .used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, rest);
        debug_assert!(
            before.is_ok_and(|used| used >= bytes),
            "gave back more than was taken"
        );
    }

    /// Bytes taken now.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// The most bytes that were taken at one time.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// The limit in bytes.
    pub fn limit(&self) -> u64 {
        self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_all_or_nothing() {
        let budget = Budget::new(10);
        budget.take(10).unwrap();
        assert!(matches!(
            budget.take(1),
            Err(Error::Budget {
                wanted: 1,
                used: 10,
                limit: 10
            })
        ));
        budget.give(4);
        assert!(budget.take(5).is_err());
        budget.take(4).unwrap();
        assert!(
            budget.take(u64::MAX).is_err(),
            "an overflowing sum must not wrap around"
        );
        assert_eq!((budget.used(), budget.peak(), budget.limit()), (10, 10, 10));
    }

    #[test]
    fn never_above_the_limit_under_threads() {
        let budget = Budget::new(7);
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..2000 {
                        if budget.take(3).is_ok() {
                            assert!(budget.used() <= 7);
                            budget.give(3);
                        }
                    }
                });
            }
        });
        assert_eq!(budget.used(), 0);
        assert!(budget.peak() <= 7);
    }
}
