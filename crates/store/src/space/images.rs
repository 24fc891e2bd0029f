//! Pages whose bytes are in memory and in the log, and not yet in their places: dirty pages (rows B2, B3).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use buffer::PageId;
use memory::Budget;
use parking_lot::RwLock;

/// The stored bytes of pages that the data file does not have: those of small commits until they
/// are written back, and what the log has of those that a loss of power took. They are read from
/// here. Their memory is taken from the budget.
#[derive(Debug)]
pub(crate) struct Images {
    pages: RwLock<BTreeMap<PageId, Image>>,
    budget: Arc<Budget>,
    /// The most bytes that commits may leave here.
    limit: u64,
    /// Bytes that are here.
    bytes: AtomicU64,
    written: AtomicU64,
    writes: AtomicU64,
    spared: AtomicU64,
}

/// One of them.
#[derive(Debug)]
struct Image {
    bytes: Arc<[u8]>,
    /// The version that the page came with; [`OPEN`] as long as its transaction is under way.
    version: u64,
}

/// Not committed yet.
const OPEN: u64 = u64::MAX;

/// What became of the pages that were here, since the store was opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) pages: u64,
    pub(crate) bytes: u64,
    pub(crate) written: u64,
    pub(crate) writes: u64,
    pub(crate) spared: u64,
}

impl Images {
    pub(crate) fn new(budget: Arc<Budget>, limit: u64) -> Images {
        Images {
            pages: RwLock::default(),
            budget,
            limit,
            bytes: AtomicU64::new(0),
            written: AtomicU64::new(0),
            writes: AtomicU64::new(0),
            spared: AtomicU64::new(0),
        }
    }

    /// Keeps the bytes of a page that the log has; where too little memory is left, fails with what
    /// they need.
    pub(crate) fn keep(&self, page: PageId, bytes: &[u8]) -> Result<(), u64> {
        self.put(page, bytes.into(), 0)
    }

    /// Keeps the bytes of pages that a transaction writes; false if there is no room for them all.
    pub(crate) fn keep_open(&self, pages: &[PageId], bytes: &[Arc<[u8]>]) -> bool {
        let length: usize = bytes.iter().map(|bytes| bytes.len()).sum();
        if self.bytes.load(Ordering::Relaxed) + length as u64 > self.limit {
            return false;
        }
        let mut all = pages.iter().zip(bytes);
        let kept = all.all(|(&page, bytes)| self.put(page, bytes.clone(), OPEN).is_ok());
        if !kept {
            for &page in pages {
                self.forget(page);
            }
        }
        kept
    }

    fn put(&self, page: PageId, bytes: Arc<[u8]>, version: u64) -> Result<(), u64> {
        self.forget(page);
        let length = bytes.len() as u64;
        self.budget.take(length).map_err(|_| length)?;
        self.bytes.fetch_add(length, Ordering::Relaxed);
        self.pages.write().insert(page, Image { bytes, version });
        Ok(())
    }

    /// The pages, as far as they are here, came with `version`.
    pub(crate) fn commit(&self, pages: impl Iterator<Item = PageId>, version: u64) {
        if self.bytes.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut all = self.pages.write();
        for page in pages {
            if let Some(image) = all.get_mut(&page) {
                image.version = version;
            }
        }
    }

    pub(crate) fn get(&self, page: PageId) -> Option<Arc<[u8]>> {
        if self.bytes.load(Ordering::Acquire) == 0 {
            return None;
        }
        let pages = self.pages.read();
        pages.get(&page).map(|image| image.bytes.clone())
    }

    /// The pages, in their order.
    pub(crate) fn pages(&self) -> Vec<PageId> {
        self.pages.read().keys().copied().collect()
    }

    /// Those that were committed.
    pub(crate) fn committed(&self) -> Vec<(PageId, Arc<[u8]>)> {
        let pages = self.pages.read();
        let committed = pages.iter().filter(|(_, image)| image.version != OPEN);
        committed
            .map(|(page, image)| (*page, image.bytes.clone()))
            .collect()
    }

    /// Whether it is time to write some back.
    pub(crate) fn is_half_full(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) > self.limit / 2
    }

    /// Lets go of a page; false if it was not here.
    pub(crate) fn forget(&self, page: PageId) -> bool {
        if self.bytes.load(Ordering::Relaxed) == 0 {
            return false;
        }
        let Some(image) = self.pages.write().remove(&page) else {
            return false;
        };
        let length = image.bytes.len() as u64;
        self.budget.give(length);
        self.bytes.fetch_sub(length, Ordering::Release);
        true
    }

    /// Lets go of a page that is freed; it need not be written any more.
    pub(crate) fn spare(&self, page: PageId) {
        if self.forget(page) {
            self.spared.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Pages were written to their places.
    pub(crate) fn wrote(&self, pages: u64, writes: u64) {
        self.written.fetch_add(pages, Ordering::Relaxed);
        self.writes.fetch_add(writes, Ordering::Relaxed);
    }

    pub(crate) fn traffic(&self) -> Traffic {
        Traffic {
            pages: self.pages.read().len() as u64,
            bytes: self.bytes.load(Ordering::Relaxed),
            written: self.written.load(Ordering::Relaxed),
            writes: self.writes.load(Ordering::Relaxed),
            spared: self.spared.load(Ordering::Relaxed),
        }
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        self.budget.give(*self.bytes.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_counts_in_the_budget() {
        let budget = Budget::new(10);
        let images = Images::new(budget.clone(), 8);
        assert_eq!(images.keep(1, &[1; 6]), Ok(()));
        assert_eq!(images.keep(2, &[2; 6]), Err(6));
        assert_eq!(images.keep(1, &[3; 10]), Ok(()), "in place of the other");
        assert_eq!(images.get(1).as_deref(), Some(&[3; 10][..]));
        images.forget(1);
        assert_eq!((images.get(1), budget.used()), (None, 0));
        assert_eq!(images.keep(7, &[1; 4]), Ok(()));
        assert_eq!(images.pages(), [7]);
        drop(images);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn commits_leave_so_much_and_no_more() {
        let images = Images::new(Budget::new(100), 8);
        let bytes: Arc<[u8]> = [5; 4].into();
        let two = [bytes.clone(), bytes.clone()];
        assert!(images.keep_open(&[1, 2], &two) && images.is_half_full());
        assert!(!images.keep_open(&[3], &two[..1]));
        assert!(images.committed().is_empty());
        images.commit([2, 9].into_iter(), 4);
        assert_eq!(images.committed(), [(2, bytes)]);
        images.spare(1);
        images.spare(1);
        assert!(images.forget(2) && !images.forget(2));
        assert_eq!(
            images.traffic(),
            Traffic {
                spared: 1,
                ..Traffic::default()
            }
        );
    }
}
