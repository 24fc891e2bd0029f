//! Reading and verifying everything.

use std::fmt;
use std::sync::Arc;

use crate::catalog::spaces::decode_space;
use crate::error::{Error, Region, Result};
use crate::format::bytes::Reader;
use crate::format::disk::{Limits, read, read_blob};
use crate::format::structures::{Directory, Entry, FIRST_EXTENT};
use crate::options::Access;
use crate::recovery::roots;
use crate::space::map::PageMap;
use crate::state::writer::Writer;
use crate::store::handle::Store;
use crate::transaction::snapshot::Snapshot;

/// Something that [`Store::check`] found.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Problem {
    /// A region does not verify, or could not be read.
    Damaged(Error),
    /// Two regions of the data file overlap.
    Overlap {
        /// The one that starts first.
        first: Region,
        /// The other.
        second: Region,
        /// Where the other starts.
        offset: u64,
    },
    /// A page of a page store is damaged, or its allocation bit is wrong.
    Page {
        /// The number of the page.
        page: u32,
        /// What is wrong.
        detail: String,
    },
    /// Bytes of the data file are neither used nor known as free.
    Leaked {
        /// How many.
        bytes: u64,
    },
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Damaged(error) => error.fmt(f),
            Problem::Overlap {
                first,
                second,
                offset,
            } => {
                write!(f, "{first} and {second} overlap at offset {offset}")
            }
            Problem::Page { page, detail } => write!(f, "page {page}: {detail}"),
            Problem::Leaked { bytes } => {
                write!(
                    f,
                    "{bytes} bytes are neither used nor free; they are found again when the store is opened next"
                )
            }
        }
    }
}

/// The pages to verify, collected while no transaction is under way.
struct Plan {
    /// Keeps the pages where they are.
    _snapshot: Snapshot,
    pages: Vec<(buffer::PageId, Entry)>,
}

impl Store {
    /// Reads and verifies the headers, the structures of the last checkpoint, and every page of
    /// the last version. `progress` is told pages done and pages in all. Waits for the
    /// transaction under way; others may begin as soon as only pages are left to verify.
    ///
    /// # Errors
    /// [`Error::Latched`]; [`Error::Changed`] where another process has committed since this one
    /// opened the store. What is wrong with the files is in the list.
    pub fn check(self: &Arc<Self>, progress: &dyn Fn(u64, u64)) -> Result<Vec<Problem>> {
        let mut problems = Vec::new();
        let plan = {
            // What a checkpoint is writing is of no root yet.
            let _turn = self.checkpointing.lock();
            // A reader has no writer of its own to wait for, and must hold off that of others.
            let _gate = match self.hold.access() {
                Access::Write => Some(self.enter()?),
                Access::Read | Access::OnDemand => None,
            };
            let _roots = self.hold.keep_roots()?;
            if !self.hold.is_writing() && !self.is_unchanged()? {
                return Err(Error::Changed {
                    path: self.path().to_path_buf(),
                });
            }
            let mut writer = self.writer.lock();
            if self.hold.is_writing() {
                writer.log.flush()?;
            }
            self.check_headers(&writer, &mut problems);
            self.check_structures(&writer, &mut problems);
            self.check_extents(&writer, &mut problems)
        };
        let total = plan.pages.len() as u64;
        let mut frame = vec![0; self.page_size()];
        let mut stored = Vec::new();
        for (done, (page, entry)) in (0..).zip(&plan.pages) {
            progress(done, total);
            let mut verified = self.verify(*page, entry, &mut stored, &mut frame);
            // It may have been moved meanwhile.
            if verified.is_err()
                && let Ok(Some(now)) = self.pages().map.get(*page)
                && now != *entry
            {
                verified = self.verify(*page, &now, &mut stored, &mut frame);
            }
            problems.extend(verified.err().map(Problem::Damaged));
        }
        progress(total, total);
        Ok(problems)
    }

    fn verify(
        &self,
        page: buffer::PageId,
        entry: &Entry,
        stored: &mut Vec<u8>,
        frame: &mut [u8],
    ) -> Result<()> {
        stored.resize(entry.stored as usize, 0);
        match self.pages().images.get(page) {
            Some(image) => stored.copy_from_slice(&image),
            None => read(&**self.data(), entry.offset, stored)?,
        }
        self.pages().decode(page, entry, stored, frame).map(drop)
    }

