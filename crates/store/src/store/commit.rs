//! Committing: the log record, then the new version.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use buffer::PageId;

use crate::catalog::changes::Changes;
use crate::catalog::spaces::Catalog;
use crate::error::{Error, Result};
use crate::format::structures::{CHUNK, Entry};
use crate::log::MAX_BODY;
use crate::options::{Access, Durability};
use crate::state::version::Version;
use crate::state::writer::Writer;
use crate::store::gate::Gate;
use crate::store::handle::Store;

/// A version whose record is in the log, and which perhaps is not durable yet.
#[derive(Debug)]
pub(crate) struct Logged {
    pub(crate) version: Arc<Version>,
    /// Whether it becomes visible only when it is durable: see [`Store::settle_commit`].
    pub(crate) waits: bool,
    /// Whether the log has become so long that a checkpoint is due, or dirty pages so many.
    pub(crate) due: bool,
}

/// Pages whose chunks are held in memory, and let go when this is dropped.
struct HeldPages<'s> {
    store: &'s Store,
    pages: Vec<PageId>,
}

impl HeldPages<'_> {
    fn none(store: &Store) -> HeldPages<'_> {
        HeldPages {
            store,
            pages: Vec::new(),
        }
    }

    /// Holds a page; false if it is not live.
    fn hold(&mut self, page: PageId) -> Result<bool> {
        let live = self.store.pages.map.hold(page)?.is_some();
        if live {
            self.pages.push(page);
        }
        Ok(live)
    }

    /// They stay held.
    fn keep(mut self) {
        self.pages.clear();
    }
}

impl Drop for HeldPages<'_> {
    fn drop(&mut self) {
        for page in self.pages.drain(..) {
            self.store.pages.map.let_go(page);
        }
    }
}

impl Store {
    /// Logs `changes`, whose result is `catalog`; the next writer may begin from there. Unless it
    /// `waits`, it is visible now.
    pub(crate) fn commit(
        &self,
        changes: Changes,
        mut catalog: Catalog,
        durability: Durability,
        gate: &Gate,
    ) -> Result<Logged> {
        self.not_latched()?;
        let mut writer = self.writer.lock();
        let held = self.hold_freed(&writer, &changes)?;
        let bytes = changes.encoded_bytes();
        if bytes > MAX_BODY {
            return Err(Error::RecordTooLarge {
                bytes,
                limit: MAX_BODY,
            });
        }
        let version = writer.head.number + 1;
        // A record never speaks of pages, or of a part of the file, that a loss of power may take
        // while it leaves the record.
        let in_file = !changes.written.is_empty() && changes.images.is_empty();
        if in_file || self.grown.load(Ordering::Relaxed) {
            self.sync_data()?;
        }
        // What is not visible before cannot be so after.
        let hidden = writer.head.number > self.current.read().number;
        let waits = durability == Durability::Power || hidden;
        let write = waits || durability == Durability::Process || self.writes_on_demand();
        self.log_changes(&mut writer, version, &changes, write)?;
        held.keep();
        // The log has these already, from before.
        for ((space, key), value) in std::mem::take(&mut writer.aside) {
            let own = changes.keys.contains_key(&(space, key.clone()));
            if !own && !changes.dropped.contains(&space) {
                catalog.put(space, key, value);
            }
        }
        self.commits.fetch_add(1, Ordering::Relaxed);
        let written = changes.written.iter().map(|(page, _)| *page);
        self.pages.images.commit(written, version);
        let version = self.advance(&mut writer, version, &changes, catalog);
        if waits {
            self.group.hide(version.clone());
        } else {
            if writer.log.is_written() {
                self.group.written(version.number);
            }
            *self.current.write() = version.clone();
        }
        let long = writer.log.bytes() > writer.due || self.has_many_chunks(&writer);
        if long && self.writes_on_demand() {
            // Now, while no other process writes.
            let done = self.checkpoint_at(&mut writer, gate);
            drop(writer);
            self.note_checkpoint(done.as_ref().err());
        }
        Ok(Logged {
            version,
            waits,
            due: long || self.pages.images.is_half_full(),
        })
    }

