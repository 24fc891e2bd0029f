//! Writing dirty pages to their places: pages of small commits, whose bytes the log has.
//!
//! They lie in space that was free, so it does not matter whether a record or its page is on the disk
//! first; the log's record is what a recovery goes by until a checkpoint has synced the page.

use std::sync::Arc;

use buffer::PageId;

use crate::error::Result;
use crate::state::version::Version;
use crate::state::writer::Writer;
use crate::store::handle::Store;
use crate::store::running::Turn;

/// The most bytes that are written at once.
const CLUSTER: usize = 1 << 20;

/// A page that is to be written: its place, and its bytes.
pub(super) type Dirty = (PageId, u64, Arc<[u8]>);

impl Store {
    /// Writes back what commits have left, if that is much. Holding the newest version keeps the places
    /// of its pages theirs; those that it has no more need not be written.
    pub(super) fn write_back(&self, _turn: &Turn<'_>) -> Result<()> {
        if !self.pages.images.is_half_full() {
            return Ok(());
        }
        let (_held, dirty): (Arc<Version>, _) = {
            let writer = self.writer.lock();
            (writer.head.clone(), self.dirty(&writer))
        };
        self.write_dirty(&dirty)?;
        for (page, _, _) in &dirty {
            self.pages.images.forget(*page);
        }
        Ok(())
    }

    /// The dirty pages that the newest version has.
    pub(super) fn dirty(&self, writer: &Writer) -> Vec<Dirty> {
        let committed = self.pages.images.committed().into_iter();
        let live = committed.filter(|(page, _)| !writer.pending.contains(*page));
        // Of pages that the log has, the chunk was changed since the last checkpoint.
        live.filter_map(|(page, image)| {
            let entry = self.pages.map.resident(page);
            debug_assert!(entry.is_some(), "page {page} is in the log");
            Some((page, entry?.offset, image))
        })
        .collect()
    }

    /// Writes pages of a transaction under way, as far as they are dirty.
    pub(crate) fn write_open(&self, pages: &[PageId]) -> Result<()> {
        let images = &self.pages.images;
        let place = |&page: &PageId| {
            Some((
                page,
                self.pages.map.resident(page)?.offset,
                images.get(page)?,
            ))
        };
        let dirty: Vec<Dirty> = pages.iter().filter_map(place).collect();
        self.write_dirty(&dirty)?;
        for (page, _, _) in &dirty {
            images.forget(*page);
        }
        Ok(())
    }

    /// Writes pages to their places, neighbours at once.
    pub(crate) fn write_dirty(&self, dirty: &[Dirty]) -> Result<()> {
        if dirty.is_empty() {
            return Ok(());
        }
        // Finds out, the first time, what the places of pages are multiples of.
        drop(self.space()?);
        let mut order: Vec<_> = dirty.iter().map(|(_, at, bytes)| (*at, &**bytes)).collect();
        order.sort_unstable_by_key(|(offset, _)| *offset);
        let mut writes = 0;
        let mut cluster = Vec::new();
        let mut rest = &order[..];
        while let Some(&(start, _)) = rest.first() {
            cluster.clear();
            let joined = rest.iter().take_while(|(offset, bytes)| {
                let gap = offset - start - cluster.len() as u64;
                let fits = cluster.len() + bytes.len() <= CLUSTER || cluster.is_empty();
                // What lies between two pages is the end of the extent of the first.
                let next = gap < self.alignment() && fits;
                if next {
                    cluster.resize(cluster.len() + gap as usize, 0);
                    cluster.extend_from_slice(bytes);
                }
                next
            });
            let joined = joined.count();
            self.write_data(start, &cluster)?;
            writes += 1;
            rest = &rest[joined..];
        }
        self.pages.images.wrote(dirty.len() as u64, writes);
        Ok(())
    }
}
