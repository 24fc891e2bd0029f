//! Finding the last committed state of a store.

use std::collections::BTreeSet;
use std::sync::Arc;

use io::Device;
use memory::Budget;

use crate::bytes::Reader;
use crate::catalog::{Catalog, decode_space};
use crate::changes::Changes;
use crate::creation::unfinished;
use crate::disk::{Limits, read, read_blob, read_block};
use crate::error::{Error, Region, Result};
use crate::extents::{Extents, Ids};
use crate::format::{
    ALIGNMENT, BLOCK, Bad, Blob, CHUNK, CHUNK_BYTES, Directory, Entry, FIRST_EXTENT,
    FORMAT_VERSION, Identity, MAGIC, ROOT_OFFSETS, Root, aligned,
};
use crate::log::Log;
use crate::map::PageMap;
use crate::options::Options;
use crate::pending::Pending;
use crate::report::Recovery;
use crate::source::Pages;
use crate::store::{Space, Writer};

/// The identity of a data file.
pub(crate) fn identity(data: &dyn Device) -> Result<Identity> {
    let path = data.path().to_path_buf();
    let length = data.len()?;
    let mut head = vec![0; MAGIC.len().min(usize::try_from(length).unwrap_or(BLOCK))];
    read(data, 0, &mut head)?;
    if length < FIRST_EXTENT {
        if head.is_empty() || (length < BLOCK as u64 && !MAGIC.starts_with(&head)) {
            return Err(Error::NotAtoll { path });
        }
        if MAGIC.starts_with(&head) {
            return Err(Error::Truncated {
                path,
                needed: FIRST_EXTENT,
                found: length,
            });
        }
    }
    read_block(data, 0, &Identity::decode)?.map_err(|bad| match bad {
        Bad::Magic => Error::NotAtoll { path },
        Bad::Newer(found) => Error::NewerFormat {
            path,
            found,
            supported: FORMAT_VERSION,
        },
        bad => Error::damaged(data.path(), Region::Identity, 0, bad.to_string()),
    })
}

/// Reads one root slot.
pub(crate) fn root(
    data: &dyn Device,
    slot: u8,
    id: &[u8; 16],
) -> Result<std::result::Result<Root, Bad>> {
    let offset = ROOT_OFFSETS[usize::from(slot)];
    read_block(data, offset, &|block| Root::decode(block, slot, id))
}

/// The sequence of the newest valid root, if there is one.
pub(crate) fn newest_sequence(data: &dyn Device, id: &[u8; 16]) -> Result<Option<u64>> {
    let (first, second) = (root(data, 0, id)?, root(data, 1, id)?);
    let valid = [first, second].into_iter().flatten();
    Ok(valid.map(|root| root.sequence).max())
}

/// What an opened store starts with.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) identity: Identity,
    pub(crate) pages: Pages,
    pub(crate) catalog: Catalog,
    pub(crate) version: u64,
    pub(crate) space: Space,
    pub(crate) writer: Writer,
    pub(crate) recovery: Recovery,
    /// Whether one root slot is invalid.
    pub(crate) sole_root: bool,
}

