//! Checkpoints: fold the log into the data file, while commits go on.
//!
//! 1. At the gate, what changed of map and catalog is copied: it is the state of one version.
//! 2. The log is synced up to that version. What was copied is written to free space, with a new
//!    directory, and pages that only the log has to their places; sync.
//! 3. The older root slot is overwritten with a root that points there; sync.
//! 4. What only the older root referred to is free.
//! 5. The log starts anew: a header, sync; its records are written over. Where commits have come
//!    meanwhile it goes on instead, and recovery passes over the records that the root includes; a
//!    log that has become too long is emptied by a second checkpoint, of what has come since, which
//!    commits wait for.
//!
//! A crash before the end of 3 leaves the former root and the whole log; a later one the new root
//! and a log some of whose records it includes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::error::{Error, Result};
use crate::format::structures::{ROOT_OFFSETS, Root};
use crate::options::Access;
use crate::state::writer::Writer;
use crate::store::gate::Gate;
use crate::store::handle::Store;
use crate::store::running::Turn;
use crate::store::structures::{Exchange, Frozen};

/// Chunks of the map that are copied for a checkpoint that commits go on beside: 12 MiB. Where more
/// have changed, commits wait for it.
const COPIED: usize = 512;

/// How many times [`checkpoint_bytes`](crate::Options::checkpoint_bytes) the log may be long before
/// commits wait for it to be emptied.
const LONGEST: u64 = 4;

impl Store {
    /// Folds the log into the data file: the records of all that was committed before. Waits for the
    /// transaction under way; others go on meanwhile, and what they log is left for the next time.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Full`], [`Error::Io`]: the store is as it was before.
    /// [`Error::Latched`]: nothing committed is lost, and nothing more is committed.
    pub fn checkpoint(self: &Arc<Self>) -> Result<()> {
        let turn = self.checkpointing.lock();
        self.checkpoint_in(&turn)
    }

    pub(crate) fn checkpoint_in(self: &Arc<Self>, turn: &Turn<'_>) -> Result<()> {
        let result = self.checkpoint_beside(turn);
        self.note_checkpoint(result.as_ref().err());
        result
    }

    /// Whether commits have changed so many chunks of the map, all of which stay in memory, that they are to be
    /// written.
    pub(super) fn has_many_chunks(&self, writer: &Writer) -> bool {
        let many = self.pages.map.bound_leaves().max(COPIED);
        writer.chunks.len() > many && writer.checkpoint_failure.is_none()
    }

    pub(super) fn note_checkpoint(&self, failure: Option<&Error>) {
        let mut writer = self.writer.lock();
        writer.checkpoint_failure = failure.cloned();
        let length = writer.log.bytes();
        writer.due = match failure {
            None => length + self.checkpoint_bytes,
            // A disk that is full stays so for a while: try again when the log has doubled.
            Some(_) => self.checkpoint_bytes.max(2 * length),
        };
    }

    /// A checkpoint beside which commits go on, where that is possible.
    fn checkpoint_beside(self: &Arc<Self>, turn: &Turn<'_>) -> Result<()> {
        let frozen = {
            let gate = self.enter()?;
            let mut writer = self.writer.lock();
            self.reclaim(&mut writer);
            let alone = self.writes_on_demand() || writer.chunks.len() > COPIED;
            if alone || writer.head.number == writer.root.version {
                return self.checkpoint_at(&mut writer, &gate);
            }
            self.prepare(&mut writer)?;
            self.freeze(&mut writer)?
        };
        self.write_and_install(frozen, turn)?;
        if self.writer.lock().log.bytes() <= LONGEST.saturating_mul(self.checkpoint_bytes) {
            return Ok(());
        }
        let gate = self.enter()?;
        let mut writer = self.writer.lock();
        self.checkpoint_at(&mut writer, &gate)
    }

