//! Loading pages of lists before they are wanted, for a task whose graph has more pages than the pool has frames.

use std::collections::HashSet;
use std::sync::Arc;

use buffer::prefetch::Outcome;
use buffer::{PageId, Pool, Prefetching, ReadAhead};

/// Watches the pages that a reader pins and has the pool load those that follow where they come in order, as
/// [`Prefetching::Stream`] does, whatever the pool does for others: sweeps over all lists are the rule here.
pub(crate) struct Ahead<'g> {
    pool: &'g Arc<Pool>,
    stream: ReadAhead,
    /// Pages that were asked for and not pinned yet. None of them was in a frame when it was asked for.
    asked: HashSet<PageId>,
}

impl<'g> Ahead<'g> {
    /// Asks for at most `most` pages at once; for at least 1.
    pub fn new(pool: &'g Arc<Pool>, most: u32) -> Ahead<'g> {
        Ahead {
            pool,
            stream: ReadAhead::new(Prefetching::Stream, most),
            asked: HashSet::new(),
        }
    }

    /// Tells of the next page that the reader wants, and whether it was in a frame. Returns whether it was read from
    /// the file on the reader's behalf, now or ahead. What follows `last` is not the reader's.
    pub fn accessed(&mut self, page: PageId, last: PageId, resident: bool) -> bool {
        let was_asked = self.asked.remove(&page);
        let outcome = if resident {
            Outcome::Hit
        } else {
            self.pool.missing(page)
        };
        let absent = |page: &&PageId| **page <= last && self.pool.missing(**page) == Outcome::Miss;
        let wanted = self.stream.accessed(page, outcome);
        let wanted: Vec<PageId> = wanted.iter().filter(absent).copied().collect();
        if !wanted.is_empty() {
            self.pool.prefetch(&wanted);
            self.asked.extend(wanted);
        }
        was_asked || !resident
    }

    /// Pages that were asked for and not pinned to this day.
    pub fn unused(&self) -> u64 {
        self.asked.len() as u64
    }
}
