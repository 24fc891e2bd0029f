//! The clock with usage counts (row B3).

use std::sync::atomic::{AtomicU32, Ordering};

use crate::page::PageId;
use crate::replacement::policy::{COLD_LOOKS, LOOKS, Replacement, Slots, Victim};
use crate::word::Swept;

/// A hand that goes round the slots, takes a use off each page it passes and evicts what has none
/// left, as PostgreSQL does. It has no lock; several threads turn it at once.
///
/// After [`LOOKS`] slots the least used of those falls out. Pages get older by one at each look
/// all the same, so what the bound leaves for later evictions to do is no more than what it saved.
#[derive(Debug)]
pub struct Clock {
    hand: AtomicU32,
    count: u32,
}

impl Clock {
    /// A clock over `count` slots, at least 1.
    pub fn new(count: u32) -> Clock {
        Clock {
            hand: AtomicU32::new(0),
            count,
        }
    }
}

impl Replacement for Clock {
    fn loaded(&self, _: u32, _: PageId, _: &dyn Slots) {}

    fn victim(&self, slots: &dyn Slots) -> Victim {
        let mut least: Option<(u32, u32)> = None;
        // One look is left for the least used.
        for _ in 0..(LOOKS - 1).min(self.count) {
            let slot = self.hand.fetch_add(1, Ordering::Relaxed) % self.count;
            match slots.age(slot) {
                Swept::Evicted => return Victim::Taken(slot),
                Swept::Aged(uses) if least.is_none_or(|(fewest, _)| uses < fewest) => {
                    least = Some((uses, slot));
                }
                Swept::Aged(_) | Swept::Elsewhere | Swept::Pinned => {}
            }
        }
        // It may have been pinned since.
        match least {
            Some((_, slot)) if slots.evict(slot) => Victim::Taken(slot),
            _ => Victim::More,
        }
    }

    fn cold(&self, slots: &dyn Slots) -> Option<u32> {
        // Each may take two looks.
        let most = (COLD_LOOKS / 2).min(self.count);
        let first = self.hand.fetch_add(1, Ordering::Relaxed);
        let at = |step: u32| first.wrapping_add(step) % self.count;
        let is_cold = |slot| slots.look(slot) == Swept::Aged(0);
        let found = (0..most).find(|&step| is_cold(at(step)) && slots.evict(at(step)));
        let passed = found.unwrap_or(most - 1);
        self.hand.fetch_add(passed, Ordering::Relaxed);
        // Time passes with the pages that come. Were pages to age for those that do not, a few dropped
        // prefetches would make all of them cold.
        for slot in (0..found?).map(at) {
            // Not `age`: if another thread took the last use meanwhile, it would evict the page, into
            // a second slot where the caller has room for one.
            if let Swept::Aged(uses @ 1..) = slots.look(slot) {
                slots.set_uses(slot, uses - 1);
            }
        }
        found.map(at)
    }
}
