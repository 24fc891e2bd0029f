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
use crate::format::structures::{Entry, aligned};
use crate::store::gate::Gate;
use crate::store::handle::Store;
use crate::transaction::snapshot::Snapshot;

/// Changes that become visible and durable together, or not at all.
///
/// There is one at a time; [`Store::begin`] waits for its turn. Dropping a transaction undoes it.
/// Pages may be written from many threads at once.
#[derive(Debug)]
pub struct Transaction {
    base: Snapshot,
    /// The catalog with our own changes.
    catalog: Catalog,
    changes: Changes,
    freed: BTreeSet<PageId>,
    written: Mutex<Vec<PageId>>,
    /// Lets the next writer in when it is dropped; dropped last, being the last field.
    gate: Gate,
}

impl Transaction {
    pub(crate) fn new(base: Snapshot, gate: Gate) -> Transaction {
        Transaction {
            catalog: base.catalog().clone(),
            base,
            changes: Changes::default(),
            freed: BTreeSet::new(),
            written: Mutex::default(),
            gate,
        }
    }

    /// The version that the transaction started from.
    pub fn base(&self) -> &Snapshot {
        &self.base
    }

    fn store(&self) -> &Arc<Store> {
        self.base.store()
    }

    /// Writes a page of 1 to page size bytes and returns its id. The page is compressed where
    /// that pays, and written at once; it can be pinned through the pool from then on, and is
    /// gone if the transaction is undone.
    ///
    /// `bucket` determines the home node; `kind` is only for statistics. May wait for the disk.
    ///
    /// # Errors
    /// [`Error::PageLength`], [`Error::Full`], [`Error::Io`]; the transaction can still commit
    /// what it wrote before.
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
            let (codec, packed) = if store.compress {
                codec::compress(bytes)
            } else {
                (Codec::Raw, Cow::Borrowed(*bytes))
            };
            total += aligned(packed.len() as u64);
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
            offset += entry.extent();
            entries.push(entry);
        }
        let bytes = if pages.len() > 1 {
            &run[..]
        } else {
            &stored[0].1[..]
        };
        if let Err(error) = store.data().write_at(start, bytes) {
            store.give_back(&ids, &[(start, total)]);
            return Err(error.into());
        }
        for (&page, entry) in ids.iter().zip(&entries) {
            store.pages().map.set(page, entry);
        }
        self.written.lock().extend_from_slice(&ids);
        Ok(ids)
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

    /// Removes a key, if it is there.
    pub fn delete(&mut self, space: u32, key: &[u8]) {
        if self.catalog.get(space, key).is_some() {
            self.catalog.delete(space, key);
            self.changes.keys.insert((space, key.into()), None);
        }
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

    /// Makes the changes durable and visible, in this order; returns the new version. A
    /// transaction without changes returns the version it started from.
    ///
    /// # Errors
    /// [`Error::Full`]: the transaction is undone, the store stays usable.
    /// [`Error::NoSuchPage`]: a page was freed that is not live; undone.
    /// [`Error::RecordTooLarge`]: undone.
    /// [`Error::Latched`]: an earlier failure, or now one of the data file; undone.
    /// [`Error::Uncertain`]: the log failed, so whether the changes are durable is known only when
    /// the store is opened again. After this and the former, every later commit fails.
    pub fn commit(self) -> Result<u64> {
        self.commit_then(drop)
    }

    /// As [`commit`](Transaction::commit); `then` is given what was committed before the next
    /// writer gets in.
    pub(crate) fn commit_then(mut self, then: impl FnOnce(Snapshot)) -> Result<u64> {
        let mut changes = std::mem::take(&mut self.changes);
        let written = self.written.get_mut();
        let own: HashSet<PageId> = written.iter().copied().collect();
        // What was written and freed again never happened, but for the space to give back.
        written.retain(|page| !self.freed.contains(page));
        let store = self.base.store();
        let map = &store.pages().map;
        changes.written = written
            .iter()
            .filter_map(|&page| Some((page, map.get(page)?)))
            .collect();
        changes.freed = self
            .freed
            .iter()
            .copied()
            .filter(|page| !own.contains(page))
            .collect();
        changes.next_space = self.catalog.next_space;
        let unwritten: Vec<PageId> = own
            .into_iter()
            .filter(|page| self.freed.contains(page))
            .collect();
        // Before the commit, which may write a checkpoint: that takes what is in the page map.
        store.undo(unwritten);
        let catalog = std::mem::take(&mut self.catalog);
        let result = if changes.is_empty() {
            Ok(self.base.clone())
        } else {
            let version = store.commit(changes, catalog, &self.gate);
            version.map(|version| Snapshot::new(store.clone(), version))
        };
        // What is left in `written` is undone when `self` is dropped.
        if result.is_ok() {
            self.written.get_mut().clear();
        }
        let committed = result?;
        let version = committed.version();
        then(committed);
        Ok(version)
    }
}

impl Drop for Transaction {
    fn drop(&mut self) {
        let written = std::mem::take(self.written.get_mut());
        self.base.store().undo(written);
    }
}

impl Store {
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
        self.reclaim(&mut self.writer.lock());
        Transaction::new(self.snapshot(), gate)
    }
}
