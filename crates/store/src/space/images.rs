//! Pages whose bytes are in the log only.

use std::collections::BTreeMap;
use std::sync::Arc;

use buffer::PageId;
use memory::Budget;
use parking_lot::RwLock;

/// The stored bytes of pages that a record of the log holds and the data file does not, since the
/// power went before it was synced. They are read from here until a checkpoint has put them in
/// their places. Their memory is taken from the budget.
#[derive(Debug)]
pub(crate) struct Images {
    pages: RwLock<BTreeMap<PageId, Arc<[u8]>>>,
    budget: Arc<Budget>,
}

impl Images {
    pub(crate) fn new(budget: Arc<Budget>) -> Images {
        Images {
            pages: RwLock::default(),
            budget,
        }
    }

    /// Keeps the bytes of a page; where too little memory is left, fails with what they need.
    pub(crate) fn keep(&self, page: PageId, bytes: &[u8]) -> Result<(), u64> {
        self.forget(page);
        let length = bytes.len() as u64;
        self.budget.take(length).map_err(|_| length)?;
        self.pages.write().insert(page, bytes.into());
        Ok(())
    }

    pub(crate) fn get(&self, page: PageId) -> Option<Arc<[u8]>> {
        self.pages.read().get(&page).cloned()
    }

    /// The pages, in their order.
    pub(crate) fn pages(&self) -> Vec<PageId> {
        self.pages.read().keys().copied().collect()
    }

    pub(crate) fn forget(&self, page: PageId) {
        if self.pages.read().contains_key(&page)
            && let Some(bytes) = self.pages.write().remove(&page)
        {
            self.budget.give(bytes.len() as u64);
        }
    }
}

impl Drop for Images {
    fn drop(&mut self) {
        let bytes: usize = self.pages.get_mut().values().map(|bytes| bytes.len()).sum();
        self.budget.give(bytes as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_counts_in_the_budget() {
        let budget = Budget::new(10);
        let images = Images::new(budget.clone());
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
}
