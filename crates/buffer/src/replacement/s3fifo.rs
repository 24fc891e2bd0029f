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
/// Pages that leave the small queue for each page of the main one that is looked at meanwhile.
const LEFT_PER_AGED: u32 = 8;

/// New pages go through a small queue of a tenth of the slots. Those used there move to the main
/// queue, the others leave and are remembered as ghosts, as many as the main queue has slots; a
/// ghost that comes back goes to the main queue at once. The main queue is a clock.
///
/// Unlike the published policy, the main queue also ages while only the small one evicts, one page
/// for every [`LEFT_PER_AGED`]. Otherwise a long scan, whose pages all leave from the small queue,
/// would leave pages in memory that were used often once and never again.
#[derive(Debug)]
pub struct S3Fifo {
    small: u32,
    inner: Mutex<State>,
}

#[derive(Debug)]
struct State {
    queues: Queues,
    ghosts: Ghosts,
    /// Pages that left the small queue since a page of the main one was looked at.
    left: u32,
}

impl S3Fifo {
    /// The policy over `count` slots, at least 1.
    pub fn new(count: u32) -> S3Fifo {
        let small = (count / 10).max(1);
        let ghosts = Ghosts::new((count - small) as usize);
        S3Fifo {
            small,
            inner: Mutex::new(State {
                queues: Queues::new(count),
                ghosts,
                left: 0,
            }),
        }
    }

    /// The queue from which the next page leaves.
    fn turn(&self, state: &State) -> u8 {
        let main = state.queues.len(MAIN);
        let is_due = state.left >= LEFT_PER_AGED && main > 0;
        if !is_due && state.queues.len(SMALL) >= self.small || main == 0 {
            SMALL
        } else {
            MAIN
        }
    }

    /// Evicts the oldest page of the queue whose turn it is that was not used enough to stay.
    fn search(&self, state: &mut State, looks: u32, slots: &dyn Slots) -> Option<u32> {
        for _ in 0..looks / 2 - 1 {
            let queue = self.turn(state);
            let small = queue == SMALL;
            let State {
                queues,
                ghosts,
                left,
            } = &mut *state;
            *left = if small { *left } else { 0 };
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
                        *left += 1;
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
        let state = &mut *self.inner.lock();
        // The load itself is not a use.
        slots.set_uses(slot, 0);
        let queue = if state.ghosts.take(page) { MAIN } else { SMALL };
        state.queues.push(queue, slot);
    }

    fn victim(&self, slots: &dyn Slots) -> Victim {
        let state = &mut *self.inner.lock();
        match self.search(state, LOOKS, slots) {
            Some(slot) => Victim::Taken(slot),
            // All were used: the oldest has to go.
            None => state.queues.evict_oldest([MAIN, SMALL], slots),
        }
    }

    fn cold(&self, slots: &dyn Slots) -> Option<u32> {
        let state = &mut *self.inner.lock();
        // Nothing is held against a page when no other comes for which it could make room.
        let queue = self.turn(state);
        let small = queue == SMALL;
        let is_cold = |slot| matches!(slots.look(slot), Swept::Aged(uses) if uses == 0 || small && uses < PROMOTED);
        let oldest = state.queues.oldest(queue);
        state.queues.find(oldest, COLD_LOOKS / 2, is_cold)?;
        self.search(state, COLD_LOOKS / 2, slots)
    }
}
