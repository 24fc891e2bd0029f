//! Free space in the data file.

use buffer::PageId;

use crate::space::extents::{Extents, Ids};

/// What is free: found when it is first needed, which is when something is written, not when the store is opened.
#[derive(Debug)]
pub(crate) struct Free {
    /// Nothing is free in it, and all of the file used, until it is known.
    space: Space,
    known: bool,
}

impl Free {
    /// Nothing is known but that page ids from `next_page` on were never used.
    pub(crate) fn unknown(next_page: u64) -> Free {
        Free {
            space: Space {
                extents: Extents::none(),
                ids: Ids::none(next_page),
                aside: Vec::new(),
            },
            known: false,
        }
    }

    /// What is free, if it is known.
    pub(crate) fn known(&mut self) -> Option<&mut Space> {
        self.known.then_some(&mut self.space)
    }

    /// What is free, where the caller has seen to it that it is known.
    pub(crate) fn space(&mut self) -> &mut Space {
        debug_assert!(self.known);
        &mut self.space
    }

    /// From now on it is known.
    pub(crate) fn know(&mut self, space: Space) {
        self.space = space;
        self.known = true;
    }

    /// Page ids from here on were never used.
    pub(crate) fn next_page(&self) -> u64 {
        self.space.ids.next
    }
}

/// Free parts of the data file and free page ids.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) extents: Extents,
    pub(crate) ids: Ids,
    /// What was free when a writer began, or was freed since, and may be read by processes that opened before.
    pub(crate) aside: Vec<(u64, u64)>,
}

impl Space {
    /// Bytes that no page of the current version needs, whether they may be used now or not.
    pub(crate) fn free_bytes(&self) -> u64 {
        let whole = |&(_, bytes): &(u64, u64)| self.extents.whole(bytes);
        let aside: u64 = self.aside.iter().map(whole).sum();
        self.extents.free_bytes() + aside
    }

    /// Makes ids and parts of the file free.
    pub(crate) fn give_back(&mut self, ids: &[PageId], extents: &[(u64, u64)]) {
        self.ids.give(ids);
        for &(offset, bytes) in extents {
            self.extents.give(offset, bytes);
        }
    }

    /// Makes what was set aside free again.
    pub(crate) fn give_back_aside(&mut self) {
        for (offset, bytes) in std::mem::take(&mut self.aside) {
            self.extents.give(offset, bytes);
        }
    }
}
