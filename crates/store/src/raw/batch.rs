//! Writing: changes to pages that happen together, or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use buffer::PageId;
use futures::executor::block_on;

use super::keys::{DIRECTORY, PLACES, RECORD};
use super::pages::PageStore;
use super::place::{self, Places};
use super::published::{Published, kept_in, usable};
use super::view::whole;
use crate::error::{Error, Result};
use crate::format::kind::Kind;
use crate::options::SMALL_COMMIT;
use crate::transaction::write::Transaction;

/// Changes to the pages of a [`PageStore`] that become visible and durable together with
/// [`commit`](PageBatch::commit), or not at all. There is one at a time. Dropping it undoes it.
#[derive(Debug)]
pub struct PageBatch<'s> {
    pages: &'s PageStore,
    transaction: Transaction,
    /// What the batch started from.
    before: Published,
    /// The same, with our changes to the bits.
    now: Published,
    /// Where pages are kept that were written (`None`: released) by this batch.
    places: BTreeMap<u32, Option<PageId>>,
    /// The bytes of pages that are changed in place; at most [`CHANGED`], or one page. They go
    /// before what is in `places`.
    changed: BTreeMap<u32, Box<[u8]>>,
    /// Where the search for a free page goes on.
    next: u64,
}

impl<'s> PageBatch<'s> {
    pub(super) fn new(
        pages: &'s PageStore,
        transaction: Transaction,
        before: Published,
        next: u64,
    ) -> PageBatch<'s> {
        PageBatch {
            pages,
            transaction,
            now: before.clone(),
            before,
            places: BTreeMap::new(),
            changed: BTreeMap::new(),
            next,
        }
    }

    /// Makes room for `pages` more pages to be allocated.
    ///
    /// # Errors
    /// [`Error::OutOfPageIds`] beyond 2^32 pages.
    pub fn reserve(&mut self, pages: u64) -> Result<()> {
        let bitmap = &mut self.now.bitmap;
        let per_group = bitmap.group_pages() - 1;
        let free = bitmap.size() - bitmap.allocated();
        let missing = pages.saturating_sub(free);
        // Each group that begins takes a page for itself; one more never hurts.
        let size = bitmap
            .size()
            .checked_add(missing)
            .and_then(|size| size.checked_add(missing / per_group + 1))
            .filter(|&size| size <= 1 << 32);
        match size {
            Some(_) if missing == 0 => Ok(()),
            Some(size) => {
                bitmap.grow(size);
                Ok(())
            }
            None => Err(Error::OutOfPageIds {
                path: self.pages.path().to_path_buf(),
            }),
        }
    }

    /// Allocates a page, the next free one after the one allocated last, in this batch or an
    /// earlier one; the store grows by an eighth where all are taken. The page reads as zeros until
    /// it is written.
    ///
    /// # Errors
    /// [`Error::OutOfPageIds`].
    pub fn alloc(&mut self) -> Result<u32> {
        if self.now.bitmap.free_from(self.next).is_none() {
            let eighth = self.now.bitmap.size() / 8;
            self.reserve(eighth.max(64)).or_else(|_| self.reserve(1))?;
        }
        let bitmap = &mut self.now.bitmap;
        let page = bitmap
            .free_from(self.next)
            .ok_or_else(|| Error::OutOfPageIds {
                path: self.pages.path().to_path_buf(),
            })?;
        bitmap.change(page, true);
        self.next = page + 1;
        Ok(page as u32)
    }

    /// Releases a page: its number may be allocated again, its bytes are gone with the commit.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::Protected`], [`Error::NotAllocated`].
    pub fn release(&mut self, page: u32) -> Result<()> {
        usable(&self.now, page)?;
        self.now.bitmap.change(page.into(), false);
        self.changed.remove(&page);
        self.place(page, None);
        Ok(())
    }

    /// Writes over an allocated page. `bytes` is page size long. May wait for the disk.
    ///
    /// # Errors
    /// [`Error::OutOfBounds`], [`Error::Protected`], [`Error::NotAllocated`],
    /// [`Error::PageBytes`], [`Error::Full`], [`Error::Io`]; what was written before can still
    /// be committed.
    pub fn write(&mut self, page: u32, bytes: &[u8]) -> Result<()> {
        usable(&self.now, page)?;
        if bytes.len() != self.pages.page_size() {
            return Err(Error::PageBytes {
                bytes: bytes.len(),
                page_size: self.pages.page_size(),
            });
        }
        let place = self.transaction.write_page(bytes, bucket(page), KIND)?;
        self.changed.remove(&page);
        self.place(page, Some(place));
        Ok(())
    }

    /// The bytes of an allocated page, as this batch has left them, to be changed in place (set dirty,
    /// row B2). However often a page is changed, its bytes are written once, with the commit or when
    /// many other pages were changed since.
    ///
    /// # Errors
    /// As [`read`](PageBatch::read) and [`write`](PageBatch::write).
    pub fn change(&mut self, page: u32) -> Result<&mut [u8]> {
        usable(&self.now, page)?;
        let size = self.pages.page_size();
        if !self.changed.contains_key(&page) {
            if (self.changed.len() + 1) * size > CHANGED {
                self.write_changed()?;
            }
            let mut bytes = vec![0; size].into_boxed_slice();
            self.read(page, &mut bytes)?;
            self.changed.insert(page, bytes);
        }
        Ok(self.changed.entry(page).or_default())
    }

    /// Writes the pages that were changed in place.
    fn write_changed(&mut self) -> Result<()> {
        while let Some((page, bytes)) = self.changed.pop_first() {
            if let Err(error) = self.write(page, &bytes) {
                self.changed.insert(page, bytes);
                return Err(error);
            }
        }
        Ok(())
    }

    /// Reads a page as this batch has left it, into page size bytes.
    ///
    /// # Errors
    /// As [`PageView::read`](super::PageView::read).
    pub fn read(&self, page: u32, into: &mut [u8]) -> Result<()> {
        usable(&self.now, page)?;
        if into.len() != self.pages.page_size() {
            return Err(Error::PageBytes {
                bytes: into.len(),
                page_size: self.pages.page_size(),
            });
        }
        if let Some(bytes) = self.changed.get(&page) {
            into.copy_from_slice(bytes);
            return Ok(());
        }
        let place = match self.places.get(&page) {
            Some(place) => *place,
            None => kept_in(&self.before.snapshot, page),
        };
        match place {
            None => into.fill(0),
            Some(place) => {
                let pin = block_on(self.pages.pool().pin(place));
                into.copy_from_slice(&whole(&self.before.snapshot, (page, place), pin)?);
            }
        }
        Ok(())
    }

    fn place(&mut self, page: u32, place: Option<PageId>) {
        if let Some(Some(own)) = self.places.insert(page, place) {
            self.transaction.free_page(own);
        }
    }

    /// Makes the changes durable and visible, in this order; returns the new version.
    ///
    /// # Errors
    /// As [`Transaction::commit`].
    pub fn commit(mut self) -> Result<u64> {
        self.write_changed()?;
        self.write_bits()?;
        self.write_places();
        let size = self.now.bitmap.size();
        if size != self.before.bitmap.size() {
            self.transaction.put(DIRECTORY, RECORD, &size.to_le_bytes());
        }
        let (pages, bitmap, next) = (self.pages, self.now.bitmap, self.next);
        // What only these snapshots keep is free with this commit.
        drop((self.before, self.now.snapshot));
        let mut committed = None;
        let version = self.transaction.commit_then(|snapshot| {
            let new = Published { snapshot, bitmap };
            committed = Some(new.clone());
            pages.begin_from(new, next);
        })?;
        if let Some(new) = committed {
            pages.publish(new);
        }
        Ok(version)
    }

    fn write_bits(&mut self) -> Result<()> {
        let bitmap = self.now.bitmap.clone();
        let changed: Vec<_> = bitmap.changed(&self.before.bitmap).collect();
        for group in changed {
            let protected = (group as u64 * bitmap.group_pages()) as u32;
            let bytes = bitmap.bytes(group);
            let place = self
                .transaction
                .write_page(&bytes, bucket(protected), KIND)?;
            self.place(protected, Some(place));
        }
        Ok(())
    }

    fn write_places(&mut self) {
        let mut changes = std::mem::take(&mut self.places).into_iter().peekable();
        while let Some(&(first, _)) = changes.peek() {
            let key = place::key(first);
            let mut chunk = places(self.transaction.get(PLACES, &key));
            while let Some((page, place)) = changes.next_if(|&(page, _)| place::key(page) == key) {
                if let Some(old) = chunk.set(page, place) {
                    self.transaction.free_page(old);
                }
            }
            match chunk.entry() {
                [] => self.transaction.delete(PLACES, &key),
                entry => self.transaction.put(PLACES, &key, entry),
            }
        }
    }
}

