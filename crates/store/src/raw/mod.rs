//! Stores of bare pages: numbered pages of one size that are written over, allocated and
//! released (rows B1 and B5), for operators and indexes that bring their own layout.
//!
//! A [`PageStore`] is made from the parts of a [`Store`](crate::Store), and gets from it the log,
//! the recovery, the checksums, the snapshots and the pool. It adds an order of its own: page
//! *n* of a page store is kept in some page of the store below, another one after each write, and
//! the catalog says in which. So writing over a page is atomic however the power is lost, and a
//! reader keeps the bytes it began with.
//!
//! Which pages are allocated is one bit each, kept in protected pages: every page whose number is
//! a multiple of 8 x page size holds the bits of itself and of those up to the next such page.
//! Only the store reads and writes these.

mod batch;
mod bitmap;
mod pages;
mod place;
mod view;

pub use batch::PageBatch;
pub use pages::PageStore;
pub use view::{PagePin, PageStatistics, PageView};

/// The catalog space of the directory, which has the record below.
const DIRECTORY: u32 = 0;
/// Says that a store holds raw pages, and how many.
const RECORD: &[u8] = b"pages";
/// The catalog space that says where each page is kept.
const PLACES: u32 = 1;

/// Whether a snapshot is that of a page store.
pub(crate) fn holds_pages(snapshot: &crate::Snapshot) -> bool {
    snapshot.get(DIRECTORY, RECORD).is_some()
}