    /// Steps 2 to 5, without the gate.
    fn write_and_install(&self, frozen: Frozen, _turn: &Turn<'_>) -> Result<()> {
        let mut exchange = Exchange::default();
        let (directory, root) = match self.write_durably(&frozen, &mut exchange) {
            Ok(both) => both,
            Err(error) => {
                frozen.thaw(&mut self.writer.lock());
                return Err(error);
            }
        };
        let written = self.hold.change_roots(self.path()).and_then(|roots| {
            self.write_root(&root)?;
            Ok(roots)
        });
        let mut writer = self.writer.lock();
        let _roots = match written {
            Ok(roots) => roots,
            Err(error) => {
                writer.limbo.append(&mut exchange.new);
                frozen.thaw(&mut writer);
                return Err(error);
            }
        };
        writer.directory = directory;
        self.install(&mut writer, root, &frozen, exchange)?;
        drop(frozen);
        self.reclaim(&mut writer);
        Ok(())
    }

    /// Folds the log into the data file and gives the unused end of the file back. The lock on
    /// the files goes with the last handle to the store. Dropping a store without closing it is
    /// no loss, the next [`open`](Store::open) then reads the log.
    ///
    /// # Errors
    /// As [`checkpoint`](Store::checkpoint); nothing committed is lost.
    pub fn close(self: Arc<Self>) -> Result<()> {
        match self.hold.access() {
            Access::Read => return Ok(()),
            // Nothing of its own to fold in.
            Access::OnDemand if self.unsettled.lock().is_some() => return Ok(()),
            Access::OnDemand | Access::Write => {}
        }
        let _turn = self.checkpointing.lock();
        let gate = match self.enter() {
            // Whoever wrote last does it.
            Err(Error::Busy { .. } | Error::Changed { .. })
                if self.hold.access() == Access::OnDemand =>
            {
                return Ok(());
            }
            entered => entered?,
        };
        let mut writer = self.writer.lock();
        self.reclaim(&mut writer);
        let _roots = self.hold.change_roots(self.path())?;
        self.write_checkpoint(&mut writer, &gate)?;
        self.write_closing_root(&mut writer, &gate)
    }

    /// A checkpoint that commits wait for.
    pub(crate) fn checkpoint_at(&self, writer: &mut Writer, gate: &Gate) -> Result<()> {
        let _roots = self.hold.change_roots(self.path())?;
        self.write_checkpoint(writer, gate)
    }

    /// Does all steps at once, where the roots may be changed. The gate shows that no transaction is
    /// under way, so the page map holds the current version, and the pending pages.
    pub(crate) fn write_checkpoint(&self, writer: &mut Writer, gate: &Gate) -> Result<()> {
        if writer.head.number == writer.root.version {
            return self.restart_log(writer);
        }
        self.rewrite_structures(writer, gate)
    }

    /// The same, also if there was no commit since the last checkpoint.
    pub(crate) fn rewrite_structures(&self, writer: &mut Writer, _gate: &Gate) -> Result<()> {
        self.prepare(writer)?;
        let frozen = self.freeze(writer)?;
        let mut exchange = Exchange::default();
        let (directory, root) = match self.write_durably(&frozen, &mut exchange) {
            Ok(both) => both,
            Err(error) => {
                frozen.thaw(writer);
                return Err(error);
            }
        };
        if let Err(error) = self.write_root(&root) {
            writer.limbo.append(&mut exchange.new);
            frozen.thaw(writer);
            return Err(error);
        }
        writer.directory = directory;
        self.install(writer, root, &frozen, exchange)
    }

    /// What comes before step 1: the log has all records, and a torn root can be told from damage.
    fn prepare(&self, writer: &mut Writer) -> Result<()> {
        let flushed = writer.log.flush();
        flushed.map_err(|error| self.latch_unless_full(error))?;
        self.group.written(writer.head.number);
        self.announce_root(writer)?;
        let repaired = writer.log.repair();
        repaired.map_err(|error| self.latch_unless_full(error))
    }

    /// Step 2. After a failure nothing refers to what was written.
    fn write_durably(
        &self,
        frozen: &Frozen,
        exchange: &mut Exchange,
    ) -> Result<(crate::format::structures::Directory, Root)> {
        // Either root leads to the same state only if the log is whole.
        self.make_durable(frozen.version.number)?;
        let written = self
            .write_frozen(frozen, exchange)
            .and_then(|written| self.sync_written().map(|()| written));
        if written.is_err() {
            self.give_back_blobs(&std::mem::take(&mut exchange.new));
        }
        written
    }

