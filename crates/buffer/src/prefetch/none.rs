//! No prefetching.

use crate::page::PageId;
use crate::prefetch::prefetcher::{Outcome, Prefetcher};

/// Names no page.
#[derive(Debug, Clone, Copy)]
pub struct Nothing;

impl Prefetcher for Nothing {
    fn accessed(&mut self, _: PageId, _: Outcome, _: &mut Vec<PageId>) {}
}