    fn check_headers(&self, writer: &Writer, problems: &mut Vec<Problem>) {
        let mut note = |error| problems.push(Problem::Damaged(error));
        let data = &**self.data();
        match roots::identity(data) {
            Ok(identity) if identity == self.identity => {}
            Ok(_) => note(Error::damaged(
                data.path(),
                Region::Identity,
                0,
                "it has changed",
            )),
            Err(error) => note(error),
        }
        for slot in [0, 1] {
            match roots::root(data, slot, &self.identity.id) {
                Ok(Ok(_)) => {}
                Ok(Err(bad)) => {
                    let offset = crate::format::structures::ROOT_OFFSETS[usize::from(slot)];
                    note(Error::damaged(
                        data.path(),
                        Region::Root(slot),
                        offset,
                        bad.to_string(),
                    ));
                }
                Err(error) => note(error),
            }
        }
        let version = writer.head.number;
        for error in writer.log.check(writer.root.version, version) {
            note(error);
        }
    }

    fn check_structures(&self, writer: &Writer, problems: &mut Vec<Problem>) {
        let limits = Limits {
            file_bytes: self.data().len().unwrap_or(u64::MAX),
            memory: memory::available().unwrap_or(u64::MAX),
        };
        let directory = &writer.directory;
        let mut blob = |region, blob, makes_sense: &dyn Fn(&[u8]) -> bool| match read_blob(
            &**self.data(),
            region,
            blob,
            &limits,
        ) {
            Ok(bytes) if makes_sense(&bytes) => {}
            Ok(_) => problems.push(Problem::Damaged(Error::damaged(
                self.path(),
                region,
                blob.offset,
                "its fields make no sense",
            ))),
            Err(error) => problems.push(Problem::Damaged(error)),
        };
        blob(Region::Directory, &writer.root.directory, &|bytes| {
            Directory::decode(bytes).is_some_and(|read| read == *directory)
        });
        for (chunk, place) in (0..).zip(&directory.chunks) {
            let Some(place) = place else { continue };
            blob(Region::MapChunk(chunk), place, &|bytes| {
                let mut reader = Reader::new(bytes);
                while !reader.is_empty() {
                    if Entry::take(&mut reader, self.identity.page_size).is_err() {
                        return false;
                    }
                }
                true
            });
        }
        for (space, place) in &directory.spaces {
            blob(Region::Space(*space), place, &|bytes| {
                decode_space(bytes).is_some()
            });
        }
    }

    /// Looks for overlaps and leaks; returns the pages to verify.
    fn check_extents(self: &Arc<Self>, writer: &Writer, problems: &mut Vec<Problem>) -> Plan {
        let snapshot = Snapshot::new(self.clone(), writer.head.clone());
        // Where it cannot be known, pages overlap or chunks are damaged, which is found below.
        let space = self.space().ok();
        let space = space.map(|space| (space.extents.end(), space.free_bytes()));
        let unit = self.alignment();
        let limbo = writer.limbo.iter().map(|blob| (Region::Directory, blob));
        let own = (Region::Directory, &writer.root.directory);
        let blobs = writer.directory.blobs().chain(limbo).chain([own]);
        let mut used: Vec<_> = blobs
            .map(|(region, blob)| (blob.offset, blob.stored, region))
            .collect();
        let mut pages = Vec::new();
        let next = self.free.lock().next_page();
        for chunk in PageMap::chunks_below(next) {
            match self.pages().map.chunk(chunk) {
                Ok(entries) => pages.extend(
                    entries
                        .into_iter()
                        .filter(|(page, _)| !writer.pending.contains(*page)),
                ),
                Err(error) => note_once(problems, error),
            }
        }
        let all = pages.iter().copied().chain(writer.pending.iter());
        used.extend(
            all.map(|(page, entry)| (entry.offset, u64::from(entry.stored), Region::Page(page))),
        );
        used.sort_unstable_by_key(|&(offset, length, _)| (offset, length));
        for pair in used.windows(2) {
            let [(start, length, first), (offset, _, second)] = [pair[0], pair[1]];
            if start + length > offset {
                problems.push(Problem::Overlap {
                    first,
                    second,
                    offset,
                });
            }
        }
        let whole = |(_, length, _): &(u64, u64, Region)| length.next_multiple_of(unit);
        let taken: u64 = used.iter().map(whole).sum();
        if let Some((end, free)) = space {
            let leaked = (end - FIRST_EXTENT).saturating_sub(taken + free);
            if leaked > 0 {
                problems.push(Problem::Leaked { bytes: leaked });
            }
        }
        pages.sort_unstable_by_key(|(_, entry)| entry.offset);
        Plan {
            _snapshot: snapshot,
            pages,
        }
    }
}

/// Adds what is wrong with a region, unless something is known to be.
fn note_once(problems: &mut Vec<Problem>, error: Error) {
    let damaged = |error: &Error| match error {
        Error::Damaged { region, .. } => Some(*region),
        _ => None,
    };
    let known = problems.iter().any(|problem| match problem {
        Problem::Damaged(other) => damaged(other).is_some() && damaged(other) == damaged(&error),
        _ => false,
    });
    if !known {
        problems.push(Problem::Damaged(error));
    }
}
