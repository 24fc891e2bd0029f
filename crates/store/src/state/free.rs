//! Free space in the data file.

use crate::space::extents::{Extents, Ids};

/// Free parts of the data file and free page ids.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) extents: Extents,
    pub(crate) ids: Ids,
    /// What was free when a writer began, and may be read by processes that opened before.
    pub(crate) aside: Vec<(u64, u64)>,
}

impl Space {
    /// Bytes that no page of the current version needs, whether they may be used now or not.
    pub(crate) fn free_bytes(&self) -> u64 {
        let whole = |&(_, bytes): &(u64, u64)| self.extents.whole(bytes);
        let aside: u64 = self.aside.iter().map(whole).sum();
        self.extents.free_bytes() + aside
    }

    /// Makes what was set aside free again.
    pub(crate) fn give_back_aside(&mut self) {
        for (offset, bytes) in std::mem::take(&mut self.aside) {
            self.extents.give(offset, bytes);
        }
    }
}
