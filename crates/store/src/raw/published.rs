//! The published state of a page store, from which readers and batches start.

use buffer::PageId;
use futures::executor::block_on;

use super::bitmap::Bitmap;
use super::keys::{DIRECTORY, PLACES, RECORD};
use super::place::{self, Places};
use crate::error::{Error, Region, Result};
use crate::transaction::snapshot::Snapshot;

/// A version, and its allocation bits.
#[derive(Debug, Clone)]
pub(super) struct Published {
    pub(super) snapshot: Snapshot,
    pub(super) bitmap: Bitmap,
}

impl Published {
    /// Reads the allocation bits of `snapshot`.
    pub(super) fn load(snapshot: Snapshot) -> Result<Published> {
        let store = snapshot.store();
        let damaged = |region, detail: &str| Error::damaged(store.path(), region, 0, detail);
        let space = Region::Space(DIRECTORY);
        let size = snapshot
            .get(DIRECTORY, RECORD)
            .and_then(|record| Some(u64::from_le_bytes((&*record).try_into().ok()?)))
            .filter(|&size| size <= 1 << 32)
            .ok_or_else(|| damaged(space, "the number of pages makes no sense"))?;
        let page_size = store.page_size();
        let mut groups = Vec::new();
        for protected in (0..size).step_by(8 * page_size) {
            let protected = protected as u32;
            let place = kept_in(&snapshot, protected)
                .ok_or_else(|| damaged(Region::Space(PLACES), "an allocation table is missing"))?;
            let pin = block_on(store.pool().pin(place))
                .map_err(|cause| Error::unreadable(protected, cause))?;
            groups.push(pin.to_vec());
        }
        let bitmap =
            Bitmap::read(page_size, size, &groups).map_err(|(page, what)| Error::Allocation {
                path: store.path().to_path_buf(),
                page,
                detail: what,
            })?;
        Ok(Published { snapshot, bitmap })
    }
}

/// Where `page` is kept in a version, if it was ever written.
pub(super) fn kept_in(snapshot: &Snapshot, page: u32) -> Option<PageId> {
    Places::find(&snapshot.get(PLACES, &place::key(page))?, page)
}

/// Whether a caller may use `page` as `published` has it.
pub(super) fn usable(published: &Published, page: u32) -> Result<()> {
    let bitmap = &published.bitmap;
    let number = u64::from(page);
    if number >= bitmap.size() {
        return Err(Error::OutOfBounds {
            page,
            size: bitmap.size(),
        });
    }
    if bitmap.is_protected(number) {
        return Err(Error::Protected { page });
    }
    if !bitmap.get(number) {
        return Err(Error::NotAllocated { page });
    }
    Ok(())
}
