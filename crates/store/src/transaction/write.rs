//! The write transaction, of which there is one at a time.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

use buffer::PageId;
use parking_lot::Mutex;

use crate::catalog::changes::Changes;
use crate::catalog::spaces::{Catalog, Entries};
use crate::error::{Error, Result};
use crate::format::bytes::{Tag, checksum};
use crate::format::codec;
use crate::format::kind::{Codec, Kind};
use crate::format::structures::Entry;
use crate::options::Durability;
use crate::store::commit::Logged;
use crate::store::gate::Gate;
use crate::store::handle::Store;
use crate::transaction::snapshot::{Snapshot, Views};

/// The pages that a transaction has written.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) pages: Vec<PageId>,
    /// Their stored bytes, as long as they are few: then the log is to have them.
    pub(super) images: Vec<Arc<[u8]>>,
    /// Those of them that were not written to their places.
    pub(super) dirty: Vec<PageId>,
    /// Bytes of these, and of those of the transactions around.
    pub(super) bytes: usize,
}

/// Changes that become visible and durable together, or not at all.
///
/// There is one at a time; [`Store::begin`] waits for its turn. Dropping a transaction undoes it.
/// Pages may be written from many threads at once.
#[derive(Debug)]
pub struct Transaction {
    pub(super) base: Snapshot,
    /// The catalog with our own changes.
    pub(super) catalog: Catalog,
    pub(super) changes: Changes,
    pub(super) freed: BTreeSet<PageId>,
    pub(super) written: Mutex<Written>,
    pub(super) durability: Durability,
    /// Counts the snapshots that were taken of this transaction, of those around it and of those within it.
    pub(super) views: Arc<Views>,
    /// Whether it stands within another.
    pub(super) nested: bool,
    /// Lets the next writer in when the last that has it is dropped; dropped last, being the last field.
    pub(super) gate: Arc<Gate>,
}

impl Transaction {
    pub(crate) fn new(base: Snapshot, gate: Gate) -> Transaction {
        let durability = base.store().durability;
        Transaction {
            catalog: base.catalog().clone(),
            base,
            changes: Changes::default(),
            freed: BTreeSet::new(),
            written: Mutex::default(),
            durability,
            views: Arc::default(),
            nested: false,
            gate: Arc::new(gate),
        }
    }

    /// The version that the transaction started from.
    pub fn base(&self) -> &Snapshot {
        &self.base
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        self.base.store()
    }

    /// Writes a page of 1 to page size bytes and returns its id. The page is compressed where
    /// that pays, and written at once; it can be pinned through the pool from then on, and is
    /// gone if the transaction is undone.
    ///
    /// `bucket` determines the home node; `kind` is only for statistics. May wait for the disk.
    ///
    /// # Errors
    /// [`Error::PageLength`], [`Error::Full`], [`Error::Io`]; [`Error::Damaged`] where the page map is, of which all
    /// is read before the first page is written. The transaction can still commit what it wrote before.
    pub fn write_page(&self, bytes: &[u8], bucket: u8, kind: Kind) -> Result<PageId> {
        self.write_pages(&[bytes], bucket, kind)
            .map(|pages| pages[0])
    }

