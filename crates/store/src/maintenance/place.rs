//! Where pages are in the file.

use buffer::PageId;

use crate::format::kind::{Codec, Kind};
use crate::store::handle::Store;

/// Where a page is in the data file, and how it is stored there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The page.
    pub page: PageId,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its bytes in the file.
    pub stored_bytes: u32,
    /// Its bytes as readers see them.
    pub raw_bytes: u32,
    /// What it holds.
    pub kind: Kind,
    /// How it is stored.
    pub codec: Codec,
}

impl Store {
    /// Where a live page is; `None` for others, and where the part of the page map that knows cannot be read: then
    /// reading the page fails, and says why. A page keeps its place as long as a snapshot knows it. May wait for the
    /// disk.
    pub fn place(&self, page: PageId) -> Option<Place> {
        let entry = self.pages().map.get(page).ok().flatten()?;
        Some(Place {
            page,
            offset: entry.offset,
            stored_bytes: entry.stored,
            raw_bytes: entry.raw,
            kind: entry.kind,
            codec: entry.codec,
        })
    }
}