/// Finds the last committed state; writes nothing.
pub(crate) fn recover(
    data: Arc<dyn Device>,
    log: Arc<dyn Device>,
    options: &Options,
) -> Result<Recovered> {
    let identity = match identity(&*data) {
        Err(_) if unfinished(&*data, Some(&*log))? => {
            let path = data.path().to_path_buf();
            return Err(Error::Unfinished { path });
        }
        identity => identity?,
    };
    let roots = [
        root(&*data, 0, &identity.id)?,
        root(&*data, 1, &identity.id)?,
    ];
    let found = Log::open(log, identity.id)?;
    let (root, sole_root) = choose(&*data, &roots, &found)?;
    let file_bytes = data.len()?;
    // A root that is not the last may speak of a longer file; each structure and page is held
    // against the length in any case.
    if !sole_root && root.file_bytes > file_bytes {
        let path = data.path().to_path_buf();
        return Err(Error::Truncated {
            path,
            needed: root.file_bytes,
            found: file_bytes,
        });
    }
    let queue = io::Queue::new(options.pool.io_threads)?;
    let budget = options.pool.budget.clone();
    // Where the limit cannot be found out, there is none.
    let budget = budget.unwrap_or_else(|| Budget::new(memory::available().unwrap_or(u64::MAX)));
    let pages = Pages {
        map: PageMap::new(identity.page_size, budget.clone()),
        device: data,
        queue,
    };
    let mut loader = Loader {
        pages: &pages,
        page_size: identity.page_size,
        file_bytes,
        budget,
        taken: 0,
    };
    let directory = loader.directory(&root.directory)?;
    loader.apart(&root, &directory)?;
    loader.map(&directory)?;
    let mut state = State {
        catalog: loader.catalog(&directory)?,
        next_page: directory.next_page,
        version: root.version,
        chunks: BTreeSet::new(),
        spaces: BTreeSet::new(),
    };
    let mut log = found.log;
    log.replay_into(&mut loader, &mut state, options)?;
    let space = loader.space(&root, &directory, state.next_page)?;
    let writer = Writer {
        log,
        root,
        directory,
        chunks: state.chunks,
        spaces: state.spaces,
        pending: Pending::default(),
        limbo: Vec::new(),
        due: options.checkpoint_bytes,
        checkpoint_failure: None,
    };
    let (catalog, version) = (state.catalog, state.version);
    let recovery = Recovery {
        replayed: version - root.version,
        dropped: writer.log.dropped().cloned(),
    };
    Ok(Recovered {
        identity,
        pages,
        catalog,
        version,
        space,
        writer,
        recovery,
        sole_root,
    })
}

/// The newest root, and whether it is the only valid one.
///
/// Where a slot is invalid, the other root serves only if it is sure to lead to the last commit:
/// the log's header says from which version on its records are complete. A crash leaves at most
/// one slot torn, of root or log header, never one of each.
fn choose(
    data: &dyn Device,
    roots: &[std::result::Result<Root, Bad>; 2],
    found: &crate::log::Found,
) -> Result<(Root, bool)> {
    let damaged = |slot: u8, detail: String| {
        Error::damaged(
            data.path(),
            Region::Root(slot),
            ROOT_OFFSETS[usize::from(slot)],
            detail,
        )
    };
    let (root, bad) = match roots {
        [Ok(first), Ok(second)] => (
            if first.sequence > second.sequence {
                *first
            } else {
                *second
            },
            None,
        ),
        [Ok(root), Err(bad)] | [Err(bad), Ok(root)] => (*root, Some(bad)),
        [Err(bad), Err(other)] => {
            return Err(damaged(
                0,
                format!("{bad}; the other root slot is no help: {other}"),
            ));
        }
    };
    let header = found.log.header();
    if let Some(bad) = bad {
        let torn = 1 - root.slot();
        if found.bad.iter().any(Option::is_some) {
            let detail = format!("{bad}; a log header slot is damaged too");
            return Err(damaged(torn, detail));
        }
        if header.base > root.version {
            let detail = format!(
                "{bad}; the other root is of version {} and the log starts after version {}",
                root.version, header.base
            );
            return Err(damaged(torn, detail));
        }
    }
    if header.counter < root.log_counter {
        let slot = (root.log_counter % 2) as u8;
        let why = match &found.bad[usize::from(slot)] {
            Some(bad) => bad.to_string(),
            None => format!("restart {} is missing", root.log_counter),
        };
        let offset = u64::from(slot) * BLOCK as u64;
        let path = found.log.device().path();
        return Err(Error::damaged(path, Region::LogHeader(slot), offset, why));
    }
    if header.base > root.version {
        let newest = root.slot();
        let detail = format!(
            "the newest root is of version {}, the log starts after version {}",
            root.version, header.base
        );
        return Err(damaged(newest, detail));
    }
    Ok((root, bad.is_some()))
}

/// The state that replaying changes.
struct State {
    catalog: Catalog,
    next_page: u64,
    version: u64,
    chunks: BTreeSet<u32>,
    spaces: BTreeSet<u32>,
}