    /// Holds the pages that a commit frees; fails if one of them is not live.
    fn hold_freed(&self, writer: &Writer, changes: &Changes) -> Result<HeldPages<'_>> {
        let mut held = HeldPages::none(self);
        for &page in &changes.freed {
            if writer.pending.contains(page) || !held.hold(page)? {
                return Err(Error::NoSuchPage {
                    path: self.path().to_path_buf(),
                    page,
                });
            }
        }
        Ok(held)
    }

    /// Makes a logged version as durable as it is to be, and visible.
    pub(crate) fn settle_commit(&self, logged: &Logged) -> Result<()> {
        if logged.waits {
            self.make_durable(logged.version.number)
        } else {
            Ok(())
        }
    }

    /// Whether others may write as soon as this handle has committed.
    pub(crate) fn writes_on_demand(&self) -> bool {
        self.hold.access() == Access::OnDemand
    }

    /// Makes the new version the one that the next writer begins from.
    pub(super) fn advance(
        &self,
        writer: &mut Writer,
        number: u64,
        changes: &Changes,
        catalog: Catalog,
    ) -> Arc<Version> {
        let pages = changes
            .written
            .iter()
            .map(|(page, _)| page)
            .chain(&changes.freed);
        for page in pages {
            self.pages.map.change(*page);
            writer.chunks.insert(page / CHUNK);
        }
        // What a transaction has written is of the next checkpoint; what is freed is held until it is gone.
        for (page, _) in &changes.written {
            self.pages.map.let_go(*page);
        }
        writer.spaces.extend(changes.spaces());
        self.pend(writer, number, changes.freed.iter().copied());
        let version = Arc::new(Version { number, catalog });
        self.versions.lock().add(&version);
        writer.head = version.clone();
        version
    }

    /// Makes durable that pages lie elsewhere now, where their bytes have been copied: from, to. The
    /// former places are free then.
    pub(crate) fn commit_moves(
        &self,
        writer: &mut Writer,
        moves: &[(PageId, Entry, Entry)],
        _gate: &Gate,
    ) -> Result<()> {
        if moves.is_empty() {
            return Ok(());
        }
        self.sync_data()?;
        let mut held = HeldPages::none(self);
        for (page, _, _) in moves {
            held.hold(*page)?;
        }
        let number = writer.head.number + 1;
        let catalog = writer.head.catalog.clone();
        let written: Vec<_> = moves.iter().map(|&(page, _, to)| (page, to)).collect();
        let mut changes = Changes {
            freed: moves.iter().map(|&(page, _, _)| page).collect(),
            written,
            next_space: catalog.next_space,
            ..Changes::default()
        };
        self.log_changes(writer, number, &changes, true)?;
        for (page, _, to) in moves {
            self.pages.map.relocate(*page, to.offset);
        }
        held.keep();
        // They are as live as before.
        changes.freed.clear();
        let version = self.advance(writer, number, &changes, catalog);
        self.group.hide(version);
        self.make_durable(number)?;
        let former = moves
            .iter()
            .map(|(_, from, _)| (from.offset, from.extent()));
        self.give_back_later(former);
        Ok(())
    }

    /// Appends the record of `changes` to the log.
    pub(super) fn log_changes(
        &self,
        writer: &mut Writer,
        version: u64,
        changes: &Changes,
        write: bool,
    ) -> Result<()> {
        let log = &mut writer.log;
        log.tidy().map_err(|error| self.latch_unless_full(error))?;
        let versions = (version, self.group.durable());
        match log.append(versions, &changes.encode(), write) {
            // The record is not whole.
            Err(error) if error.is_full() => Err(error),
            Err(error) => {
                let uncertain = self.uncertain(version, Arc::new(error));
                self.latch(uncertain.clone());
                Err(uncertain)
            }
            Ok(()) => Ok(()),
        }
    }
}
