//! The structures of a checkpoint: what changed of map and catalog, as one version has them, and
//! where they are written.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::catalog::spaces::encode_space;
use crate::error::{Region, Result};
use crate::format::bytes::checksum;
use crate::format::codec;
use crate::format::disk::tag_of;
use crate::format::structures::{Blob, CHUNK, Directory, ENTRY_BYTES, Root};
use crate::space::chunk::Surroundings;
use crate::state::version::Version;
use crate::state::writer::Writer;
use crate::store::handle::Store;
use crate::store::write_back::Dirty;

/// Structures being written, and those they replace.
#[derive(Debug, Default)]
pub(super) struct Exchange {
    pub(super) new: Vec<Blob>,
    pub(super) old: Vec<Blob>,
}

/// What a checkpoint writes: all that has changed since the last one, as `version` has it. Commits
/// may follow while it is written.
#[derive(Debug)]
pub(super) struct Frozen {
    /// Holding it keeps its pages where they are.
    pub(super) version: Arc<Version>,
    /// Those of the checkpoint before.
    root: Root,
    directory: Directory,
    log_counter: u64,
    /// Chunks of the map, encoded; `None` has no live page.
    chunks: Vec<(u32, Option<Vec<u8>>)>,
    spaces: BTreeSet<u32>,
    /// Pages whose bytes only the log has, and their places.
    pub(super) images: Vec<Dirty>,
}

impl Frozen {
    /// After a failure: the next checkpoint writes these again.
    pub(super) fn thaw(self, writer: &mut Writer) {
        writer
            .chunks
            .extend(self.chunks.iter().map(|(chunk, _)| chunk));
        writer.spaces.extend(self.spaces);
    }
}

impl Store {
    /// Takes from the writer what a checkpoint of its head writes. No transaction may be under way:
    /// then the map holds that version, and the pending pages.
    ///
    /// # Errors
    /// Those of reading a chunk of the map; the writer has all that it had.
    pub(super) fn freeze(&self, writer: &mut Writer) -> Result<Frozen> {
        let mut directory = writer.directory.clone();
        directory.next_page = self.space()?.ids.next;
        directory.next_space = writer.head.catalog.next_space;
        let chunks = writer.chunks.iter();
        let chunks = chunks.map(|&chunk| Ok((chunk, self.encode_chunk(writer, chunk)?)));
        let chunks = chunks.collect::<Result<_>>()?;
        writer.chunks.clear();
        Ok(Frozen {
            chunks,
            images: self.dirty(writer),
            version: writer.head.clone(),
            root: writer.root,
            directory,
            log_counter: writer.log.header().counter,
            spaces: std::mem::take(&mut writer.spaces),
        })
    }

    /// Writes the pages and structures to free space; a root that is written once they are durable
    /// leads to them.
    pub(super) fn write_frozen(
        &self,
        frozen: &Frozen,
        exchange: &mut Exchange,
    ) -> Result<(Directory, Root)> {
        self.write_dirty(&frozen.images)?;
        let mut directory = frozen.directory.clone();
        let chunks = directory.next_page.div_ceil(u64::from(CHUNK)) as usize;
        directory.chunks.resize(chunks, None);
        for (chunk, bytes) in &frozen.chunks {
            let new = bytes.as_ref();
            let new = new.map(|bytes| self.write_blob(Region::MapChunk(*chunk), bytes, exchange));
            let slot = &mut directory.chunks[*chunk as usize];
            exchange
                .old
                .extend(std::mem::replace(slot, new.transpose()?));
        }
        for &number in &frozen.spaces {
            let place = directory
                .spaces
                .binary_search_by_key(&number, |(number, _)| *number);
            if let Ok(at) = place {
                exchange.old.push(directory.spaces.remove(at).1);
            }
            if let Some(space) = frozen.version.catalog.spaces.get(&number) {
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
            .extend(Some(frozen.root.directory).filter(|old| old.stored > 0));
        let root = Root {
            sequence: frozen.root.sequence + 1,
            version: frozen.version.number,
            // Before the sync: a root never speaks of a longer file than a loss of power leaves.
            file_bytes: self.space()?.extents.used_end(),
            log_counter: frozen.log_counter,
            directory: blob,
            alignment: self.alignment() as u32,
        };
        Ok((directory, root))
    }

    /// A chunk as the file holds it, without pending pages; `None` if there is no other.
    fn encode_chunk(&self, writer: &Writer, chunk: u32) -> Result<Option<Vec<u8>>> {
        let mut bytes = vec![0; CHUNK as usize * ENTRY_BYTES];
        let mut any = false;
        for (page, entry) in self.pages().map.chunk(chunk)? {
            if !writer.pending.contains(page) {
                any = true;
                let at = (page % CHUNK) as usize * ENTRY_BYTES;
                entry.write(&mut bytes[at..at + ENTRY_BYTES]);
            }
        }
        Ok(any.then_some(bytes))
    }

    fn write_blob(&self, region: Region, raw: &[u8], exchange: &mut Exchange) -> Result<Blob> {
        let (tag, number) = tag_of(region);
        let (codec, stored) = codec::compress(raw);
        let length = stored.len() as u64;
        let offset = self.allocate_extent(&mut *self.space()?, length)?;
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

    /// A durable root leads to what was frozen: says so to the map, which may drop its chunks now.
    pub(super) fn install_map(&self, writer: &Writer, frozen: &Frozen) {
        let blob = |chunk: u32| {
            writer
                .directory
                .chunks
                .get(chunk as usize)
                .copied()
                .flatten()
        };
        let chunks = frozen
            .chunks
            .iter()
            .map(|(chunk, _)| (*chunk, blob(*chunk)));
        let surroundings = Surroundings {
            next_page: writer.directory.next_page,
            structures: writer.directory.spans(&writer.root),
        };
        let changed = |chunk: u32| writer.chunks.contains(&chunk);
        self.pages.map.install(chunks, changed, surroundings);
    }

    /// Structures that the root does not need any more. Other processes may look up pages in them that they have
    /// not looked up before.
    pub(super) fn give_back_replaced(&self, blobs: &[Blob]) {
        self.give_back_later(blobs.iter().map(|blob| (blob.offset, blob.stored)));
    }

    /// Structures that no root has led to.
    pub(super) fn give_back_blobs(&self, blobs: &[Blob]) {
        let extents: Vec<_> = blobs
            .iter()
            .map(|blob| (blob.offset, blob.stored))
            .collect();
        self.give_back(&[], &extents);
    }
}
