//! Counting hits where no two threads share a cache line.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// Threads that have a counter to themselves; the others share one.
const OWN: usize = 128;
/// The number of a thread that shares.
const SHARED: usize = OWN;
const UNKNOWN: usize = usize::MAX;

/// Two cache lines, as processors fetch them in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Slot(AtomicU64);

/// A counter that every thread adds to in a place of its own.
#[derive(Debug)]
pub(crate) struct Hits {
    slots: Box<[Slot]>,
}

/// Numbers below [`OWN`] that no thread has. Each number is out of here for as long as one living
/// thread has it, so that thread may write its slots without a read-modify-write.
static FREE: Mutex<Numbers> = Mutex::new(Numbers {
    returned: Vec::new(),
    next: 0,
});

struct Numbers {
    returned: Vec<usize>,
    next: usize,
}

/// Returns the thread's number when the thread ends.
struct Lease(usize);

impl Drop for Lease {
    fn drop(&mut self) {
        // Other thread-locals may be dropped after this one and unpin or pin still.
        let _ = NUMBER.try_with(|number| number.set(SHARED));
        FREE.lock().returned.push(self.0);
    }
}

thread_local! {
    static NUMBER: Cell<usize> = const { Cell::new(UNKNOWN) };
    static LEASE: Cell<Option<Lease>> = const { Cell::new(None) };
}

#[cold]
fn number() -> usize {
    let number = {
        let mut free = FREE.lock();
        match free.returned.pop() {
            Some(number) => number,
            None if free.next < OWN => {
                free.next += 1;
                free.next - 1
            }
            None => SHARED,
        }
    };
    NUMBER.set(number);
    if number < OWN {
        let lease = Lease(number);
        // In a thread whose locals are already gone the lease is dropped here, which is right.
        let _ = LEASE.try_with(|slot| slot.set(Some(lease)));
    }
    NUMBER.get()
}

impl Hits {
    pub(crate) fn new() -> Hits {
        Hits {
            slots: (0..=OWN).map(|_| Slot::default()).collect(),
        }
    }

    #[inline]
    pub(crate) fn add(&self) {
        let mut mine = NUMBER.get();
        if mine == UNKNOWN {
            mine = number();
        }
        let slot = &self.slots[mine].0;
        if mine < OWN {
            slot.store(slot.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        } else {
            slot.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn sum(&self) -> u64 {
        self.slots
            .iter()
            .map(|slot| slot.0.load(Ordering::Relaxed))
            .sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_hit_is_lost_with_more_threads_than_slots() {
        let hits = Hits::new();
        // Twice, so that numbers are given back and taken again.
        for _ in 0..2 {
            std::thread::scope(|scope| {
                for _ in 0..OWN + 40 {
                    scope.spawn(|| {
                        for _ in 0..500 {
                            hits.add();
                        }
                    });
                }
            });
        }
        assert_eq!(hits.sum(), 2 * (OWN as u64 + 40) * 500);
    }
}
