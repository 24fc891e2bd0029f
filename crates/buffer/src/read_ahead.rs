//! A prefetcher and the pages it named.

use crate::page::PageId;
use crate::prefetch::{Outcome, Prefetcher, Prefetching};

/// The state of prefetching for one caller: made once for a scan or a search, and told of each page
/// that it reads. With [`Prefetching::None`] it has none, and telling it costs one comparison.
///
/// ```
/// use buffer::prefetch::Outcome;
/// use buffer::{Prefetching, ReadAhead};
///
/// let mut ahead = ReadAhead::new(Prefetching::Stream, 8);
/// assert!(ahead.accessed(10, Outcome::Miss).is_empty(), "one page is no stream");
/// assert_eq!(ahead.accessed(11, Outcome::Miss), [12, 13, 14, 15]);
/// assert_eq!(ahead.accessed(12, Outcome::Late), [16, 17, 18, 19, 20, 21, 22, 23]);
/// ```
#[derive(Debug)]
pub struct ReadAhead {
    prefetcher: Option<Box<dyn Prefetcher>>,
    wanted: Vec<PageId>,
}

impl ReadAhead {
    /// A prefetcher for one caller, which asks for at most `most` pages at once; for at least 1.
    pub fn new(prefetching: Prefetching, most: u32) -> ReadAhead {
        let on = prefetching != Prefetching::None;
        ReadAhead {
            prefetcher: on.then(|| prefetching.start(most)),
            wanted: Vec::new(),
        }
    }

    /// Whether there is nothing that wants to know of accesses.
    #[inline]
    pub fn is_off(&self) -> bool {
        self.prefetcher.is_none()
    }

    /// Tells of the next page that the caller reads; returns the pages to load meanwhile.
    #[inline]
    pub fn accessed(&mut self, page: PageId, outcome: Outcome) -> &[PageId] {
        self.wanted.clear();
        if let Some(prefetcher) = &mut self.prefetcher {
            prefetcher.accessed(page, outcome, &mut self.wanted);
        }
        &self.wanted
    }
}
