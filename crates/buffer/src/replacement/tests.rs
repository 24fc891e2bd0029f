//! The bound on one hold of a policy's lock, on a partition of a million pages all used.

use std::cell::{Cell, RefCell};

use super::{LOOKS, Policy, Slots, Victim};
use crate::page::PageId;
use crate::word::Swept;

struct Hot {
    uses: RefCell<Vec<Option<u32>>>,
    steps: Cell<u32>,
}

impl Slots for Hot {
    fn look(&self, slot: u32) -> Swept {
        self.steps.set(self.steps.get() + 1);
        self.uses.borrow()[slot as usize].map_or(Swept::Elsewhere, Swept::Aged)
    }

    fn age(&self, slot: u32) -> Swept {
        match self.look(slot) {
            Swept::Aged(0) => {
                self.uses.borrow_mut()[slot as usize] = None;
                Swept::Evicted
            }
            Swept::Aged(uses) => {
                self.uses.borrow_mut()[slot as usize] = Some(uses - 1);
                Swept::Aged(uses - 1)
            }
            other => other,
        }
    }

    fn set_uses(&self, slot: u32, uses: u32) {
        self.uses.borrow_mut()[slot as usize] = Some(uses);
    }

    fn evict(&self, slot: u32) -> bool {
        self.steps.set(self.steps.get() + 1);
        self.uses.borrow_mut()[slot as usize].take().is_some()
    }

    fn page(&self, slot: u32) -> PageId {
        slot
    }
}

#[test]
fn the_first_eviction_of_a_hot_pool_looks_at_a_bounded_number_of_frames() {
    const FRAMES: u32 = 1_000_000;
    for policy in Policy::ALL {
        let slots = Hot {
            uses: RefCell::new(vec![Some(1); FRAMES as usize]),
            steps: Cell::new(0),
        };
        let working = policy.start(FRAMES);
        for slot in 0..FRAMES {
            working.loaded(slot, slot, &slots);
        }
        for slot in 0..FRAMES {
            slots.set_uses(slot, 5);
        }
        slots.steps.set(0);
        let mut calls = 0;
        loop {
            calls += 1;
            let taken = working.victim(&slots);
            assert!(slots.steps.take() <= LOOKS, "{policy:?}");
            if matches!(taken, Victim::Taken(_)) {
                break;
            }
            assert!(calls < 10 * FRAMES / LOOKS, "{policy:?}: never ends");
        }
    }
}
