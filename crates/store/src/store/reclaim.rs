//! Reclaiming pages and space that no snapshot, pin or process uses any more.

use buffer::PageId;

use crate::error::Result;
use crate::state::free::Free;
use crate::state::writer::Writer;
use crate::store::handle::Store;

impl Store {
    /// Gives back what `allocate` took and nothing refers to.
    pub(crate) fn give_back(&self, ids: &[PageId], extents: &[(u64, u64)]) {
        if let Some(space) = self.free.lock().known() {
            space.give_back(ids, extents);
        }
    }

    /// Gives back parts of the file that nothing refers to any more, and that processes which opened before
    /// may read.
    pub(crate) fn give_back_later(&self, extents: impl Iterator<Item = (u64, u64)>) {
        let others_read = self.hold.others_read();
        if let Some(space) = self.free.lock().known() {
            if others_read {
                space.aside.extend(extents);
            } else {
                extents.for_each(|(offset, bytes)| space.extents.give(offset, bytes));
            }
        }
    }

    /// Undoes the writing of pages that no version has. Who holds a version before `without` may see them still;
    /// 0 says that nobody does.
    pub(crate) fn undo(&self, written: Vec<PageId>, without: u64) {
        // After the latch a record on disk may refer to them, so they must stay as they are.
        if written.is_empty() || self.latch.get().is_some() {
            return;
        }
        let mut writer = self.writer.lock();
        // If no snapshot has them only a pin can keep these pages: that is what version 0 says.
        self.pend(&mut writer, without, written.into_iter());
        self.reclaim(&mut writer);
    }

    /// Frees what the version that has just become visible has no more. Where somebody writes, that
    /// one does it.
    pub(crate) fn reclaim_unless_busy(&self) {
        if !self.writes_on_demand()
            && let Some(mut writer) = self.writer.try_lock()
        {
            self.reclaim(&mut writer);
        }
    }

    /// Frees the pages that no snapshot, no pin and no other process keeps any more.
    pub(crate) fn reclaim(&self, writer: &mut Writer) {
        if self.latch.get().is_some() {
            return;
        }
        let aside = |free: &mut Free| free.known().is_some_and(|space| !space.aside.is_empty());
        if writer.pending.is_empty() && !aside(&mut self.free.lock()) {
            return;
        }
        if self.hold.others_read() {
            return;
        }
        // After a loss of power the store is as its last durable version, so what that has is kept.
        let oldest = self.versions.lock().oldest().min(self.group.durable());
        // Who looks for free space sees each page either in the map or given back.
        let mut free = self.free.lock();
        let freed = writer.pending.take(oldest, |page| {
            // In this order: a late prefetch that begins after the first finds no page, one that
            // began before is made void by the second. Else it could leave the old page in a
            // frame under an id that is about to name another.
            self.pages.map.clear(page);
            self.pages.images.spare(page);
            let gone = self.pool.discard(page).is_ok();
            if gone {
                self.pages.map.let_go(page);
            }
            gone
        });
        let mut ids: Vec<_> = freed.iter().map(|(page, _)| *page).collect();
        ids.sort_unstable();
        let extents: Vec<_> = freed
            .iter()
            .map(|(_, entry)| (entry.offset, entry.extent()))
            .collect();
        if let Some(space) = free.known() {
            space.give_back_aside();
            space.give_back(&ids, &extents);
        }
    }

    /// On becoming the writer: where other processes read, what is free may hold pages of versions
    /// that they opened before, so it is not used while they do.
    pub(crate) fn set_aside(&self) -> Result<()> {
        if self.hold.others_read() {
            let length = self.data().len()?;
            let mut space = self.space()?;
            let free = space.extents.take_all(length);
            space.aside.extend(free);
        }
        Ok(())
    }

    /// Keeps freed pages, whose chunks are held in memory, until nobody can read them.
    pub(crate) fn pend(
        &self,
        writer: &mut Writer,
        version: u64,
        pages: impl Iterator<Item = PageId>,
    ) {
        for page in pages {
            if let Some(entry) = self.pages.map.resident(page) {
                writer.pending.add(version, page, entry);
            }
        }
    }
}
