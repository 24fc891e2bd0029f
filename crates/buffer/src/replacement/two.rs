//! 2Q: a first queue, a main queue, and ghosts of the first.

use parking_lot::Mutex;

use crate::page::PageId;
use crate::replacement::policy::{COLD_LOOKS, LOOKS, Replacement, Slots, Victim};
use crate::replacement::queues::{Ghosts, Queues};
use crate::word::Swept;

const FIRST: u8 = 0;
const MAIN: u8 = 1;

/// New pages go through a first queue of a quarter of the slots, and leave it however often they
/// were used there. A page that comes back while it is remembered, as one of half as many ghosts
/// as there are slots, goes to the main queue: a clock, in place of the list in order of use that
/// would need a lock at each pin.
#[derive(Debug)]
pub struct TwoQueues {
    first: u32,
    inner: Mutex<(Queues, Ghosts)>,
}

impl TwoQueues {
    /// The policy over `count` slots, at least 1.
    pub fn new(count: u32) -> TwoQueues {
        TwoQueues {
            first: (count / 4).max(1),
            inner: Mutex::new((Queues::new(count), Ghosts::new(count as usize / 2))),
        }
    }

    /// The queue from which the next page leaves.
    fn turn(&self, queues: &Queues) -> u8 {
        if queues.len(FIRST) >= self.first || queues.len(MAIN) == 0 {
            FIRST
        } else {
            MAIN
        }
    }

    /// Evicts the oldest page of the queue whose turn it is that was not used enough to stay.
    fn search(
        &self,
        queues: &mut Queues,
        ghosts: &mut Ghosts,
        looks: u32,
        slots: &dyn Slots,
    ) -> Option<u32> {
        for _ in 0..looks / 2 - 1 {
            let queue = self.turn(queues);
            let first = queue == FIRST;
            let slot = queues.oldest(queue)?;
            let page = slots.page(slot);
            let seen = match first {
                true if slots.evict(slot) => Swept::Evicted,
                true => slots.look(slot),
                false => slots.age(slot),
            };
            match seen {
                Swept::Elsewhere => queues.remove(slot),
                Swept::Evicted => {
                    queues.remove(slot);
                    if first {
                        ghosts.add(page);
                    }
                    return Some(slot);
                }
                Swept::Pinned | Swept::Aged(_) => queues.push(queue, slot),
            }
        }
        None
    }
}

impl Replacement for TwoQueues {
    fn loaded(&self, slot: u32, page: PageId, slots: &dyn Slots) {
        let (queues, ghosts) = &mut *self.inner.lock();
        slots.set_uses(slot, 0);
        let queue = if ghosts.take(page) { MAIN } else { FIRST };
        queues.push(queue, slot);
    }

    fn victim(&self, slots: &dyn Slots) -> Victim {
        let (queues, ghosts) = &mut *self.inner.lock();
        match self.search(queues, ghosts, LOOKS, slots) {
            Some(slot) => Victim::Taken(slot),
            // All were used: the oldest has to go.
            None => queues.evict_oldest([MAIN, FIRST], slots),
        }
    }

    fn cold(&self, slots: &dyn Slots) -> Option<u32> {
        let (queues, ghosts) = &mut *self.inner.lock();
        // Nothing is held against a page when no other comes for which it could make room.
        let first = self.turn(queues) == FIRST;
        let is_cold = |slot| matches!(slots.look(slot), Swept::Aged(uses) if uses == 0 || first);
        let oldest = queues.oldest(self.turn(queues));
        queues.find(oldest, COLD_LOOKS / 2, is_cold)?;
        self.search(queues, ghosts, COLD_LOOKS / 2, slots)
    }
}
