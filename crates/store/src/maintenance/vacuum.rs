//! Vacuum: moves pages from the end of the data file into free space before them, and cuts the file.

use std::sync::Arc;

use buffer::PageId;

use crate::error::{Error, Result};
use crate::format::bytes::{Tag, checksum};
use crate::format::structures::Entry;
use crate::space::map::PageMap;
use crate::state::writer::Writer;
use crate::store::gate::Gate;
use crate::store::handle::Store;

/// Bytes that are moved before other writers have their turn.
const STEP: u64 = 4 << 20;

/// Pages that are looked through for the last ones at once.
const MANY: usize = 1 << 16;

/// Leaves the pages from the end of the file on, the last first: of `STEP` bytes, but one at least.
fn keep_last(pages: &mut Vec<(PageId, Entry)>) {
    pages.sort_unstable_by_key(|(_, entry)| std::cmp::Reverse(entry.offset));
    let mut bytes = 0;
    let few = pages.iter().take_while(|(_, entry)| {
        bytes += entry.extent();
        bytes <= STEP
    });
    let few = few.count().max(1).min(pages.len());
    pages.truncate(few);
}

/// What [`Store::vacuum`] has done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Vacuum {
    /// Pages that were moved.
    pub moved_pages: u64,
    /// Length of the data file before, in bytes.
    pub before_bytes: u64,
    /// Length of the data file after, in bytes.
    pub after_bytes: u64,
}

impl Store {
    /// Makes the data file as short as its pages and structures are, give or take the gaps that
    /// none of them fits. Readers go on meanwhile, with the snapshots they have; writers wait for a
    /// few milliseconds at a time. What older snapshots keep stays where it is, and where another
    /// process reads, the file is not cut before it has ended.
    ///
    /// A crash in the midst of it loses nothing: each step is a commit.
    ///
    /// # Errors
    /// As [`checkpoint`](Store::checkpoint), and [`Error::Mapped`] where this handle has the file
    /// mapped: its pages stay where they are.
    pub fn vacuum(self: &Arc<Self>) -> Result<Vacuum> {
        if self.pages().mapping.is_some() {
            return Err(Error::Mapped {
                path: self.path().to_path_buf(),
            });
        }
        let mut vacuum = Vacuum {
            before_bytes: self.data().len()?,
            ..Vacuum::default()
        };
        // A checkpoint beside it would write down where pages were before they are moved.
        let turn = self.checkpointing.lock();
        self.checkpoint_in(&turn)?;
        loop {
            let gate = self.enter()?;
            let moved = self.move_some(&gate)?;
            vacuum.moved_pages += moved;
            if moved == 0 {
                self.fold(&gate)?;
                break;
            }
        }
        vacuum.after_bytes = self.data().len()?;
        Ok(vacuum)
    }

    /// Moves the last pages of the file; returns how many.
    fn move_some(&self, gate: &Gate) -> Result<u64> {
        let mut writer = self.writer.lock();
        self.reclaim(&mut writer);
        let mut moves = Vec::new();
        let mut bytes = 0;
        let mut buffer = Vec::new();
        let copied = self
            .last_pages(&writer)?
            .into_iter()
            .try_for_each(|(page, from)| {
                if bytes < STEP
                    && let Some(to) = self.copy(page, &from, &mut buffer)?
                {
                    bytes += from.extent();
                    moves.push((page, from, to));
                }
                Ok(())
            });
        let moved = copied.and_then(|()| self.commit_moves(&mut writer, &moves, gate));
        if moved.is_err() && self.latch.get().is_none() {
            let extents: Vec<_> = moves
                .iter()
                .map(|(_, from, to)| (to.offset, from.extent()))
                .collect();
            self.give_back(&[], &extents);
        }
        moved.map(|()| moves.len() as u64)
    }

    /// The pages from the end of the file on, as many as free space before them may take.
    fn last_pages(&self, writer: &Writer) -> Result<Vec<(PageId, Entry)>> {
        let (next, lowest) = {
            let mut space = self.space()?;
            (space.ids.next, space.extents.lowest())
        };
        let Some(lowest) = lowest else {
            return Ok(Vec::new());
        };
        let mut pages = Vec::new();
        for chunk in PageMap::chunks_below(next) {
            let behind = self.pages().map.chunk(chunk)?.into_iter();
            pages.extend(
                behind.filter(|(page, entry)| {
                    entry.offset > lowest && !writer.pending.contains(*page)
                }),
            );
            if pages.len() > MANY {
                keep_last(&mut pages);
            }
        }
        keep_last(&mut pages);
        Ok(pages)
    }

    /// Copies a page to free space before it; `None` if there is none, or the page is damaged: then
    /// it stays as it is, for `check` to find.
    fn copy(&self, page: PageId, from: &Entry, buffer: &mut Vec<u8>) -> Result<Option<Entry>> {
        if self.pages().images.get(page).is_some() {
            return Ok(None);
        }
        let place = {
            let mut space = self.space()?;
            space.extents.take_before(from.extent(), from.offset)
        };
        let Some(offset) = place else {
            return Ok(None);
        };
        buffer.resize(from.stored as usize, 0);
        let read = self.data().read_at(from.offset, buffer);
        let whole = read.is_ok() && checksum(Tag::Page, page, buffer) == from.sum;
        let written = if whole {
            self.write_data(offset, buffer).map(|()| true)
        } else {
            Ok(false)
        };
        match written {
            Ok(true) => Ok(Some(Entry { offset, ..*from })),
            other => {
                self.give_back(&[], &[(offset, from.extent())]);
                other.map(|_| None)
            }
        }
    }

    /// Writes the structures anew that stand behind free space, and cuts the file.
    fn fold(&self, gate: &Gate) -> Result<()> {
        let mut writer = self.writer.lock();
        self.reclaim(&mut writer);
        let _roots = self.hold.change_roots(self.path())?;
        self.space()?.extents.prefer_lowest(true);
        let folded = self.fold_lowest(&mut writer, gate);
        self.space()?.extents.prefer_lowest(false);
        folded
    }

    fn fold_lowest(&self, writer: &mut Writer, gate: &Gate) -> Result<()> {
        self.write_checkpoint(writer, gate)?;
        // Once from behind into what is free, and once more into what that has freed.
        for _ in 0..2 {
            let Some(lowest) = self.space()?.extents.lowest() else {
                break;
            };
            let behind = |blob: &crate::format::structures::Blob| {
                blob.stored > 0 && blob.offset + blob.stored > lowest
            };
            let chunks = (0..).zip(&writer.directory.chunks);
            let chunks = chunks.filter(|(_, blob)| blob.as_ref().is_some_and(behind));
            let spaces = writer.directory.spaces.iter();
            let spaces = spaces.filter(|(_, blob)| behind(blob));
            let chunks: Vec<u32> = chunks.map(|(chunk, _)| chunk).collect();
            let spaces: Vec<u32> = spaces.map(|(space, _)| *space).collect();
            writer.chunks.extend(chunks);
            writer.spaces.extend(spaces);
            self.rewrite_structures(writer, gate)?;
        }
        self.write_closing_root(writer, gate)
    }
}