impl PageStore {
    /// Starts a batch of changes, after the one that is under way has ended.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Latched`].
    pub fn begin(&self) -> Result<PageBatch<'_>> {
        let transaction = self.store.begin()?;
        // A batch sets this before the next one begins.
        let published = self.newest.read().clone();
        debug_assert_eq!(published.snapshot.version(), transaction.base().version());
        let next = self.next.load(Ordering::Relaxed);
        Ok(PageBatch::new(self, transaction, published, next))
    }

    /// Makes room for `pages` more pages to be allocated, durably, and sets room for their bytes
    /// aside on the disk for as long as the store is open: a disk that is too full says so now and
    /// not when the pages are written. What is written next uses that room up, whichever pages it
    /// is; some network file systems cannot set any aside.
    ///
    /// # Errors
    /// [`Error::Full`], [`Error::OutOfPageIds`], and those of [`PageBatch::commit`].
    pub fn reserve(&self, pages: u64) -> Result<()> {
        let mut batch = self.begin()?;
        batch.reserve(pages)?;
        self.store
            .reserve(pages.saturating_mul(self.page_size() as u64))?;
        batch.commit().map(drop)
    }

    /// Writes one page, durably: a batch of one write.
    ///
    /// # Errors
    /// Those of [`PageBatch::write`] and [`PageBatch::commit`].
    pub fn write(&self, page: u32, bytes: &[u8]) -> Result<()> {
        let mut batch = self.begin()?;
        batch.write(page, bytes)?;
        batch.commit().map(drop)
    }
}

/// The kind that pages are written as.
const KIND: Kind = Kind::Blob;

/// The most bytes of pages that a batch holds to be changed in place: what still fits in the log.
const CHANGED: usize = SMALL_COMMIT;

/// The placement bucket of a page (row B4).
fn bucket(page: u32) -> u8 {
    page as u8
}

/// The places of the chunk that `page` is in.
fn places(entry: Option<Arc<[u8]>>) -> Places {
    Places::of(entry.as_deref())
}
