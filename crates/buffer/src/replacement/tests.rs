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

/// Slots at which every use that `look` finds is gone right after, as if another thread took it.
struct Aging(Hot);

impl Slots for Aging {
    fn look(&self, slot: u32) -> Swept {
        let found = self.0.look(slot);
        if let Swept::Aged(uses @ 1..) = found {
            self.0.set_uses(slot, uses - 1);
        }
        found
    }

    fn age(&self, slot: u32) -> Swept {
        self.0.age(slot)
    }

    fn set_uses(&self, slot: u32, uses: u32) {
        self.0.set_uses(slot, uses);
    }

    fn evict(&self, slot: u32) -> bool {
        self.0.evict(slot)
    }

    fn page(&self, slot: u32) -> PageId {
        self.0.page(slot)
    }
}

#[test]
fn one_cold_frame_is_taken_however_fast_the_others_age() {
    for policy in Policy::ALL {
        let mut uses = vec![Some(2); 64];
        uses[8] = Some(0);
        let slots = Aging(Hot {
            uses: RefCell::new(uses),
            steps: Cell::new(0),
        });
        let working = policy.start(64);
        for slot in 0..64 {
            working.loaded(slot, slot, &slots);
        }
        let taken = working.cold(&slots);
        let uses = slots.0.uses.borrow();
        let gone: Vec<u32> = (0..64)
            .filter(|&slot| uses[slot as usize].is_none())
            .collect();
        assert_eq!(gone, Vec::from_iter(taken), "{policy:?}");
    }
}
