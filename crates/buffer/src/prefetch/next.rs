//! The next pages (row B6).

use std::ops::Range;

use crate::page::PageId;
use crate::prefetch::prefetcher::{Outcome, Prefetcher};

/// Pages named ahead, as far as the pool allows so many.
const DEGREE: u32 = 8;

/// Names the pages after each page that is read, whatever was read before, as the text's prefetcher
/// does: eight of them. While the caller stays in what was named last, more is named only when half
/// of it is used up, so that several pages are read at once.
#[derive(Debug)]
pub struct Next {
    degree: u32,
    /// The pages that were named last and are not read yet, one after the other.
    named: Range<PageId>,
}

impl Next {
    /// A prefetcher that names at most `most` pages at once, at least 1.
    pub fn new(most: u32) -> Next {
        Next {
            degree: DEGREE.min(most).max(1),
            named: 0..0,
        }
    }
}

impl Prefetcher for Next {
    fn accessed(&mut self, page: PageId, _: Outcome, wanted: &mut Vec<PageId>) {
        let after = page.saturating_add(1);
        let end = after.saturating_add(self.degree);
        // The page itself, or the one after it, may be the first that was not named.
        let follows = self.named.start <= page && after <= self.named.end;
        let from = if follows { self.named.end } else { after };
        if from - after <= self.degree / 2 {
            wanted.extend(from..end);
            self.named = after..end;
        }
    }
}
