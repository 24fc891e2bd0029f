//! Finding the free space of the data file: what neither the page map nor a structure uses.
//!
//! It is done when something is written for the first time since the store was opened, in one pass over the map
//! that keeps no chunk in memory.

use std::sync::atomic::Ordering;

use buffer::PageId;
use memory::Account;
use parking_lot::{MappedMutexGuard, MutexGuard};

use crate::error::{Error, Region, Result};
use crate::format::structures::{ALIGNMENT, Entry};
use crate::space::extents::{Extents, FreeIds};
use crate::space::map::PageMap;
use crate::state::free::{Free, Space};
use crate::store::handle::Store;

/// Memory of runs is taken from the budget in steps of this many of them.
const STEP: usize = 1 << 15;

/// A part of the file whose pages lie one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Run {
    start: u64,
    end: u64,
    /// The chunk that its pages are of; `None` is a structure.
    chunk: Option<u32>,
}

/// The used parts of the file: at most one for each page, and one for all pages of a chunk that was written at once.
struct Runs {
    all: Vec<Run>,
    /// Their memory.
    account: Account,
}

impl Store {
    /// What is free in the file. Finds it out, the first time: then all of the map is read.
    ///
    /// # Errors
    /// Those of reading any chunk of the map, [`Error::Damaged`] where pages overlap, [`Error::Memory`].
    pub(crate) fn space(&self) -> Result<MappedMutexGuard<'_, Space>> {
        let mut free = self.free.lock();
        if free.known().is_none() {
            let space = self.survey(free.next_page(), self.alignment())?;
            self.alignment
                .store(space.extents.unit(), Ordering::Relaxed);
            free.know(space);
        }
        Ok(MutexGuard::map(free, Free::space))
    }

    /// The space that nothing uses, in units of `unit`, or smaller ones if something lies elsewhere.
    fn survey(&self, next_page: u64, unit: u64) -> Result<Space> {
        let map = &self.pages.map;
        let mut runs = Runs {
            all: Vec::new(),
            account: Account::new(map.budget().clone()),
        };
        let mut ids = FreeIds::default();
        // All bits that any offset has.
        let mut offsets = 0;
        for chunk in PageMap::chunks_below(next_page) {
            let mut entries = map.chunk(chunk)?;
            for (page, entry) in &entries {
                ids.pass(u64::from(*page));
                offsets |= entry.offset;
            }
            entries.sort_unstable_by_key(|(_, entry)| entry.offset);
            self.reserve_runs(&mut runs, entries.len())?;
            runs.add(chunk, &entries, unit);
        }
        let structures = map.surroundings();
        self.reserve_runs(&mut runs, structures.structures.len())?;
        for &(start, length) in &structures.structures {
            offsets |= start;
            runs.all.push(Run {
                start,
                end: start + length,
                chunk: None,
            });
        }
        if !offsets.is_multiple_of(unit) {
            return self.survey(next_page, ALIGNMENT);
        }
        runs.all.sort_unstable();
        let spans = runs.all.iter().map(|run| (run.start, run.end - run.start));
        let extents = Extents::complement(spans, unit)
            .map_err(|position| self.overlap(&runs.all[..=position]))?;
        Ok(Space {
            extents,
            ids: ids.below(next_page),
            aside: Vec::new(),
        })
    }

    /// Sees to it that there is memory for `more` runs.
    fn reserve_runs(&self, runs: &mut Runs, more: usize) -> Result<()> {
        while (runs.all.len() + more) * size_of::<Run>() > runs.account.bytes() as usize {
            let bytes = (STEP * size_of::<Run>()) as u64;
            let budget = runs.account.budget();
            runs.account.take(bytes).map_err(|_| Error::Memory {
                path: self.path().to_path_buf(),
                what: "finding free space".to_string(),
                wanted: bytes,
                left: budget.limit() - budget.used(),
            })?;
            runs.all.reserve_exact(STEP);
        }
        Ok(())
    }

    /// The last of these begins before the one before it ends.
    fn overlap(&self, runs: &[Run]) -> Error {
        let name = |run: &Run| match run.chunk {
            Some(chunk) => Region::MapChunk(chunk),
            None => Region::Directory,
        };
        let (offset, region, other) = match runs {
            [.., before, run] => (run.start, name(run), name(before)),
            [run] => (run.start, name(run), Region::Identity),
            [] => (0, Region::Identity, Region::Identity),
        };
        let detail = match other {
            Region::Directory => "a page of it overlaps a structure".to_string(),
            other => format!("a page of it overlaps one of {other}"),
        };
        Error::damaged(self.path(), region, offset, detail)
    }
}

impl Runs {
    /// Adds the pages of a chunk, in the order of their offsets. Those that overlap stay apart, to be found.
    fn add(&mut self, chunk: u32, entries: &[(PageId, Entry)], unit: u64) {
        let first = self.all.len();
        for (_, entry) in entries {
            let end = (entry.offset + entry.extent()).next_multiple_of(unit);
            match self.all[first..].last_mut() {
                Some(run) if run.end == entry.offset => run.end = end,
                _ => self.all.push(Run {
                    start: entry.offset,
                    end,
                    chunk: Some(chunk),
                }),
            }
        }
    }
}
