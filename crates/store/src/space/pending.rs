//! Freed pages whose space and id are still kept.

use std::collections::{BTreeMap, HashMap, VecDeque};

use buffer::PageId;

use crate::format::structures::Entry;

/// How many pages that were pinned are tried again at a time.
const AGAIN: usize = 64;

/// Freed pages that a snapshot or a pin still uses; their space is reused when none does. The map on
/// disk does not have them. The cost of releasing pages grows with how many are released, not with
/// how many are still in use.
///
/// Invariants: each of `pages` is in one list of `kept`, or in `pinned`, once; `bytes` is the sum
/// of their extents.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    pages: HashMap<PageId, Entry>,
    /// Pages that a snapshot may show, by the first version that has them no more.
    kept: BTreeMap<u64, Vec<PageId>>,
    /// Pages that no snapshot shows, but that were pinned when they were to go.
    pinned: VecDeque<PageId>,
    bytes: u64,
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    pub(crate) fn contains(&self, page: PageId) -> bool {
        self.pages.contains_key(&page)
    }

    /// Bytes of the file that the pages take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (PageId, Entry)> + '_ {
        self.pages.iter().map(|(page, entry)| (*page, *entry))
    }

    /// Adds a page that `version` and later ones have no more. It must not be there already.
    pub(crate) fn add(&mut self, version: u64, page: PageId, entry: Entry) {
        let before = self.pages.insert(page, entry);
        debug_assert!(before.is_none(), "page {page} is freed twice");
        self.bytes += entry.extent();
        self.kept.entry(version).or_default().push(page);
    }

    /// Takes out the pages that versions from `oldest` on have no more, and for which `gone` says
    /// that nobody has them pinned.
    pub(crate) fn take(
        &mut self,
        oldest: u64,
        mut gone: impl FnMut(PageId) -> bool,
    ) -> Vec<(PageId, Entry)> {
        let again = AGAIN.min(self.pinned.len());
        let mut candidates: Vec<PageId> = self.pinned.drain(..again).collect();
        while let Some(first) = self.kept.first_entry()
            && *first.key() <= oldest
        {
            candidates.extend(first.remove());
        }
        let mut taken = Vec::new();
        for page in candidates {
            if !gone(page) {
                self.pinned.push_back(page);
            } else if let Some(entry) = self.pages.remove(&page) {
                self.bytes -= entry.extent();
                taken.push((page, entry));
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::kind::{Codec, Kind};
    use crate::format::structures::FIRST_EXTENT;

    fn add(pending: &mut Pending, version: u64, pages: std::ops::Range<PageId>) {
        for page in pages {
            let entry = Entry {
                offset: FIRST_EXTENT + 64 * u64::from(page),
                stored: 7,
                raw: 7,
                sum: 1,
                bucket: 0,
                kind: Kind::Values,
                codec: Codec::Raw,
            };
            pending.add(version, page, entry);
        }
    }

    #[test]
    fn those_that_stay_are_not_looked_at() {
        let mut pending = Pending::default();
        add(&mut pending, 5, 0..100_000);
        let mut looks = 0;
        for version in 6..1006 {
            // What a transaction wrote and undid, while a snapshot of version 4 keeps the rest.
            add(&mut pending, 0, 100_000..100_002);
            let taken = pending.take(4, |_| {
                looks += 1;
                true
            });
            assert_eq!(taken.len(), 2);
            let page = 1_000_000 + version as PageId;
            add(&mut pending, version, page..page + 1);
        }
        assert_eq!(looks, 2000);
        assert_eq!(pending.bytes(), 101_000 * 64);
        assert_eq!(pending.take(5, |_| true).len(), 100_000);
        assert_eq!(pending.take(u64::MAX, |_| true).len(), 1000);
        assert!(pending.is_empty() && pending.bytes() == 0);
    }

    #[test]
    fn pinned_ones_are_tried_again_a_few_at_a_time() {
        let mut pending = Pending::default();
        add(&mut pending, 1, 0..1000);
        assert!(pending.take(1, |_| false).is_empty());
        for _ in 0..3 {
            let mut looks = 0;
            pending.take(9, |_| {
                looks += 1;
                false
            });
            assert_eq!(looks, AGAIN);
        }
        // All have their turn.
        let mut taken = 0;
        for _ in 0..1000_usize.div_ceil(AGAIN) {
            taken += pending.take(9, |_| true).len();
        }
        assert_eq!(taken, 1000);
        assert!(pending.is_empty());
    }
}