/// Reads the structures of a root, and holds what they say against the file before anything takes
/// memory or enters the map.
struct Loader<'a> {
    pages: &'a Pages,
    page_size: u32,
    file_bytes: u64,
    budget: Arc<Budget>,
    /// Bytes of the file that the entries of the map have so far.
    taken: u64,
}

impl Loader<'_> {
    fn damaged(&self, region: Region, offset: u64, detail: impl Into<String>) -> Error {
        Error::damaged(self.pages.device.path(), region, offset, detail)
    }

    fn blob(&self, region: Region, blob: &Blob) -> Result<Vec<u8>> {
        let limits = Limits {
            file_bytes: self.file_bytes,
            memory: self.budget.limit() - self.budget.used(),
        };
        read_blob(&*self.pages.device, region, blob, &limits)
    }

    fn directory(&self, blob: &Blob) -> Result<Directory> {
        Directory::decode(&self.blob(Region::Directory, blob)?)
            .ok_or_else(|| self.damaged(Region::Directory, blob.offset, "its fields make no sense"))
    }

    /// Fails if structures overlap: chunks that share an extent would be as many as one likes.
    fn apart(&self, root: &Root, directory: &Directory) -> Result<()> {
        for (_, blob) in directory.blobs() {
            self.reaches(blob.offset.saturating_add(blob.stored))?;
        }
        self.extents(places(root, directory)).map(drop)
    }

    /// The complement of the places, in any order.
    fn extents(&self, mut used: Vec<Place>) -> Result<Extents> {
        used.sort_unstable_by_key(|place| (place.offset, place.length));
        let spans: Vec<_> = used
            .iter()
            .map(|place| (place.offset, place.length))
            .collect();
        Extents::complement(&spans).map_err(|position| {
            let other = position
                .checked_sub(1)
                .map_or(Region::Identity, |before| used[before].region);
            let place = &used[position];
            self.damaged(place.region, place.offset, format!("overlaps {other}"))
        })
    }

    fn map(&mut self, directory: &Directory) -> Result<()> {
        for (chunk, blob) in (0u32..).zip(&directory.chunks) {
            let Some(blob) = blob else { continue };
            let region = Region::MapChunk(chunk);
            let bytes = self.blob(region, blob)?;
            let bad = |detail: String| self.damaged(region, blob.offset, detail);
            if bytes.len() != CHUNK_BYTES {
                return Err(bad("impossible length".to_string()));
            }
            let mut reader = Reader::new(&bytes);
            let mut entries = Vec::new();
            for page in chunk * CHUNK..=chunk * CHUNK + (CHUNK - 1) {
                let entry = Entry::take(&mut reader, self.page_size);
                let Some(entry) = entry.map_err(|why| bad(why.to_string()))? else {
                    continue;
                };
                if u64::from(page) >= directory.next_page {
                    return Err(bad(format!("page {page} is beyond the last one")));
                }
                entries.push((page, entry));
            }
            for (page, entry) in entries {
                self.enter(page, &entry, region, blob.offset)?;
            }
        }
        Ok(())
    }

    /// Puts an entry into the map, of which `region` at `offset` speaks.
    fn enter(&mut self, page: u32, entry: &Entry, region: Region, offset: u64) -> Result<()> {
        self.reaches(entry.offset.saturating_add(u64::from(entry.stored)))?;
        self.taken += entry.extent();
        if self.taken > self.file_bytes {
            let detail = format!("page {page} and those before take more than the file has");
            return Err(self.damaged(region, offset, detail));
        }
        self.pages
            .map
            .reserve(page)
            .map_err(|bytes| Error::Memory {
                path: self.pages.device.path().to_path_buf(),
                what: "the page map".to_string(),
                wanted: bytes,
                left: self.budget.limit() - self.budget.used(),
            })?;
        self.pages.map.set(page, entry);
        Ok(())
    }

    /// Fails if the file is shorter than `needed`.
    fn reaches(&self, needed: u64) -> Result<()> {
        if needed <= self.file_bytes {
            return Ok(());
        }
        let path = self.pages.device.path().to_path_buf();
        Err(Error::Truncated {
            path,
            needed,
            found: self.file_bytes,
        })
    }

    fn catalog(&self, directory: &Directory) -> Result<Catalog> {
        let mut catalog = Catalog::new();
        for (number, blob) in &directory.spaces {
            let region = Region::Space(*number);
            let space = decode_space(&self.blob(region, blob)?)
                .ok_or_else(|| self.damaged(region, blob.offset, "its entries make no sense"))?;
            catalog.spaces.insert(*number, space);
        }
        catalog.next_space = directory.next_space;
        Ok(catalog)
    }

    /// What the map and the structures do not use.
    fn space(&self, root: &Root, directory: &Directory, next_page: u64) -> Result<Space> {
        let mut used = places(root, directory);
        let live = || self.pages.map.live(next_page);
        let ids = Ids::complement(next_page, live().map(|(page, _)| page));
        used.extend(live().map(|(page, entry)| Place {
            offset: entry.offset,
            length: entry.extent(),
            region: Region::Page(page),
        }));
        let extents = self.extents(used)?;
        Ok(Space {
            extents,
            ids,
            aside: Vec::new(),
        })
    }
}

