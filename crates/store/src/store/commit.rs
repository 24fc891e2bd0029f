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

impl Store {
    /// Logs `changes`, whose result is `catalog`; the next writer may begin from there. Unless it
    /// `waits`, it is visible now.
    pub(crate) fn commit(
        &self,
        changes: Changes,
        catalog: Catalog,
        durability: Durability,
        gate: &Gate,
    ) -> Result<Logged> {
        self.not_latched()?;
        let mut writer = self.writer.lock();
        for &page in &changes.freed {
            if writer.pending.contains(page) || self.pages.map.get(page).is_none() {
                return Err(Error::NoSuchPage {
                    path: self.path().to_path_buf(),
                    page,
                });
            }
        }
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
        let long = writer.log.bytes() > writer.due;
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
    fn advance(
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
        writer.chunks.extend(pages.map(|page| page / CHUNK));
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
        // They are as live as before.
        changes.freed.clear();
        let version = self.advance(writer, number, &changes, catalog);
        self.group.hide(version);
        self.make_durable(number)?;
        let former = moves
            .iter()
            .map(|(_, from, _)| (from.offset, from.extent()));
        if self.hold.others_read() {
            self.space.lock().aside.extend(former);
        } else {
            self.give_back(&[], &former.collect::<Vec<_>>());
        }
        Ok(())
    }

    /// Appends the record of `changes` to the log.
    fn log_changes(
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
