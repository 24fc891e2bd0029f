//! Reading page after page of a list, with a prefetcher that watches.

use buffer::ReadAhead;
use buffer::prefetch::Outcome;

use super::list::PageList;
use super::view::PagePin;
use crate::error::Result;

/// One caller that reads pages of a [`PageList`], of which the prefetcher that
/// [`PoolOptions::prefetch`](crate::PoolOptions::prefetch) names has more loaded meanwhile. It is told of places
/// in the list and not of page numbers, so pages that were released or are protected leave no gap.
///
/// ```
/// use buffer::Prefetching;
/// use store::{Options, PageStore, PoolOptions};
///
/// let directory = tempfile::tempdir()?;
/// let pool = PoolOptions { prefetch: Prefetching::Stream, ..PoolOptions::default() };
/// let options = Options { page_size: 4096, pool, ..Options::default() };
/// let store = PageStore::create(directory.path().join("reef.pages"), &options)?;
/// let mut batch = store.begin()?;
/// for _ in 0..50 {
///     let page = batch.alloc()?;
///     batch.write(page, &[7; 4096])?;
/// }
/// batch.commit()?;
///
/// let list = store.view().list();
/// let mut reader = list.reader();
/// for index in 0..list.len() {
///     assert_eq!(futures::executor::block_on(reader.pin(index))?[4095], 7);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct PageReader<'a> {
    list: &'a PageList,
    ahead: ReadAhead,
}

impl PageList {
    /// A caller that begins to read.
    pub fn reader(&self) -> PageReader<'_> {
        PageReader {
            list: self,
            ahead: self.pool().read_ahead(),
        }
    }
}

impl<'a> PageReader<'a> {
    /// Whether no prefetcher watches.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.ahead.is_off()
    }

    /// Pins the page at `index`. Suspends while it is loaded.
    ///
    /// # Errors
    /// As [`PageList::pin`].
    ///
    /// # Panics
    /// If `index` is not below the length of the list.
    #[inline]
    pub async fn pin(&mut self, index: usize) -> Result<PagePin<'a>> {
        let pin = self.list.try_pin(index);
        if !self.ahead.is_off() {
            self.accessed(index, pin.is_some());
        }
        match pin {
            Some(pin) => Ok(pin),
            None => self.list.pin(index).await,
        }
    }

    fn accessed(&mut self, index: usize, hit: bool) {
        let outcome = if hit {
            Outcome::Hit
        } else {
            self.list.missing(index)
        };
        // Fits: there are at most 2^32 pages, and page 0 is protected.
        let wanted = self.ahead.accessed(index as u32, outcome);
        if !wanted.is_empty() {
            let there = wanted.iter().map(|&index| index as usize);
            self.list
                .prefetch(there.filter(|&index| index < self.list.len()));
        }
    }
}
