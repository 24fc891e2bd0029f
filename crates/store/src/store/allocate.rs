//! Taking page ids and space of the file.

use std::sync::atomic::Ordering;

use buffer::PageId;

use crate::error::{Error, Result};
use crate::state::free::Space;
use crate::store::handle::Store;

impl Store {
    /// Takes `count` page ids and `bytes` of the file, which grows if it must.
    pub(crate) fn allocate(&self, count: usize, bytes: u64) -> Result<(Vec<PageId>, u64)> {
        let mut space = self.space()?;
        let mut ids = Vec::with_capacity(count);
        for _ in 0..count {
            match space.ids.take() {
                Some(page) => ids.push(page),
                None => {
                    space.ids.give(&ids);
                    return Err(Error::OutOfPageIds {
                        path: self.path().to_path_buf(),
                    });
                }
            }
        }
        match self.allocate_extent(&mut space, bytes) {
            Ok(offset) => Ok((ids, offset)),
            Err(error) => {
                space.ids.give(&ids);
                Err(error)
            }
        }
    }

    pub(crate) fn allocate_extent(&self, space: &mut Space, bytes: u64) -> Result<u64> {
        if let Some(offset) = space.extents.take(bytes) {
            return Ok(offset);
        }
        let (wanted, enough) = space.extents.growth(bytes);
        let old = space.extents.end();
        // Room is set aside, or a full disk would be met only when the pages are written.
        self.grown.store(true, Ordering::Relaxed);
        let end = match self.data().allocate(old, wanted - old) {
            Ok(()) => wanted,
            // There may be room for less.
            Err(io::Error::Full { .. }) => {
                self.data().allocate(old, enough - old)?;
                enough
            }
            Err(error) => return Err(error.into()),
        };
        // Once more: a commit that has synced meanwhile did so before the file grew.
        self.grown.store(true, Ordering::Relaxed);
        space.extents.grown(end);
        space.extents.take(bytes).ok_or_else(|| Error::Full {
            path: self.path().to_path_buf(),
        })
    }

    /// What is written begins at multiples of this many bytes; it may become less when the free space is looked for.
    pub(crate) fn alignment(&self) -> u64 {
        self.alignment.load(Ordering::Relaxed)
    }

    /// Bytes of the file that something of this length takes.
    pub(crate) fn whole(&self, bytes: usize) -> u64 {
        (bytes as u64).next_multiple_of(self.alignment())
    }

    /// Sets room aside in the data file for `bytes` more, in one piece, which is what pages are
    /// written to next.
    pub(crate) fn reserve(&self, bytes: u64) -> Result<()> {
        if bytes == 0 {
            return Ok(());
        }
        let mut space = self.space()?;
        let bytes = space.extents.whole(bytes);
        let offset = self.allocate_extent(&mut space, bytes)?;
        // What was free in the file before may be a hole, which takes no room on the disk yet.
        let allocated = self.data().allocate(offset, bytes);
        space.extents.untake(offset, bytes);
        Ok(allocated?)
    }
}
