//! S3-FIFO: a small queue, a main queue, and ghosts.

use parking_lot::Mutex;

use crate::page::PageId;
use crate::replacement::policy::{COLD_LOOKS, LOOKS, Replacement, Slots, Victim};
use crate::replacement::queues::{Ghosts, Queues};
use crate::word::Swept;

const SMALL: u8 = 0;
const MAIN: u8 = 1;
/// Uses after its load with which a page moves from the small queue to the main one.
const PROMOTED: u32 = 2;

/// New pages go through a small queue of a tenth of the slots. Those used there move to the main
/// queue, the others leave and are remembered as ghosts, as many as the main queue has slots; a
/// ghost that comes back goes to the main queue at once. The main queue is a clock.
#[derive(Debug)]
pub struct S3Fifo {
    small: u32,
    inner: Mutex<(Queues, Ghosts)>,
}

impl S3Fifo {
    /// The policy over `count` slots, at least 1.
    pub fn new(count: u32) -> S3Fifo {
        let small = (count / 10).max(1);
        let ghosts = Ghosts::new((count - small) as usize);
        S3Fifo {
            small,
            inner: Mutex::new((Queues::new(count), ghosts)),
        }
    }

    /// The queue from which the next page leaves.
    fn turn(&self, queues: &Queues) -> u8 {
        if queues.len(SMALL) >= self.small || queues.len(MAIN) == 0 {
            SMALL
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
            let small = queue == SMALL;
            let slot = queues.oldest(queue)?;
            let seen = if small {
                slots.look(slot)
            } else {
                slots.age(slot)
            };
            match seen {
                Swept::Elsewhere => queues.remove(slot),
                Swept::Evicted => {
                    queues.remove(slot);
                    return Some(slot);
                }
                Swept::Aged(uses) if small && uses < PROMOTED => {
                    let page = slots.page(slot);
                    if slots.evict(slot) {
                        queues.remove(slot);
                        ghosts.add(page);
                        return Some(slot);
                    }
                    queues.push(MAIN, slot);
                }
                Swept::Aged(_) if small => {
                    slots.set_uses(slot, 0);
                    queues.push(MAIN, slot);
                }
                // In use now, or used since it last came by.
                Swept::Pinned | Swept::Aged(_) => queues.push(queue, slot),
            }
        }
        None
    }
}

impl Replacement for S3Fifo {
    fn loaded(&self, slot: u32, page: PageId, slots: &dyn Slots) {
        let (queues, ghosts) = &mut *self.inner.lock();
        // The load itself is not a use.
        slots.set_uses(slot, 0);
        let queue = if ghosts.take(page) { MAIN } else { SMALL };
        queues.push(queue, slot);
    }

    fn victim(&self, slots: &dyn Slots) -> Victim {
        let (queues, ghosts) = &mut *self.inner.lock();
        match self.search(queues, ghosts, LOOKS, slots) {
            Some(slot) => Victim::Taken(slot),
            // All were used: the oldest has to go.
            None => queues.evict_oldest([MAIN, SMALL], slots),
        }
    }

    fn cold(&self, slots: &dyn Slots) -> Option<u32> {
        let (queues, ghosts) = &mut *self.inner.lock();
        // Nothing is held against a page when no other comes for which it could make room.
        let small = self.turn(queues) == SMALL;
        let is_cold = |slot| matches!(slots.look(slot), Swept::Aged(uses) if uses == 0 || small && uses < PROMOTED);
        let oldest = queues.oldest(self.turn(queues));
        queues.find(oldest, COLD_LOOKS / 2, is_cold)?;
        self.search(queues, ghosts, COLD_LOOKS / 2, slots)
    }
}
