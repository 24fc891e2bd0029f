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
#[cfg(test)]
mod fuzzed;
mod keys;
mod list;
mod pages;
mod place;
mod published;
mod reader;
mod view;

pub use batch::PageBatch;
pub use list::PageList;
pub use pages::PageStore;
pub use reader::PageReader;
pub use view::{PagePin, PageStatistics, PageView};
