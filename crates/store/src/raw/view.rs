//! Reading: the pages of one version.

use std::ops::{Deref, Range};
use std::sync::Arc;

use buffer::PageId;
use futures::executor::block_on;

use super::keys::PLACES;
use super::place::Places;
use super::published::{Published, kept_in, usable};
use crate::error::{Error, Region, Result};
use crate::maintenance::check::Problem;
use crate::maintenance::statistics::Statistics;
use crate::transaction::snapshot::Snapshot;

/// The pages as some commit left them; no later one changes what is seen here.
#[derive(Debug, Clone)]
pub struct PageView {
    published: Published,
    zeros: Arc<[u8]>,
}

/// A page that stays in memory for as long as this lives: page size bytes.
#[derive(Debug)]
pub struct PagePin<'a>(Bytes<'a>);

/// The pin of `page`, which is kept in the page `place` below, if it is as long as pages are: checksums say nothing
/// about that.
pub(super) fn whole<'a>(
    snapshot: &'a Snapshot,
    (page, place): (u32, PageId),
    pin: std::result::Result<buffer::Pin<'a>, buffer::Error>,
) -> Result<PagePin<'a>> {
    let store = snapshot.store();
    let pin = pin.map_err(|cause| Error::unreadable(page, cause))?;
    if pin.len() == store.page_size() {
        return Ok(PagePin::of(pin));
    }
    let entry = store.pages().map.get(place).ok().flatten();
    let offset = entry.map_or(0, |entry| entry.offset);
    let detail = format!("page {page} is kept there and has {} bytes", pin.len());
    Err(Error::damaged(
        store.path(),
        Region::Page(place),
        offset,
        detail,
    ))
}

#[derive(Debug)]
enum Bytes<'a> {
    Frame(buffer::Pin<'a>),
    /// Allocated and never written.
    Zeros(&'a [u8]),
}

impl<'a> PagePin<'a> {
    /// A page that lies in a frame of the pool.
    #[inline]
    pub(super) fn of(pin: buffer::Pin<'a>) -> PagePin<'a> {
        PagePin(Bytes::Frame(pin))
    }
}

impl Deref for PagePin<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match &self.0 {
            Bytes::Frame(pin) => pin,
            Bytes::Zeros(zeros) => zeros,
        }
    }
}

/// The figures of [`PageStore::statistics`](super::PageStore::statistics) (row B2).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageStatistics {
    /// Pages that there is room for, protected ones included.
    pub size: u64,
    /// Pages that are allocated, protected ones included.
    pub allocated: u64,
    /// Pages that hold allocation bits.
    pub protected: u64,
    /// Figures of the file.
    pub store: Statistics,
}

impl PageView {
    pub(super) fn new(published: Published, zeros: Arc<[u8]>) -> PageView {
        PageView { published, zeros }
    }

    /// The number of the commit.
    pub fn version(&self) -> u64 {
        self.published.snapshot.version()
    }

    /// Pages that there is room for, protected ones included: all numbers are below this.
    pub fn size(&self) -> u64 {
        self.published.bitmap.size()
    }

    /// Pages that are allocated, protected ones included.
    pub fn allocated(&self) -> u64 {
        self.published.bitmap.allocated()
    }

    /// Pages that hold allocation bits (row B5).
    pub fn protected(&self) -> u64 {
        self.published.bitmap.protected()
    }

    /// Whether `page` is allocated; a number beyond the end is not.
    pub fn is_allocated(&self, page: u32) -> bool {
        self.published.bitmap.get(page.into())
    }

    /// Whether `page` holds allocation bits, and only the store may use it.
    pub fn is_protected(&self, page: u32) -> bool {
        self.published.bitmap.is_protected(page.into())
    }

    /// The allocated pages, protected ones included, as ranges in their order.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.published.bitmap.runs()
    }

    /// Pins a page: its bytes can be read for as long as the pin lives. Suspends while the page
    /// is loaded.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::Protected`], [`Error::NotAllocated`];
    /// [`Error::Unreadable`] if it is damaged or the pool has no frame; [`Error::Damaged`] if it has
    /// another length than pages have.
    pub async fn pin(&self, page: u32) -> Result<PagePin<'_>> {
        self.usable(page)?;
        let snapshot = &self.published.snapshot;
        match kept_in(snapshot, page) {
            None => Ok(PagePin(Bytes::Zeros(&self.zeros))),
            Some(place) => whole(snapshot, (page, place), snapshot.pool().pin(place).await),
        }
    }

    /// Reads a page into page size bytes. Blocks the thread while the page is loaded.
    ///
    /// # Errors
    /// As [`pin`](PageView::pin), and [`Error::PageBytes`] if `into` has another length.
    pub fn read(&self, page: u32, into: &mut [u8]) -> Result<()> {
        if into.len() != self.zeros.len() {
            return Err(Error::PageBytes {
                bytes: into.len(),
                page_size: self.zeros.len(),
            });
        }
        into.copy_from_slice(&block_on(self.pin(page))?);
        Ok(())
    }

    /// The version that is seen.
    pub(super) fn snapshot(&self) -> &Snapshot {
        &self.published.snapshot
    }

    /// Bytes of a page.
    #[inline]
    pub(super) fn page_size(&self) -> usize {
        self.zeros.len()
    }

    /// What a page that was never written reads as.
    pub(super) fn zeros(&self) -> PagePin<'_> {
        PagePin(Bytes::Zeros(&self.zeros))
    }

    /// The pool that the pages are read through.
    #[inline]
    pub(super) fn pool(&self) -> &Arc<buffer::Pool> {
        self.published.snapshot.pool()
    }

    fn usable(&self, page: u32) -> Result<()> {
        usable(&self.published, page)
    }

    /// Pages that are kept somewhere, and where.
    pub(super) fn places(&self) -> impl Iterator<Item = (u32, PageId)> {
        let entries = self.published.snapshot.prefix(PLACES, b"");
        entries.flat_map(|(key, entry)| Places::all(&key, &entry).collect::<Vec<_>>())
    }

    /// Where allocation bits and places contradict each other.
    pub(super) fn contradictions(&self) -> Vec<Problem> {
        let bitmap = &self.published.bitmap;
        let map = &self.published.snapshot.store().pages().map;
        let wrong = |page: u32, place| {
            if !bitmap.get(page.into()) {
                Some("it is kept, but not allocated")
            } else {
                match map.get(place) {
                    Ok(None) => Some("it is kept in a page that does not exist"),
                    Ok(Some(entry)) if entry.raw as usize != self.zeros.len() => {
                        Some("it is kept in a page of another length")
                    }
                    // A chunk of the map that cannot be read is told where the map is checked.
                    Ok(Some(_)) | Err(_) => None,
                }
            }
        };
        self.places()
            .filter_map(|(page, place)| {
                Some(Problem::Page {
                    page,
                    detail: wrong(page, place)?.to_string(),
                })
            })
            .collect()
    }
}
