//! Checkpoints: fold the log into the data file.
//!
//! 1. The log is synced where it is not durable. What changed of map and catalog is written to free
//!    space, with a new directory, and pages that only the log has to their places; sync.
//! 2. The older root slot is overwritten with a root that points there; sync.
//! 3. The log starts anew: a header, sync; its records are cut off, sync.
//! 4. What only the older root referred to is free.
//!
//! A crash before the end of 2 leaves the former root and the whole log; a crash before the end
//! of 3 the new root and a log whose records it includes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::catalog::spaces::encode_space;
use crate::error::{Error, Region, Result};
use crate::format::bytes::checksum;
use crate::format::codec;
use crate::format::disk::tag_of;
use crate::format::structures::{Blob, CHUNK, Directory, ENTRY_BYTES, ROOT_OFFSETS, Root, aligned};
use crate::options::Access;
use crate::state::version::Version;
use crate::state::writer::Writer;
use crate::store::gate::Gate;
use crate::store::handle::Store;

/// Structures being written, and those they replace.
#[derive(Default)]
struct Exchange {
    new: Vec<Blob>,
    old: Vec<Blob>,
}

impl Store {
    /// Folds the log into the data file. Waits for the transaction under way.
    ///
    /// # Errors
    /// [`Error::ReadOnly`], [`Error::Full`], [`Error::Io`]: the store is as it was before.
    /// [`Error::Latched`]: nothing committed is lost, and nothing more is committed.
    pub fn checkpoint(self: &Arc<Self>) -> Result<()> {
        let gate = self.enter()?;
        let mut writer = self.writer.lock();
        self.reclaim(&mut writer);
        let roots = self.hold.change_roots(self.path());
        let result = roots.and_then(|_roots| self.write_checkpoint(&mut writer, &gate));
        writer.checkpoint_failure = result.as_ref().err().cloned();
        result
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

    /// Does steps 1 to 4. The gate shows that no transaction is under way, so the page map holds
    /// the current version, and the pending pages.
    pub(crate) fn write_checkpoint(&self, writer: &mut Writer, gate: &Gate) -> Result<()> {
        if writer.head.number == writer.root.version {
            return Ok(());
        }
        self.rewrite_structures(writer, gate)
    }

    /// The same, also if there was no commit since the last checkpoint.
    pub(crate) fn rewrite_structures(&self, writer: &mut Writer, _gate: &Gate) -> Result<()> {
        let version = writer.head.clone();
        // Either root leads to the same state only if the log is whole.
        self.sync_log(writer)?;
        self.write_images()?;
        self.announce_root(writer)?;
        let repaired = writer.log.repair(writer.root.version);
        repaired.map_err(|error| self.latch_unless_full(error))?;
        let mut exchange = Exchange::default();
        let written = self
            .write_structures(writer, &version, &mut exchange)
            .and_then(|root| {
                self.sync_data()?;
                Ok(root)
            });
        let (directory, root) = match written {
            Ok(both) => both,
            Err(error) => {
                // No root refers to them.
                self.give_back_blobs(&exchange.new);
                return Err(error);
            }
        };
        if let Err(error) = self.write_root(&root) {
            // Perhaps a root refers to them now: keep them until a later one is durable. The
            // log goes on, so either root leads to the same state.
            writer.limbo.append(&mut exchange.new);
            return Err(error);
        }
        exchange.old.append(&mut writer.limbo);
        writer.root = root;
        writer.directory = directory;
        for page in self.pages.images.pages() {
            self.pages.images.forget(page);
        }
        writer.chunks.clear();
        writer.spaces.clear();
        self.checkpoints.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = writer.log.restart(version.number) {
            // The older root with the log's records is still a full state; keep it so.
            writer.limbo = exchange.old;
            return Err(self.latch_unless_full(error));
        }
        self.give_back_blobs(&exchange.old);
        Ok(())
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

    /// Makes every commit durable that was logged.
    fn sync_log(&self, writer: &mut Writer) -> Result<()> {
        let flushed = writer.log.flush();
        flushed.map_err(|error| self.latch_unless_full(error))?;
        self.group.written(writer.head.number);
        self.make_durable(writer.head.number)
    }

    /// Sees to it that a crash which tears the next root can be told from damage: either there are
    /// records in the log, or its header is newer than the present root.
    fn announce_root(&self, writer: &mut Writer) -> Result<()> {
        let (log, root) = (&mut writer.log, &writer.root);
        if log.bytes() > 0 || log.header().counter > root.log_counter {
            return Ok(());
        }
        let renewed = log.renew(root.version);
        renewed.map_err(|error| self.latch_unless_full(error))
    }

    /// Puts pages in their places whose bytes are in the log only.
    fn write_images(&self) -> Result<()> {
        for page in self.pages.images.pages() {
            if let (Some(image), Some(entry)) =
                (self.pages.images.get(page), self.pages.map.get(page))
            {
                self.write_data(entry.offset, &image)?;
            }
        }
        Ok(())
    }

    /// After a checkpoint: gives the free end of the file back, and writes a root that knows of
    /// the log's last restart, so that a cut file or log is noticed.
    pub(crate) fn write_closing_root(&self, writer: &mut Writer, _gate: &Gate) -> Result<()> {
        let end = self.space.lock().extents.trim();
        let root = Root {
            sequence: writer.root.sequence + 1,
            file_bytes: end,
            log_counter: writer.log.header().counter,
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
        if self.data().len()? != end && !self.hold.others_read() {
            self.data().set_len(end)?;
        }
        Ok(())
    }

    fn write_root(&self, root: &Root) -> Result<()> {
        let block = root.encode(&self.identity.id);
        self.write_data(ROOT_OFFSETS[usize::from(root.slot())], &block)?;
        self.sync_data()
    }

    fn write_structures(
        &self,
        writer: &Writer,
        version: &Version,
        exchange: &mut Exchange,
    ) -> Result<(Directory, Root)> {
        let mut directory = writer.directory.clone();
        directory.next_page = self.space.lock().ids.next;
        directory.next_space = version.catalog.next_space;
        let chunks = directory.next_page.div_ceil(u64::from(CHUNK)) as usize;
        directory.chunks.resize(chunks, None);
        for &chunk in &writer.chunks {
            let new = self.encode_chunk(writer, chunk);
            let new = new.map(|bytes| self.write_blob(Region::MapChunk(chunk), &bytes, exchange));
            let slot = &mut directory.chunks[chunk as usize];
            exchange
                .old
                .extend(std::mem::replace(slot, new.transpose()?));
        }
        for &number in &writer.spaces {
            if let Ok(at) = directory
                .spaces
                .binary_search_by_key(&number, |(number, _)| *number)
            {
                exchange.old.push(directory.spaces.remove(at).1);
            }
            if let Some(space) = version.catalog.spaces.get(&number) {
                let blob =
                    self.write_blob(Region::Space(number), &encode_space(space), exchange)?;
                let at = directory
                    .spaces
                    .partition_point(|(other, _)| *other < number);
                directory.spaces.insert(at, (number, blob));
            }
        }
        let blob = self.write_blob(Region::Directory, &directory.encode(), exchange)?;
        exchange
            .old
            .extend(Some(writer.root.directory).filter(|old| old.stored > 0));
        let root = Root {
            sequence: writer.root.sequence + 1,
            version: version.number,
            file_bytes: self.space.lock().extents.used_end(),
            log_counter: writer.log.header().counter,
            directory: blob,
        };
        Ok((directory, root))
    }

    /// A chunk as the file holds it, without pending pages; `None` if there is no other.
    fn encode_chunk(&self, writer: &Writer, chunk: u32) -> Option<Vec<u8>> {
        let mut bytes = vec![0; CHUNK as usize * ENTRY_BYTES];
        let mut any = false;
        for (page, entry) in self.pages().map.chunk(chunk) {
            if !writer.pending.contains(page) {
                any = true;
                let at = (page % CHUNK) as usize * ENTRY_BYTES;
                entry.write(&mut bytes[at..at + ENTRY_BYTES]);
            }
        }
        any.then_some(bytes)
    }

    fn write_blob(&self, region: Region, raw: &[u8], exchange: &mut Exchange) -> Result<Blob> {
        let (tag, number) = tag_of(region);
        let (codec, stored) = codec::compress(raw);
        let length = stored.len() as u64;
        let offset = self.allocate_extent(&mut self.space.lock(), aligned(length))?;
        let sum = checksum(tag, number, &stored);
        let blob = Blob {
            offset,
            stored: length,
            raw: raw.len() as u64,
            sum,
            codec,
        };
        exchange.new.push(blob);
        self.write_data(offset, &stored)?;
        Ok(blob)
    }

    fn give_back_blobs(&self, blobs: &[Blob]) {
        let extents: Vec<_> = blobs
            .iter()
            .map(|blob| (blob.offset, aligned(blob.stored)))
            .collect();
        self.give_back(&[], &extents);
    }
}
