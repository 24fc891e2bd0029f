//! A pool without bytes: frames, usage counts and pages loaded ahead.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;

use buffer::prefetch::Outcome;
use buffer::replacement::{Replacement, Slots, Victim};
use buffer::{PageId, ReadAhead, Swept};

/// As large as the largest count in the word of a page.
const USAGE_CAP: u32 = 5;
/// Pins that go by until a prefetched page has come: who asks for it earlier waits.
const LOAD: usize = 4;

/// What a frame holds while a page is there.
#[derive(Clone, Copy)]
struct Held {
    uses: u32,
    /// Whether it was loaded ahead and not used yet, and when it comes.
    early: Option<usize>,
}

/// Frames of one partition, without pins.
struct Frames {
    held: RefCell<Vec<(PageId, Option<Held>)>>,
    resident: RefCell<HashMap<PageId, u32>>,
    looks: Cell<u64>,
    /// Whether the search is for a prefetch, which takes no frame of another.
    spares_early: Cell<bool>,
}

impl Frames {
    fn remove(&self, slot: u32) -> bool {
        let (page, held) = &mut self.held.borrow_mut()[slot as usize];
        held.take().is_some() && self.resident.borrow_mut().remove(page).is_some()
    }

    fn put(&self, slot: u32, page: PageId, held: Held) {
        self.held.borrow_mut()[slot as usize] = (page, Some(held));
        self.resident.borrow_mut().insert(page, slot);
    }

    fn is_spared(&self, slot: u32) -> bool {
        let early = self.held.borrow()[slot as usize]
            .1
            .is_some_and(|held| held.early.is_some());
        self.spares_early.get() && early
    }
}

impl Slots for Frames {
    fn look(&self, slot: u32) -> Swept {
        self.looks.set(self.looks.get() + 1);
        match self.held.borrow()[slot as usize].1 {
            Some(_) if self.is_spared(slot) => Swept::Pinned,
            Some(held) => Swept::Aged(held.uses),
            None => Swept::Elsewhere,
        }
    }

    fn age(&self, slot: u32) -> Swept {
        match self.look(slot) {
            Swept::Aged(0) if self.remove(slot) => Swept::Evicted,
            Swept::Aged(uses) => {
                self.set_uses(slot, uses - 1);
                Swept::Aged(uses - 1)
            }
            other => other,
        }
    }

    fn set_uses(&self, slot: u32, uses: u32) {
        if let (_, Some(now)) = &mut self.held.borrow_mut()[slot as usize] {
            now.uses = uses;
        }
    }

    fn evict(&self, slot: u32) -> bool {
        self.looks.set(self.looks.get() + 1);
        !self.is_spared(slot) && self.remove(slot)
    }

    fn page(&self, slot: u32) -> PageId {
        self.held.borrow()[slot as usize].0
    }
}

/// What came of a trace.
#[derive(Default)]
pub struct Result {
    pub pins: u64,
    /// Pins that found their page.
    pub hits: u64,
    /// Of these, pins of pages loaded ahead, for the first time.
    pub avoided: u64,
    /// Pages loaded ahead, of these used, and asked for before they had come.
    pub prefetched: u64,
    pub used: u64,
    pub late: u64,
    pub looks: u64,
}

impl Result {
    /// Percent of the pins that found their page.
    pub fn rate(&self) -> f64 {
        100.0 * self.hits as f64 / self.pins as f64
    }

    /// Looks of the policy for each load.
    pub fn looks(&self) -> f64 {
        self.looks as f64 / ((self.pins - self.hits + self.prefetched) as f64).max(1.0)
    }

    /// Percent of the pages loaded ahead that were used.
    pub fn accuracy(&self) -> Option<f64> {
        (self.prefetched > 0).then(|| 100.0 * self.used as f64 / self.prefetched as f64)
    }

    /// Percent of the misses that there would have been that were avoided.
    pub fn coverage(&self) -> f64 {
        let misses = self.pins - self.hits;
        100.0 * self.avoided as f64 / ((self.avoided + misses) as f64).max(1.0)
    }
}

/// Pins the pages of a trace one after the other.
pub fn simulate(
    policy: &dyn Replacement,
    mut ahead: ReadAhead,
    frames: u32,
    trace: &[PageId],
) -> Result {
    let pool = Frames {
        held: RefCell::new(vec![(0, None); frames as usize]),
        resident: RefCell::default(),
        looks: Cell::new(0),
        spares_early: Cell::new(false),
    };
    let mut next = 0;
    let mut free = || {
        next += 1;
        (next <= frames).then(|| next - 1)
    };
    let mut result = Result {
        pins: trace.len() as u64,
        ..Result::default()
    };
    for (step, &page) in trace.iter().enumerate() {
        let found = pool.resident.borrow().get(&page).copied();
        let outcome = match found {
            Some(slot) => used(&pool, slot, step, &mut result),
            None => Outcome::Miss,
        };
        for &page in ahead.accessed(page, outcome) {
            if pool.resident.borrow().contains_key(&page) {
                continue;
            }
            pool.spares_early.set(true);
            let slot = free().or_else(|| policy.cold(&pool));
            pool.spares_early.set(false);
            if let Some(slot) = slot {
                let early = Some(step + LOAD);
                pool.put(slot, page, Held { uses: 1, early });
                policy.loaded(slot, page, &pool);
                pool.set_uses(slot, 0);
                result.prefetched += 1;
            }
        }
        // A prefetch does not take the page that is read: nor does it here.
        if outcome == Outcome::Miss {
            let slot = free().unwrap_or_else(|| {
                loop {
                    if let Victim::Taken(slot) = policy.victim(&pool) {
                        break slot;
                    }
                }
            });
            let early = None;
            pool.put(slot, page, Held { uses: 1, early });
            policy.loaded(slot, page, &pool);
        }
    }
    result.looks = pool.looks.get();
    result
}

/// Pins a page that is resident, or will be as it was asked for.
fn used(pool: &Frames, slot: u32, step: usize, result: &mut Result) -> Outcome {
    let (_, held) = &mut pool.held.borrow_mut()[slot as usize];
    let Some(held) = held else {
        return Outcome::Miss;
    };
    match held.early.take() {
        // The first use is what it was loaded for.
        Some(comes) => {
            result.used += 1;
            if comes > step {
                result.late += 1;
                return Outcome::Late;
            }
            result.avoided += 1;
        }
        None => held.uses = (held.uses + 1).min(USAGE_CAP),
    }
    result.hits += 1;
    Outcome::Hit
}