    /// Steps 4 and 5: a durable root leads to what was written. The roots are kept from others.
    fn install(
        &self,
        writer: &mut Writer,
        root: Root,
        frozen: &Frozen,
        mut exchange: Exchange,
    ) -> Result<()> {
        exchange.old.append(&mut writer.limbo);
        writer.root = root;
        self.install_map(writer, frozen);
        for (page, _, _) in &frozen.images {
            self.pages.images.forget(*page);
        }
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        if writer.head.number == root.version
            && let Err(error) = self.restart_log(writer)
        {
            // The older root with the log's records is still a full state; keep it so.
            writer.limbo = exchange.old;
            return Err(error);
        }
        self.give_back_replaced(&exchange.old);
        Ok(())
    }

    /// Empties the log, all of whose records the root includes.
    fn restart_log(&self, writer: &mut Writer) -> Result<()> {
        let restarted = writer.log.restart(writer.root.version);
        restarted.map_err(|error| self.latch_unless_full(error))
    }

    /// Completes, before the first transaction, what a crash left half done.
    pub(crate) fn settle(&self, sole_root: bool, gate: &Gate) -> Result<()> {
        let _roots = self.hold.change_roots(self.path())?;
        let mut writer = self.writer.lock();
        if self.recovery().replayed > 0 {
            // What was replayed may not be durable yet: a process that failed to sync its log
            // left it in the page cache.
            return self.write_checkpoint(&mut writer, gate);
        }
        // Slots that no crash explains stay as they are, for `check` to find.
        let version = writer.root.version;
        writer.log.settle(version)?;
        if sole_root && writer.root.log_counter < writer.log.header().counter {
            self.write_closing_root(&mut writer, gate)?;
        }
        Ok(())
    }

    /// Sees to it that a crash which tears the next root can be told from damage: either the log has
    /// records that the present root does not include, or its header is newer than that.
    fn announce_root(&self, writer: &mut Writer) -> Result<()> {
        let (log, root) = (&mut writer.log, &writer.root);
        if writer.head.number > root.version || log.header().counter > root.log_counter {
            return Ok(());
        }
        let renewed = log.renew(root.version);
        renewed.map_err(|error| self.latch_unless_full(error))
    }

    /// After a checkpoint: gives the free end of the file back, and writes a root that knows of
    /// the log's last restart, so that a cut file or log is noticed.
    pub(crate) fn write_closing_root(&self, writer: &mut Writer, _gate: &Gate) -> Result<()> {
        let trimmed = writer.log.trim();
        trimmed.map_err(|error| self.latch_unless_full(error))?;
        let length = self.data().len()?;
        let end = if self.free.lock().known().is_none() && length == writer.root.file_bytes {
            // Nothing was written, and there is nothing to cut off.
            length
        } else {
            self.space()?.extents.trim()
        };
        let root = Root {
            sequence: writer.root.sequence + 1,
            file_bytes: end,
            log_counter: writer.log.header().counter,
            alignment: self.alignment() as u32,
            ..writer.root
        };
        let same = |old: &Root| (old.file_bytes, old.log_counter) == (end, root.log_counter);
        if !same(&writer.root) {
            self.announce_root(writer)?;
            let log_counter = writer.log.header().counter;
            let root = Root {
                log_counter,
                ..root
            };
            // Either root leads to the same state, so a failure needs no care.
            self.write_root(&root)?;
            writer.root = root;
        }
        // A reader's version may have pages beyond.
        if length != end && !self.hold.others_read() {
            self.data().set_len(end)?;
        }
        Ok(())
    }

    fn write_root(&self, root: &Root) -> Result<()> {
        let block = root.encode(&self.identity.id);
        self.write_data(ROOT_OFFSETS[usize::from(root.slot())], &block)?;
        self.sync_written()
    }
}
