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
    /// Another budget that this is a part of, and what this part is called.
    part: Option<(Arc<Budget>, Box<str>)>,
}

impl Budget {
    /// A budget of `limit` bytes, none of them taken.
    pub fn new(limit: u64) -> Arc<Budget> {
        Arc::new(Budget {
            limit,
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            watch: OnceLock::new(),
            part: None,
        })
    }

    /// A part of another budget, of `limit` bytes at most: what is taken from it is taken from both, and what is not left in
    /// either is refused. `name` says whose part it is.
    ///
    /// ```
    /// let whole = memory::Budget::new(100);
    /// let part = memory::Budget::within(&whole, 60, "ann");
    /// part.take(50)?;
    /// assert!(part.take(20).is_err(), "the part is spent");
    /// whole.take(45)?;
    /// assert!(part.take(10).is_err(), "so is the whole");
    /// assert_eq!((part.used(), part.left(), whole.used()), (50, 5, 95));
    /// # Ok::<(), memory::Error>(())
    /// ```
    pub fn within(whole: &Arc<Budget>, limit: u64, name: &str) -> Arc<Budget> {
        Arc::new(Budget {
            limit,
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
            watch: OnceLock::new(),
            part: Some((Arc::clone(whole), name.into())),
        })
    }

    /// Whose part of another budget this is, if it is one.
    pub fn name(&self) -> Option<&str> {
        self.part.as_ref().map(|(_, name)| &**name)
    }

    /// The budget that this is a part of, or itself if it is of none.
    pub fn whole(&self) -> &Budget {
        self.part.as_ref().map_or(self, |(whole, _)| whole.whole())
    }

    /// Bytes that may still be taken.
    pub fn left(&self) -> u64 {
        let own = self.limit.saturating_sub(self.used());
        let whole = self.part.as_ref().map(|(whole, _)| whole.left());
        whole.map_or(own, |whole| own.min(whole))
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
                if let Some((whole, _)) = &self.part
                    && let Err(short) = whole.take(bytes)
                {
                    self.used.fetch_sub(bytes, Ordering::Relaxed);
                    return Err(short);
                }
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(())
            }
            Err(used) => Err(Error::Budget {
                wanted: bytes,
                used,
                limit: self.limit,
                whose: self.name().map(Into::into),
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
        if let Some((whole, _)) = &self.part {
            whole.give(before.unwrap_or_default().min(bytes));
        }
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
                limit: 10,
                whose: None
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
    fn parts_take_from_the_whole_and_give_back() {
        let whole = Budget::new(10);
        let (a, b) = (
            Budget::within(&whole, 6, "a"),
            Budget::within(&whole, 8, "b"),
        );
        a.take(6).unwrap();
        assert!(a.take(1).is_err());
        assert!(b.take(5).is_err(), "the whole has 4");
        assert_eq!((b.used(), b.left(), whole.used()), (0, 4, 6));
        b.take(4).unwrap();
        a.give(6);
        assert_eq!((whole.used(), a.left(), b.left()), (4, 6, 4));
        assert_eq!((a.name(), whole.name()), (Some("a"), None));
        b.give(4);
        assert_eq!(whole.used(), 0);
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