    /// Writes several pages as [`write_page`](Transaction::write_page) does, one after the other
    /// in the file and in one go, so that a scan reads them in one go too.
    ///
    /// # Errors
    /// As [`write_page`](Transaction::write_page); then none of the pages exist.
    pub fn write_pages(&self, pages: &[&[u8]], bucket: u8, kind: Kind) -> Result<Vec<PageId>> {
        let store = self.store();
        store.not_latched()?;
        // Finds out, the first time, what the places of pages are multiples of.
        drop(store.space()?);
        let limit = store.page_size();
        let mut stored = Vec::with_capacity(pages.len());
        let mut total = 0;
        for bytes in pages {
            if bytes.is_empty() || bytes.len() > limit {
                return Err(Error::PageLength {
                    bytes: bytes.len(),
                    limit,
                });
            }
            let (codec, packed) = store.pack(bytes);
            total += store.whole(packed.len());
            stored.push((codec, packed));
        }
        if pages.is_empty() {
            return Ok(Vec::new());
        }
        let (ids, start) = store.allocate(pages.len(), total)?;
        let mut offset = start;
        let mut entries = Vec::with_capacity(pages.len());
        let mut run = Vec::with_capacity(if pages.len() > 1 { total as usize } else { 0 });
        for ((&page, raw), (codec, packed)) in ids.iter().zip(pages).zip(&stored) {
            let entry = Entry {
                offset,
                stored: packed.len() as u32,
                raw: raw.len() as u32,
                sum: checksum(Tag::Page, page, packed),
                bucket,
                kind,
                codec: *codec,
            };
            if pages.len() > 1 {
                run.resize((offset - start) as usize, 0);
                run.extend_from_slice(packed);
            }
            offset += store.whole(packed.len());
            entries.push(entry);
        }
        let bytes = if pages.len() > 1 {
            &run[..]
        } else {
            &stored[0].1[..]
        };
        // Before it is said that they are dirty: another thread may write those to their places.
        let opened = open_pages(store, &ids, &entries);
        let placed = opened.and_then(|()| {
            let placed = self.place(&ids, &stored, start, bytes);
            placed.inspect_err(|_| close_pages(store, &ids))
        });
        if let Err(error) = placed {
            store.give_back(&ids, &[(start, total)]);
            return Err(error);
        }
        Ok(ids)
    }

    /// Leaves pages in memory as long as the transaction is small, and there is room; else writes them
    /// to their places, where `start` is the first and `bytes` is all of them.
    fn place(
        &self,
        ids: &[PageId],
        stored: &[(Codec, Cow<'_, [u8]>)],
        start: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let store = self.store();
        let mut written = self.written.lock();
        written.bytes += stored.iter().map(|(_, image)| image.len()).sum::<usize>();
        if written.bytes > store.small_commit {
            written.images = Vec::new();
            let dirty = std::mem::take(&mut written.dirty);
            drop(written);
            let placed = store
                .write_open(&dirty)
                .and_then(|()| store.write_data(start, bytes));
            let mut written = self.written.lock();
            match placed {
                Ok(()) => written.pages.extend_from_slice(ids),
                Err(_) => written.dirty.extend(dirty),
            }
            return placed;
        }
        let images: Vec<Arc<[u8]>> = stored.iter().map(|(_, image)| (**image).into()).collect();
        if store.pages().images.keep_open(ids, &images) {
            written.dirty.extend_from_slice(ids);
        } else {
            drop(written);
            store.write_data(start, bytes)?;
            written = self.written.lock();
        }
        written.pages.extend_from_slice(ids);
        if written.bytes <= store.small_commit {
            written.images.extend(images);
        }
        Ok(())
    }

    /// Frees a page when the transaction commits. Older snapshots go on reading it.
    /// Freeing a page that is not live makes the commit fail.
    pub fn free_page(&mut self, page: PageId) {
        self.freed.insert(page);
    }

    /// Sets the value of a key.
    pub fn put(&mut self, space: u32, key: &[u8], value: &[u8]) {
        let (key, value): (Arc<[u8]>, Arc<[u8]>) = (key.into(), value.into());
        self.catalog.put(space, key.clone(), value.clone());
        self.changes.keys.insert((space, key), Some(value));
    }

    /// Removes a key, if it is there. One that this transaction alone has put was never there: nothing is left of it, so that
    /// the changes of one that puts and removes in turn do not pile up.
    pub fn delete(&mut self, space: u32, key: &[u8]) {
        if self.catalog.get(space, key).is_none() {
            return;
        }
        self.catalog.delete(space, key);
        let entry = (space, key.into());
        if self.is_known_to_others(&entry) {
            self.changes.keys.insert(entry, None);
        } else {
            self.changes.keys.remove(&entry);
        }
    }

    /// Whether a key is in what the transaction began with, or was [put aside](Store::put_aside) since.
    fn is_known_to_others(&self, entry: &(u32, Arc<[u8]>)) -> bool {
        let (space, key) = entry;
        let base = self.base.catalog().get(*space, key);
        base.is_some() || self.base.store().writer.lock().aside.contains_key(entry)
    }

    /// Removes all keys of a space.
    pub fn delete_space(&mut self, space: u32) {
        self.catalog.spaces.remove(&space);
        self.changes.keys.retain(|(of, _), _| *of != space);
        if self.base.catalog().spaces.get(&space).is_some() {
            self.changes.dropped.insert(space);
        }
    }

    /// A space number that no space has had yet.
    pub fn new_space(&mut self) -> u32 {
        self.catalog.new_space()
    }

    /// The value of a key, as this transaction sees it.
    pub fn get(&self, space: u32, key: &[u8]) -> Option<Arc<[u8]>> {
        self.catalog.get(space, key)
    }

    /// The keys that start with `prefix`, and their values, in the order of the keys, as this
    /// transaction sees them.
    pub fn prefix(&self, space: u32, prefix: &[u8]) -> Entries<'_> {
        self.catalog.prefix(space, prefix)
    }

    /// As [`prefix`](Transaction::prefix), from key `from` on, which starts with `prefix`.
    pub fn prefix_from(&self, space: u32, prefix: &[u8], from: &[u8]) -> Entries<'_> {
        self.catalog.prefix_from(space, prefix, from)
    }

