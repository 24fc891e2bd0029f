//! SIEVE: one queue, and a hand that spares what was used.

use parking_lot::Mutex;

use crate::page::PageId;
use crate::replacement::policy::{COLD_LOOKS, LOOKS, Replacement, Slots, Victim};
use crate::replacement::queues::Queues;
use crate::word::Swept;

/// Pages in the order of their loads. The hand goes from the oldest to the newest; it spares a
/// page that was used since it last passed, which stays in its place, and evicts the others.
#[derive(Debug)]
pub struct Sieve {
    inner: Mutex<(Queues, Option<u32>)>,
}

impl Sieve {
    /// The policy over `count` slots, at least 1.
    pub fn new(count: u32) -> Sieve {
        Sieve {
            inner: Mutex::new((Queues::new(count), None)),
        }
    }
}

impl Replacement for Sieve {
    fn loaded(&self, slot: u32, _: PageId, slots: &dyn Slots) {
        let (queues, hand) = &mut *self.inner.lock();
        slots.set_uses(slot, 0);
        if *hand == Some(slot) {
            *hand = queues.newer(slot);
        }
        queues.push(0, slot);
    }

    fn victim(&self, slots: &dyn Slots) -> Victim {
        let (queues, hand) = &mut *self.inner.lock();
        for _ in 0..LOOKS / 2 - 1 {
            let Some(slot) = hand.or_else(|| queues.oldest(0)) else {
                return Victim::More;
            };
            *hand = queues.newer(slot);
            match slots.look(slot) {
                Swept::Elsewhere => queues.remove(slot),
                Swept::Aged(0) if slots.evict(slot) => {
                    queues.remove(slot);
                    return Victim::Taken(slot);
                }
                Swept::Aged(_) => slots.set_uses(slot, 0),
                Swept::Pinned | Swept::Evicted => {}
            }
        }
        // All were used: the oldest has to go.
        let taken = queues.evict_oldest([0, 1], slots);
        if let (Victim::Taken(slot), Some(at)) = (taken, *hand)
            && slot == at
        {
            *hand = None;
        }
        taken
    }

    fn cold(&self, slots: &dyn Slots) -> Option<u32> {
        let (queues, hand) = &mut *self.inner.lock();
        let from = hand.or_else(|| queues.oldest(0));
        let is_cold = |slot| slots.look(slot) == Swept::Aged(0) && slots.evict(slot);
        // What lies between keeps its uses, and the hand its place: a page is asked for a sign of life
        // only by who needs its frame.
        let slot = queues.find(from, COLD_LOOKS / 2, is_cold)?;
        if *hand == Some(slot) {
            *hand = queues.newer(slot);
        }
        queues.remove(slot);
        Some(slot)
    }
}
