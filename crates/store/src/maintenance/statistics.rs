//! Figures about a store.

use std::sync::atomic::Ordering;

use crate::error::Error;
use crate::format::kind::{Codec, Kind};
use crate::format::structures::FIRST_EXTENT;
use crate::space::map::PageMap;
use crate::store::handle::Store;

/// The number of pages of one sort, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Share {
    /// Pages.
    pub pages: u64,
    /// Their bytes as the readers see them.
    pub raw_bytes: u64,
    /// Their bytes in the file.
    pub stored_bytes: u64,
}

impl Share {
    pub(crate) fn add(&mut self, raw: u64, stored: u64) {
        self.pages += 1;
        self.raw_bytes += raw;
        self.stored_bytes += stored;
    }
}

/// What became of dirty pages.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrittenBack {
    /// Pages written to their places.
    pub pages: u64,
    /// Writes that it took; neighbours are written at once.
    pub writes: u64,
    /// Pages that were freed before, and never written.
    pub spared: u64,
}

/// The figures of [`Store::statistics`](crate::Store::statistics).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Bytes of a page.
    pub page_size: u32,
    /// The version that the last commit made.
    pub version: u64,
    /// Length of the data file.
    pub file_bytes: u64,
    /// Bytes of the data file that hold something, headers included.
    pub used_bytes: u64,
    /// Bytes of the data file that new pages may take.
    pub free_bytes: u64,
    /// Bytes of freed pages that an older snapshot or a pin still keeps.
    pub pending_bytes: u64,
    /// Bytes of the log that a recovery would read.
    pub log_bytes: u64,
    /// All live pages.
    pub pages: Share,
    /// Live pages that are stored as they are.
    pub raw: Share,
    /// Live pages that are stored compressed with zstd.
    pub zstd: Share,
    /// Live pages of each [`Kind`](crate::Kind), in its order.
    pub kinds: [Share; Kind::COUNT],
    /// Keys in the catalog.
    pub catalog_keys: u64,
    /// Spaces in the catalog.
    pub catalog_spaces: u64,
    /// Commits since the store was opened.
    pub commits: u64,
    /// Syncs of data file and log since the store was opened, those of checkpoints included.
    pub syncs: u64,
    /// Bytes written to data file and log since the store was opened, headers of the log apart.
    pub written_bytes: u64,
    /// Pages of small commits that are in memory and in the log, and not yet in their places.
    pub dirty_pages: u64,
    /// Their bytes.
    pub dirty_bytes: u64,
    /// What became of dirty pages since the store was opened.
    pub written_back: WrittenBack,
    /// Bytes of memory that the page map takes.
    pub map_bytes: u64,
    /// Why some of the page map could not be read, if so: the figures of pages lack what it has, and what is free is
    /// not known.
    pub map_failure: Option<String>,
    /// Checkpoints done since the store was opened.
    pub checkpoints: u64,
    /// Why a checkpoint that was due could not be done, if so.
    pub checkpoint_failure: Option<String>,
    /// The failure after which nothing is committed any more, if there was one.
    pub latched: Option<String>,
}

impl Store {
    /// Figures about the store. Looks at every page's entry, and reads the page map for that.
    pub fn statistics(&self) -> Statistics {
        let writer = self.writer.lock();
        let version = self.current();
        let mut map_failure = None;
        let (end, free) = match self.space() {
            Ok(space) => (space.extents.end(), space.free_bytes()),
            Err(error) => {
                map_failure = Some(error.to_string());
                (self.data().len().unwrap_or(FIRST_EXTENT), 0)
            }
        };
        let traffic = writer.log.traffic();
        let dirty = self.pages.images.traffic();
        let mut statistics = Statistics {
            page_size: self.identity.page_size,
            version: version.number,
            file_bytes: self.data().len().unwrap_or(end),
            used_bytes: end - free,
            free_bytes: free,
            log_bytes: writer.log.bytes(),
            catalog_keys: version.catalog.keys(),
            catalog_spaces: version.catalog.spaces.len() as u64,
            commits: self.commits.load(Ordering::Relaxed),
            syncs: self.data_syncs.load(Ordering::Relaxed)
                + self.group.syncs.load(Ordering::Relaxed)
                + traffic.syncs,
            written_bytes: self.data_bytes.load(Ordering::Relaxed) + traffic.written_bytes,
            dirty_pages: dirty.pages,
            dirty_bytes: dirty.bytes,
            written_back: WrittenBack {
                pages: dirty.written,
                writes: dirty.writes,
                spared: dirty.spared,
            },
            map_bytes: self.pages.map.bytes(),
            checkpoints: self.checkpoints.load(Ordering::Relaxed),
            checkpoint_failure: writer.checkpoint_failure.as_ref().map(Error::to_string),
            latched: self.latch.get().map(|cause| cause.to_string()),
            pending_bytes: writer.pending.bytes(),
            ..Statistics::default()
        };
        let next = self.free.lock().next_page();
        let chunks = PageMap::chunks_below(next).map(|chunk| self.pages.map.chunk(chunk));
        for (page, entry) in chunks.flat_map(|entries| match entries {
            Ok(entries) => entries,
            Err(error) => {
                map_failure.get_or_insert_with(|| error.to_string());
                Vec::new()
            }
        }) {
            let (raw, stored) = (u64::from(entry.raw), u64::from(entry.stored));
            if writer.pending.contains(page) {
                continue;
            }
            statistics.pages.add(raw, stored);
            match entry.codec {
                Codec::Raw => statistics.raw.add(raw, stored),
                Codec::Zstd => statistics.zstd.add(raw, stored),
            }
            statistics.kinds[entry.kind as usize].add(raw, stored);
        }
        statistics.map_failure = map_failure;
        statistics.used_bytes -= statistics.pending_bytes;
        debug_assert!(statistics.used_bytes >= FIRST_EXTENT);
        statistics
    }
}