    /// What the commit is to survive, in place of what the store's
    /// [options](crate::Options::durability) say.
    pub fn set_durability(&mut self, durability: Durability) {
        self.durability = durability;
    }

    /// Whether the commit is expected to be over soon, so that no other thread need do it: it is a record in the log alone, and
    /// the store [syncs quickly](Store::syncs_quickly).
    pub fn commits_quickly(&self) -> bool {
        let pages = !self.written.lock().pages.is_empty() || !self.freed.is_empty();
        !pages && self.base.store().syncs_quickly()
    }

    /// Makes the changes durable and visible, in this order; returns the new version. The next
    /// writer begins as soon as they are in the log: several that commit at the same time become
    /// durable together. A
    /// transaction without changes returns the version it started from.
    ///
    /// # Errors
    /// [`Error::Full`]: the transaction is undone, the store stays usable.
    /// [`Error::NoSuchPage`]: a page was freed that is not live; undone. [`Error::Damaged`]: of one that was freed,
    /// the page map is damaged; undone.
    /// [`Error::RecordTooLarge`]: undone.
    /// [`Error::Nested`]: it stands within another transaction, which is to adopt it; undone.
    /// [`Error::Latched`]: an earlier failure, or now one of the data file; undone.
    /// [`Error::Uncertain`]: the log failed, so whether the changes are durable is known only when
    /// the store is opened again. After this and the former, every later commit fails.
    pub fn commit(self) -> Result<u64> {
        self.commit_then(drop)
    }

    /// As [`commit`](Transaction::commit); `then` is given what the next writer begins from, before
    /// that gets in. It is not durable yet, and perhaps will never be.
    pub(crate) fn commit_then(mut self, then: impl FnOnce(Snapshot)) -> Result<u64> {
        let store = self.base.store().clone();
        if self.nested {
            return Err(Error::Nested {
                path: store.path().to_path_buf(),
            });
        }
        let Some(logged) = self.log()? else {
            let base = self.base.version();
            if base > store.current().number {
                store.make_durable(base)?;
            }
            then(self.base.clone());
            return Ok(base);
        };
        if store.writes_on_demand() {
            // Another process is not to build on what is not durable.
            store.settle_commit(&logged)?;
        }
        then(Snapshot::new(store.clone(), logged.version.clone()));
        // Lets the next writer in.
        drop(self);
        store.settle_commit(&logged)?;
        let (version, due) = (logged.version.number, logged.due);
        drop(logged);
        if due {
            store.begin_due();
        }
        store.reclaim_unless_busy();
        Ok(version)
    }

    /// Writes the changes to the log; `None` if there are none.
    fn log(&mut self) -> Result<Option<Logged>> {
        self.write_dirty()?;
        let changes = self.take_changes();
        let catalog = std::mem::take(&mut self.catalog);
        if changes.is_empty() {
            return Ok(None);
        }
        let store = self.base.store();
        let logged = store.commit(changes, catalog, self.durability, &self.gate)?;
        // What is left there is undone when `self` is dropped.
        self.written.get_mut().pages.clear();
        Ok(Some(logged))
    }

