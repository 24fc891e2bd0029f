//! The keys of a page store in the catalog of the store below.

use std::sync::Arc;

use crate::store::handle::Store;
use crate::transaction::snapshot::Snapshot;

/// The catalog space of the directory, which has the record below.
pub(super) const DIRECTORY: u32 = 0;
/// Says that a store holds raw pages, and how many.
pub(super) const RECORD: &[u8] = b"pages";
/// The catalog space that says where each page is kept.
pub(super) const PLACES: u32 = 1;

/// Whether a snapshot is that of a page store.
pub(super) fn holds_pages(snapshot: &Snapshot) -> bool {
    snapshot.get(DIRECTORY, RECORD).is_some()
}

impl Store {
    /// Whether the store holds the pages of a [`PageStore`](crate::PageStore), and so no tables.
    pub fn is_raw(self: &Arc<Self>) -> bool {
        holds_pages(&self.snapshot())
    }
}
