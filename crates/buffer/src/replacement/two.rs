//! 2Q: a first queue, a main queue, and ghosts of the first.

use parking_lot::Mutex;

use crate::page::PageId;
use crate::replacement::policy::{LOOKS, Replacement, Slots, Victim};
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
        for _ in 0..LOOKS / 2 - 1 {
            let first = queues.len(FIRST) >= self.first || queues.len(MAIN) == 0;
            let queue = if first { FIRST } else { MAIN };
            let Some(slot) = queues.oldest(queue) else {
                return Victim::More;
            };
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
                    return Victim::Taken(slot);
                }
                Swept::Pinned | Swept::Aged(_) => queues.push(queue, slot),
            }
        }
        // All were used: the oldest has to go.
        queues.evict_oldest([MAIN, FIRST], slots)
    }
}