/// A part of the data file that something uses.
struct Place {
    offset: u64,
    length: u64,
    region: Region,
}

/// Where the structures of a root lie.
fn places(root: &Root, directory: &Directory) -> Vec<Place> {
    let own = (Region::Directory, &root.directory);
    let place = |(region, blob): (Region, &Blob)| Place {
        offset: blob.offset,
        length: aligned(blob.stored),
        region,
    };
    directory.blobs().chain([own]).map(place).collect()
}

impl Log {
    /// Applies the records after the root's version to map and catalog.
    fn replay_into(
        &mut self,
        loader: &mut Loader<'_>,
        state: &mut State,
        options: &Options,
    ) -> Result<()> {
        let path = self.device().path().to_path_buf();
        self.replay(state.version, options.damage, |version, body, offset| {
            let region = Region::LogRecord(version);
            let damaged = |detail: String| Error::damaged(&path, region, offset, detail);
            let changes = Changes::decode(body, loader.page_size)
                .ok_or_else(|| damaged("its fields make no sense".to_string()))?;
            loader.free(&changes).map_err(damaged)?;
            for (page, entry) in &changes.written {
                loader.new_page(*page, state.next_page).map_err(damaged)?;
                loader.enter(*page, entry, region, offset)?;
                state.next_page = state.next_page.max(u64::from(*page) + 1);
            }
            state.include(changes, version);
            Ok(())
        })
    }
}

impl Loader<'_> {
    fn free(&mut self, changes: &Changes) -> std::result::Result<(), String> {
        for &page in &changes.freed {
            let Some(entry) = self.pages.map.get(page) else {
                return Err(format!("page {page} is freed and does not exist"));
            };
            self.taken -= entry.extent();
            self.pages.map.clear(page);
        }
        Ok(())
    }

    /// Fails if no transaction can have written `page`: ids are given out from the lowest on, and
    /// each of those given out had a place of its own in the file, which has not shrunk since.
    fn new_page(&self, page: u32, next_page: u64) -> std::result::Result<(), String> {
        if self.pages.map.get(page).is_some() {
            return Err(format!("page {page} is written and exists"));
        }
        if u64::from(page) >= next_page.max(self.file_bytes / ALIGNMENT) {
            return Err(format!("page {page} is more than the file can have"));
        }
        Ok(())
    }
}

impl State {
    fn include(&mut self, changes: Changes, version: u64) {
        let written = changes.written.iter().map(|(page, _)| page);
        let pages = written.chain(&changes.freed);
        self.chunks.extend(pages.map(|page| page / CHUNK));
        self.spaces.extend(changes.spaces());
        changes.apply(&mut self.catalog);
        self.version = version;
    }
}

#[cfg(test)]
mod tests;
