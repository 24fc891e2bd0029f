//! Making a new store, and finding the last committed state of an old one.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use io::Device;

use crate::bytes::{Reader, Tag, checksum};
use crate::catalog::{Catalog, decode_space};
use crate::changes::Changes;
use crate::codec;
use crate::disk::{read, read_blob};
use crate::error::{Error, Region, Result};
use crate::extents::{Extents, Ids};
use crate::format::{
    BLOCK, Bad, Blob, CHUNK, Directory, Entry, FIRST_EXTENT, FORMAT_VERSION, Identity, MAGIC,
    ROOT_OFFSETS, Root, aligned,
};
use crate::log::Log;
use crate::map::PageMap;
use crate::options::Options;
use crate::pending::Pending;
use crate::source::Pages;
use crate::store::{CHECKPOINT_BYTES, Space, Writer};

/// Writes an empty store on two empty devices, durably: the log first, so that a data file with
/// an identity has a log, and in it the commit that makes the `first` changes.
pub(crate) fn format(
    data: &dyn Device,
    log: &Arc<dyn Device>,
    page_size: u32,
    first: Option<&Changes>,
) -> Result<()> {
    for device in [data, &**log] {
        if !device.is_empty()? {
            return Err(Error::Exists {
                path: device.path().to_path_buf(),
            });
        }
    }
    let created = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let identity = Identity {
        version: FORMAT_VERSION,
        page_size,
        id: new_id(),
        created,
    };
    let mut log = Log::create(log.clone(), identity.id)?;
    if let Some(changes) = first {
        let end = log.append(1, &changes.encode())?;
        log.sync(end)?;
    }
    let directory = Directory {
        next_space: 1,
        ..Directory::default()
    }
    .encode();
    let (codec, stored) = codec::compress(&directory);
    let blob = Blob {
        offset: FIRST_EXTENT,
        stored: stored.len() as u64,
        raw: directory.len() as u64,
        sum: checksum(Tag::Directory, 0, &stored),
        codec,
    };
    let end = FIRST_EXTENT + aligned(blob.stored);
    data.set_len(end)?;
    data.write_at(blob.offset, &stored)?;
    for sequence in [0, 1] {
        let log_counter = log.header().counter;
        let root = Root {
            sequence,
            version: 0,
            file_bytes: end,
            log_counter,
            directory: blob,
        };
        let offset = ROOT_OFFSETS[usize::from(root.slot())];
        data.write_at(offset, &root.encode(&identity.id))?;
    }
    data.sync()?;
    data.write_at(0, &identity.encode())?;
    Ok(data.sync()?)
}

/// Sixteen bytes that no other store has: this tells files apart, it keeps no secret.
fn new_id() -> [u8; 16] {
    let mut id = [0; 16];
    for half in id.chunks_exact_mut(8) {
        // Each state is seeded by the operating system's random numbers.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        hasher.write_u128(now.map_or(0, |since| since.as_nanos()));
        half.copy_from_slice(&hasher.finish().to_le_bytes());
    }
    id
}