    /// Of a transaction that is not small, the data file is to have the pages.
    fn write_dirty(&mut self) -> Result<()> {
        let written = self.written.get_mut();
        if written.bytes <= self.base.store().small_commit {
            return Ok(());
        }
        self.base.store().write_open(&written.dirty)?;
        written.dirty.clear();
        Ok(())
    }

    fn take_changes(&mut self) -> Changes {
        let mut changes = std::mem::take(&mut self.changes);
        let written = self.written.get_mut();
        let small = written.bytes <= self.base.store().small_commit;
        let mut images = std::mem::take(&mut written.images).into_iter();
        let own: HashSet<PageId> = written.pages.iter().copied().collect();
        // What was written and freed again never happened, but for the space to give back.
        let map = &self.base.store().pages().map;
        for &page in &written.pages {
            let image = images.next();
            let entry = map.resident(page);
            debug_assert!(entry.is_some(), "page {page} is of this transaction");
            if let (false, Some(entry)) = (self.freed.contains(&page), entry) {
                changes.written.push((page, entry));
                changes.images.extend(image.filter(|_| small));
            }
        }
        written.pages.retain(|page| !self.freed.contains(page));
        let (unwritten, freed) = self
            .freed
            .iter()
            .copied()
            .partition(|page| own.contains(page));
        changes.freed = freed;
        changes.next_space = self.catalog.next_space;
        // Before the commit, which may write a checkpoint: that takes what is in the page map.
        self.undo(unwritten);
        changes
    }

    /// Undoes the writing of pages. Where a snapshot of this transaction lives, they stay until another commit has
    /// come and that snapshot has gone: it holds the version that this began from.
    fn undo(&self, pages: Vec<PageId>) {
        let without = if self.views.are_gone() {
            0
        } else {
            self.base.version() + 1
        };
        self.base.store().undo(pages, without);
    }
}

/// Puts pages into the map; none of them after an error.
fn open_pages(store: &Store, ids: &[PageId], entries: &[Entry]) -> Result<()> {
    for (at, (&page, entry)) in ids.iter().zip(entries).enumerate() {
        let opened = store.pages().map.open(page, entry);
        opened.inspect_err(|_| close_pages(store, &ids[..at]))?;
    }
    Ok(())
}

/// Takes pages out of the map that nobody has seen.
fn close_pages(store: &Store, ids: &[PageId]) {
    for &page in ids {
        store.pages().map.clear(page);
        store.pages().map.let_go(page);
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let written = std::mem::take(&mut self.written.get_mut().pages);
        self.undo(written);
    }
}

impl Store {
    /// A page as it is stored: compressed where that takes less of the file.
    fn pack<'p>(&self, bytes: &'p [u8]) -> (Codec, Cow<'p, [u8]>) {
        if self.compress {
            let (codec, packed) = codec::compress(bytes);
            if self.whole(packed.len()) < self.whole(bytes.len()) {
                return (codec, packed);
            }
        }
        (Codec::Raw, Cow::Borrowed(bytes))
    }

    /// Starts a transaction, after the one that is under way has ended.
    ///
    /// Waits without limit: a thread that begins a second transaction while it holds one waits
    /// for itself. See [`try_begin`](Store::try_begin).
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Latched`].
    pub fn begin(self: &Arc<Self>) -> Result<Transaction> {
        let gate = self.enter()?;
        Ok(self.transaction(gate))
    }

    /// Starts a transaction unless one is under way.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Latched`].
    pub fn try_begin(self: &Arc<Self>) -> Result<Option<Transaction>> {
        let gate = self.try_enter()?;
        Ok(gate.map(|gate| self.transaction(gate)))
    }

    fn transaction(self: &Arc<Self>, gate: Gate) -> Transaction {
        let mut writer = self.writer.lock();
        self.reclaim(&mut writer);
        let head = writer.head.clone();
        // It begins with them.
        writer.aside.clear();
        writer.open = true;
        drop(writer);
        Transaction::new(Snapshot::new(self.clone(), head), gate)
    }
}
