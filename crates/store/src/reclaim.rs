//! Pages and space that nobody needs any more, and when they may be used again.

use std::sync::atomic::{Ordering, fence};

use buffer::PageId;

use crate::error::Result;
use crate::format::Entry;
use crate::store::{Space, Store, Writer};

/// A page that is to be free when nobody can see it any more.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Freed {
    /// The version that has it no more: snapshots of older ones may.
    pub(crate) version: u64,
    pub(crate) entry: Entry,
}

impl Space {
    /// Bytes that no page of the current version needs, whether they may be used now or not.
    pub(crate) fn free_bytes(&self) -> u64 {
        let aside: u64 = self.aside.iter().map(|(_, bytes)| bytes).sum();
        self.extents.free_bytes() + aside
    }

    /// Makes what was set aside free again.
    fn give_back_aside(&mut self) {
        for (offset, bytes) in std::mem::take(&mut self.aside) {
            self.extents.give(offset, bytes);
        }
    }
}

impl Store {
    /// Gives back what `allocate` took and nothing refers to.
    pub(crate) fn give_back(&self, ids: &[PageId], extents: &[(u64, u64)]) {
        let mut space = self.space.lock();
        space.ids.give(ids);
        for &(offset, bytes) in extents {
            space.extents.give(offset, bytes);
        }
    }

    /// Undoes the writing of pages that no version has.
    pub(crate) fn undo(&self, written: Vec<PageId>) {
        // After the latch a record on disk may refer to them, so they must stay as they are.
        if written.is_empty() || self.latch.get().is_some() {
            return;
        }
        let mut writer = self.writer.lock();
        // No snapshot has them, so only a pin can keep these pages: that is what version 0 says.
        self.pend(&mut writer, 0, written.into_iter());
        self.reclaim(&mut writer);
    }

    /// Frees the pages that no snapshot, no pin and no other process keeps any more.
    pub(crate) fn reclaim(&self, writer: &mut Writer) {
        if self.latch.get().is_some() {
            return;
        }
        if writer.pending.is_empty() && self.space.lock().aside.is_empty() {
            return;
        }
        if self.hold.others_read() {
            return;
        }
        self.space.lock().give_back_aside();
        let oldest = self.oldest_version();
        let mut ids = Vec::new();
        let mut extents = Vec::new();
        writer.pending.retain(|&page, freed| {
            if freed.version > oldest {
                return true;
            }
            // In this order: a late prefetch that begins after the first finds no page, one that
            // began before is made void by the second. Else it could leave the old page in a
            // frame under an id that is about to name another.
            self.pages.map.clear(page);
            if self.pool.discard(page).is_err() {
                return true;
            }
            extents.push((freed.entry.offset, freed.entry.extent()));
            ids.push(page);
            false
        });
        ids.sort_unstable();
        self.give_back(&ids, &extents);
    }

    /// On becoming the writer: where other processes read, what is free may hold pages of versions
    /// that they opened before, so it is not used while they do.
    pub(crate) fn set_aside(&self) -> Result<()> {
        if self.hold.others_read() {
            let length = self.data().len()?;
            let mut space = self.space.lock();
            let free = space.extents.take_all(length);
            space.aside.extend(free);
        }
        Ok(())
    }

    pub(crate) fn pend(
        &self,
        writer: &mut Writer,
        version: u64,
        pages: impl Iterator<Item = PageId>,
    ) {
        let freed = |page| {
            Some((
                page,
                Freed {
                    version,
                    entry: self.pages.map.get(page)?,
                },
            ))
        };
        writer.pending.extend(pages.filter_map(freed));
    }

    /// The oldest version that somebody holds.
    fn oldest_version(&self) -> u64 {
        let mut versions = self.versions.lock();
        // All of them, or one long-lived snapshot would keep a trace of every later version.
        versions.retain(|(_, held)| held.strong_count() > 0);
        // Pairs with the release in the last holder's drop: what it read, it read before we
        // write.
        fence(Ordering::Acquire);
        versions.first().map_or(0, |(number, _)| *number)
    }
}
