//! What a prefetcher is told, and what it answers.

use std::fmt::Debug;

use crate::page::PageId;

/// How a page was found when it was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It was resident: the caller did not wait.
    Hit,
    /// It was being loaded, for instance by a prefetch that began too late: the caller waits.
    Late,
    /// It was neither: the caller loads it, and waits.
    Miss,
}

/// A prefetcher at work for one caller.
pub trait Prefetcher: Debug + Send {
    /// Learns of the next page that the caller reads, before the caller waits for it, and adds the
    /// pages to load to `wanted`. A page may be named that is resident or does not exist.
    fn accessed(&mut self, page: PageId, outcome: Outcome, wanted: &mut Vec<PageId>);
}

/// `count` pages that lie `stride` apart, the first of them `from`, as far as there are such numbers.
pub(super) fn pages(from: PageId, stride: i64, count: u32) -> impl Iterator<Item = PageId> {
    (0..i64::from(count))
        .map_while(move |step| PageId::try_from(i64::from(from) + step * stride).ok())
}
