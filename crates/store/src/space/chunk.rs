//! Reading a chunk of the page map from the data file, and checking it before anything believes it.

use std::path::Path;
use std::sync::Arc;

use buffer::PageId;
use io::Device;
use parking_lot::RwLock;

use crate::error::{Error, Region, Result};
use crate::format::bytes::Reader;
use crate::format::codec::is_possible;
use crate::format::disk::{Limits, read_blob, unpack};
use crate::format::structures::{Blob, CHUNK, CHUNK_BYTES, Entry};

/// What a chunk is held against: the structures that the newest root leads to.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// The next page id that no page of a root has: all are below.
    pub(crate) next_page: u64,
    /// Offset and length of each structure, in the order of the offsets.
    pub(crate) structures: Vec<(u64, u64)>,
}

/// Reads chunks.
#[derive(Debug)]
pub(crate) struct Chunks {
    device: Arc<dyn Device>,
    page_size: u32,
    surroundings: RwLock<Arc<Surroundings>>,
}

impl Chunks {
    pub(crate) fn new(device: Arc<dyn Device>, page_size: u32) -> Chunks {
        Chunks {
            device,
            page_size,
            surroundings: RwLock::default(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        self.device.path()
    }

    pub(crate) fn page_size(&self) -> u32 {
        self.page_size
    }

    pub(crate) fn surroundings(&self) -> Arc<Surroundings> {
        self.surroundings.read().clone()
    }

    /// A new root is durable.
    pub(crate) fn surround(&self, surroundings: Surroundings) {
        *self.surroundings.write() = Arc::new(surroundings);
    }

    /// Fails if a chunk can not be what lies at `blob`, whatever that is.
    pub(crate) fn is_possible(&self, chunk: u32, blob: &Blob) -> Result<()> {
        let long = CHUNK_BYTES as u64;
        if blob.raw == long && is_possible(blob.codec, blob.stored, blob.raw) {
            return Ok(());
        }
        Err(self.damaged(chunk, blob, "impossible length".to_string()))
    }

    /// Reads the entries of a chunk. Blocks the thread.
    ///
    /// # Errors
    /// [`Error::Damaged`] names the chunk and its offset; [`Error::Truncated`]; [`Error::Io`].
    pub(crate) fn read(&self, chunk: u32, blob: &Blob) -> Result<Vec<(PageId, Entry)>> {
        self.is_possible(chunk, blob)?;
        let limits = Limits {
            file_bytes: self.device.len()?,
            memory: CHUNK_BYTES as u64,
        };
        let bytes = read_blob(&*self.device, Region::MapChunk(chunk), blob, &limits)?;
        self.entries(chunk, blob, &bytes)
    }

    /// The entries of a chunk whose stored bytes were read by somebody else.
    pub(crate) fn unpack(
        &self,
        chunk: u32,
        blob: &Blob,
        stored: &[u8],
    ) -> Result<Vec<(PageId, Entry)>> {
        self.is_possible(chunk, blob)?;
        let bytes = unpack(
            &*self.device,
            Region::MapChunk(chunk),
            blob,
            stored.to_vec(),
        )?;
        self.entries(chunk, blob, &bytes)
    }

    fn damaged(&self, chunk: u32, blob: &Blob, detail: String) -> Error {
        let region = Region::MapChunk(chunk);
        Error::damaged(self.device.path(), region, blob.offset, detail)
    }

    /// Decodes a chunk. Its checksum is right; what it says may be impossible all the same.
    fn entries(&self, chunk: u32, blob: &Blob, bytes: &[u8]) -> Result<Vec<(PageId, Entry)>> {
        let bad = |detail: String| self.damaged(chunk, blob, detail);
        let around = self.surroundings();
        let file_bytes = self.device.len()?;
        let mut reader = Reader::new(bytes);
        let mut entries = Vec::new();
        let first = chunk * CHUNK;
        for page in first..=first + (CHUNK - 1) {
            let entry = Entry::take(&mut reader, self.page_size);
            let Some(entry) = entry.map_err(|why| bad(why.to_string()))? else {
                continue;
            };
            if u64::from(page) >= around.next_page {
                return Err(bad(format!("page {page} is beyond the last one")));
            }
            if entry.offset.saturating_add(u64::from(entry.stored)) > file_bytes {
                return Err(bad(format!("page {page} is beyond the end of the file")));
            }
            entries.push((page, entry));
        }
        match overlap(&entries, &around.structures) {
            None => Ok(entries),
            Some((page, what)) => Err(bad(format!("page {page} overlaps {what}"))),
        }
    }
}

/// The first page whose place is not its own, and what else has it: another of `entries`, or a structure.
fn overlap(entries: &[(PageId, Entry)], structures: &[(u64, u64)]) -> Option<(PageId, String)> {
    let mut order: Vec<_> = entries
        .iter()
        .map(|(page, entry)| (entry.offset, entry.offset + entry.extent(), *page))
        .collect();
    order.sort_unstable();
    for pair in order.windows(2) {
        if pair[0].1 > pair[1].0 {
            return Some((pair[1].2, format!("page {}", pair[0].2)));
        }
    }
    order.into_iter().find_map(|(start, end, page)| {
        let before = structures.partition_point(|(offset, _)| *offset < end);
        let (offset, length) = *structures.get(before.checked_sub(1)?)?;
        let shared = offset + length > start;
        shared.then(|| (page, format!("the structure at offset {offset}")))
    })
}