/// The identity of a data file.
pub(crate) fn identity(data: &dyn Device) -> Result<Identity> {
    let path = data.path().to_path_buf();
    let length = data.len()?;
    let mut block = vec![0; BLOCK.min(usize::try_from(length).unwrap_or(BLOCK))];
    read(data, 0, &mut block)?;
    let head = MAGIC.len().min(block.len());
    if block.is_empty() || (block.len() < BLOCK && block[..head] != MAGIC[..head]) {
        return Err(Error::NotAtoll { path });
    }
    if length < FIRST_EXTENT && block[..head] == MAGIC[..head] {
        return Err(Error::Truncated {
            path,
            needed: FIRST_EXTENT,
            found: length,
        });
    }
    Identity::decode(&block).map_err(|bad| match bad {
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
    let mut block = vec![0; BLOCK];
    read(data, ROOT_OFFSETS[usize::from(slot)], &mut block)?;
    Ok(Root::decode(&block, slot, id))
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
    /// Records of the log that the root did not include.
    pub(crate) replayed: u64,
    /// Whether one root slot is invalid.
    pub(crate) sole_root: bool,
}

/// Finds the last committed state; writes nothing.
pub(crate) fn recover(
    data: Arc<dyn Device>,
    log: Arc<dyn Device>,
    options: &Options,
) -> Result<Recovered> {
    let identity = identity(&*data)?;
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
    let pages = Pages {
        map: PageMap::new(identity.page_size),
        device: data,
        queue,
    };
    let loader = Loader {
        pages: &pages,
        page_size: identity.page_size,
        file_bytes,
    };
    let directory = loader.directory(&root.directory)?;
    loader.map(&directory)?;
    let mut state = State {
        catalog: loader.catalog(&directory)?,
        next_page: directory.next_page,
        version: root.version,
        chunks: BTreeSet::new(),
        spaces: BTreeSet::new(),
    };
    let mut log = found.log;
    log.replay_into(&loader, &mut state)?;
    let space = loader.space(&root, &directory, state.next_page)?;
    let writer = Writer {
        log,
        root,
        directory,
        chunks: state.chunks,
        spaces: state.spaces,
        pending: Pending::default(),
        limbo: Vec::new(),
        due: CHECKPOINT_BYTES,
        checkpoint_failure: None,
    };
    let (catalog, version) = (state.catalog, state.version);
    let replayed = version - root.version;
    Ok(Recovered {
        identity,
        pages,
        catalog,
        version,
        space,
        writer,
        replayed,
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

/// Reads the structures of a root.
struct Loader<'a> {
    pages: &'a Pages,
    page_size: u32,
    file_bytes: u64,
}

impl Loader<'_> {
    fn damaged(&self, region: Region, offset: u64, detail: impl Into<String>) -> Error {
        Error::damaged(self.pages.device.path(), region, offset, detail)
    }

    fn blob(&self, region: Region, blob: &Blob) -> Result<Vec<u8>> {
        read_blob(&*self.pages.device, region, blob, self.file_bytes)
    }

    fn directory(&self, blob: &Blob) -> Result<Directory> {
        Directory::decode(&self.blob(Region::Directory, blob)?)
            .ok_or_else(|| self.damaged(Region::Directory, blob.offset, "its fields make no sense"))
    }

    fn map(&self, directory: &Directory) -> Result<()> {
        for (chunk, blob) in (0u32..).zip(&directory.chunks) {
            let Some(blob) = blob else { continue };
            let region = Region::MapChunk(chunk);
            let bytes = self.blob(region, blob)?;
            let mut reader = Reader::new(&bytes);
            for page in chunk * CHUNK..=chunk * CHUNK + (CHUNK - 1) {
                let entry = Entry::take(&mut reader, self.page_size)
                    .map_err(|bad| self.damaged(region, blob.offset, bad.to_string()))?;
                let Some(entry) = entry else { continue };
                if u64::from(page) >= directory.next_page {
                    let detail = format!("page {page} is beyond the last one");
                    return Err(self.damaged(region, blob.offset, detail));
                }
                self.in_file(&entry)?;
                self.pages.map.set(page, &entry);
            }
        }
        Ok(())
    }

    fn in_file(&self, entry: &Entry) -> Result<()> {
        let needed = entry.offset.saturating_add(u64::from(entry.stored));
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
        let own = (Region::Directory, &root.directory);
        let blobs = directory.blobs().chain([own]);
        let mut used: Vec<_> = blobs
            .map(|(region, blob)| (blob.offset, aligned(blob.stored), region))
            .collect();
        let live = || self.pages.map.live(next_page);
        let ids = Ids::complement(next_page, live().map(|(page, _)| page));
        used.extend(live().map(|(page, entry)| (entry.offset, entry.extent(), Region::Page(page))));
        used.sort_unstable_by_key(|&(offset, length, _)| (offset, length));
        let places: Vec<_> = used
            .iter()
            .map(|&(offset, length, _)| (offset, length))
            .collect();
        let extents = Extents::complement(&places).map_err(|position| {
            let (offset, _, region) = used[position];
            let other = position
                .checked_sub(1)
                .map_or(Region::Identity, |before| used[before].2);
            self.damaged(region, offset, format!("overlaps {other}"))
        })?;
        Ok(Space { extents, ids })
    }
}

impl Log {
    /// Applies the records after the root's version to map and catalog.
    fn replay_into(&mut self, loader: &Loader<'_>, state: &mut State) -> Result<()> {
        let path = self.device().path().to_path_buf();
        let map = &loader.pages.map;
        self.replay(state.version, |version, body, offset| {
            let damaged =
                |detail: String| Error::damaged(&path, Region::LogRecord(version), offset, detail);
            let changes = Changes::decode(body, loader.page_size)
                .ok_or_else(|| damaged("its fields make no sense".to_string()))?;
            for &page in &changes.freed {
                if map.get(page).is_none() {
                    return Err(damaged(format!("page {page} is freed and does not exist")));
                }
                map.clear(page);
            }
            for (page, entry) in &changes.written {
                if map.get(*page).is_some() {
                    return Err(damaged(format!("page {page} is written and exists")));
                }
                map.set(*page, entry);
                state.next_page = state.next_page.max(u64::from(*page) + 1);
            }
            let pages = changes
                .written
                .iter()
                .map(|(page, _)| page)
                .chain(&changes.freed);
            state.chunks.extend(pages.map(|page| page / CHUNK));
            state.spaces.extend(changes.spaces());
            changes.apply(&mut state.catalog);
            state.version = version;
            Ok(())
        })?;
        for &chunk in &state.chunks {
            for (_, entry) in map.chunk(chunk) {
                loader.in_file(&entry)?;
            }
        }
        Ok(())
    }
}
