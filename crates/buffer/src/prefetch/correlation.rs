//! What followed a page before.

use crate::page::PageId;
use crate::prefetch::prefetcher::{Outcome, Prefetcher};

/// Pages whose successor is remembered: 12 bytes each. A power of two.
const PAGES: usize = 1 << 14;
/// Times that a successor must have been right, less those it was wrong, to be named.
const SURE: u32 = 1;
const SUREST: u32 = 3;
/// Pages named ahead, as far as the pool allows so many.
const DEPTH: u32 = 4;
/// Pages named last that are remembered. A power of two.
const NAMED: usize = 256;

/// A history of the misses, as a Markov chain of one step: for each page, which one was missed after
/// it. Where that was so twice, the successor is named, and its successor, four in all. Pages
/// that are hits because they were named count as misses here, or the chain would break as soon as
/// it is right. For walks through lists and trees that are repeated; 192 KiB for each caller.
#[derive(Debug)]
pub struct Correlation {
    depth: u32,
    last: Option<PageId>,
    /// Each page has one place, for which it competes with others.
    history: Box<[Entry]>,
    named: Box<[Option<PageId>]>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Entry {
    page: PageId,
    next: PageId,
    /// How sure the successor is, plus 1; 0 where nothing is known.
    sure: u32,
}

fn place(page: PageId, places: usize) -> usize {
    // Fibonacci hashing; the upper bits are the mixed ones.
    (page.wrapping_mul(0x9e37_79b9) >> 16) as usize & (places - 1)
}

impl Correlation {
    /// A prefetcher that names at most `most` pages at once, at least 1.
    pub fn new(most: u32) -> Correlation {
        Correlation {
            depth: DEPTH.min(most).max(1),
            last: None,
            history: vec![Entry::default(); PAGES].into_boxed_slice(),
            named: vec![None; NAMED].into_boxed_slice(),
        }
    }

    fn learn(&mut self, page: PageId, next: PageId) {
        let entry = &mut self.history[place(page, PAGES)];
        if entry.sure == 0 || entry.page != page {
            // A page that is sure of its place is not driven out at once.
            if entry.sure > 1 {
                entry.sure -= 1;
                return;
            }
            *entry = Entry {
                page,
                next,
                sure: 1,
            };
        } else if entry.next == next {
            entry.sure = (entry.sure + 1).min(SUREST + 1);
        } else if entry.sure > 1 {
            entry.sure -= 1;
        } else {
            entry.next = next;
        }
    }

    fn successor(&self, page: PageId) -> Option<PageId> {
        let entry = &self.history[place(page, PAGES)];
        (entry.sure > SURE && entry.page == page).then_some(entry.next)
    }
}

impl Prefetcher for Correlation {
    fn accessed(&mut self, page: PageId, outcome: Outcome, wanted: &mut Vec<PageId>) {
        let named = self.named[place(page, NAMED)].take_if(|named| *named == page);
        if outcome == Outcome::Hit && named.is_none() {
            return;
        }
        if let Some(last) = self.last.replace(page)
            && last != page
        {
            self.learn(last, page);
        }
        let mut at = page;
        for _ in 0..self.depth {
            let Some(next) = self.successor(at).filter(|next| *next != page) else {
                break;
            };
            let slot = &mut self.named[place(next, NAMED)];
            if *slot != Some(next) {
                *slot = Some(next);
                wanted.push(next);
            }
            at = next;
        }
    }
}
