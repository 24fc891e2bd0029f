//! Reading the structures of a root.

use std::collections::BTreeSet;
use std::sync::Arc;

use memory::Budget;

use crate::catalog::changes::Changes;
use crate::catalog::spaces::{Catalog, decode_space};
use crate::error::{Error, Region, Result};
use crate::format::bytes::{Tag, checksum};
use crate::format::disk::{Limits, read_blob};
use crate::format::structures::{ALIGNMENT, Blob, Directory, Entry, Root, aligned};
use crate::space::extents::Extents;
use crate::space::pages::Pages;

/// Reads the structures of a root, and holds what they say against the file before anything takes
/// memory or enters the map.
pub(super) struct Loader<'a> {
    pub(super) pages: &'a Pages,
    pub(super) page_size: u32,
    pub(super) file_bytes: u64,
    pub(super) budget: Arc<Budget>,
    /// Bytes of the file that pages of the log's records have so far, at least.
    pub(super) taken: u64,
}

impl Loader<'_> {
    fn damaged(&self, region: Region, offset: u64, detail: impl Into<String>) -> Error {
        Error::damaged(self.pages.device.path(), region, offset, detail)
    }

    /// Bytes of memory that are left.
    pub(super) fn memory(&self) -> u64 {
        self.budget.limit() - self.budget.used()
    }

    pub(super) fn blob(&self, region: Region, blob: &Blob) -> Result<Vec<u8>> {
        let limits = Limits {
            file_bytes: self.file_bytes,
            memory: self.memory(),
        };
        read_blob(&*self.pages.device, region, blob, &limits)
    }

    pub(super) fn directory(&self, blob: &Blob) -> Result<Directory> {
        Directory::decode(&self.blob(Region::Directory, blob)?)
            .ok_or_else(|| self.damaged(Region::Directory, blob.offset, "its fields make no sense"))
    }

    /// Fails if structures overlap: without this check a damaged directory could name one extent as
    /// any number of chunks.
    pub(super) fn apart(&self, root: &Root, directory: &Directory) -> Result<()> {
        for (_, blob) in directory.blobs() {
            self.reaches(blob.offset.saturating_add(blob.stored))?;
        }
        self.extents(places(root, directory), ALIGNMENT).map(drop)
    }

    /// The complement of the places, which come in any order.
    fn extents(&self, mut used: Vec<Place>, alignment: u64) -> Result<Extents> {
        used.sort_unstable_by_key(|place| (place.offset, place.length));
        let spans = used.iter().map(|place| (place.offset, place.length));
        Extents::complement(spans, alignment).map_err(|position| {
            let other = position
                .checked_sub(1)
                .map_or(Region::Identity, |before| used[before].region);
            let place = &used[position];
            self.damaged(place.region, place.offset, format!("overlaps {other}"))
        })
    }

    /// Where chunks of the map and other structures lie; none of them is read.
    pub(super) fn map(&self, root: &Root, directory: &Directory) -> Result<()> {
        self.pages.map.begin(directory, directory.spans(root))
    }

    /// Puts an entry into the map, of which `region` at `offset` speaks.
    pub(super) fn enter(
        &mut self,
        page: u32,
        entry: &Entry,
        region: Region,
        offset: u64,
    ) -> Result<()> {
        self.reaches(entry.offset.saturating_add(u64::from(entry.stored)))?;
        self.taken += entry.extent();
        if self.taken > self.file_bytes {
            let detail = format!("page {page} and those before take more than the file has");
            return Err(self.damaged(region, offset, detail));
        }
        self.pages.map.replay(page, entry)
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

    pub(super) fn catalog(&self, directory: &Directory) -> Result<Catalog> {
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

    /// Fails if pages of chunks that the log has changed overlap each other or a structure. All others are held
    /// against each other when free space is looked for.
    pub(super) fn changed_apart(
        &self,
        root: &Root,
        directory: &Directory,
        chunks: &BTreeSet<u32>,
    ) -> Result<()> {
        let mut used = places(root, directory);
        for &chunk in chunks {
            let live = self.pages.map.chunk(chunk)?.into_iter();
            used.extend(live.map(|(page, entry)| Place {
                offset: entry.offset,
                length: entry.extent(),
                region: Region::Page(page),
            }));
        }
        self.extents(used, ALIGNMENT).map(drop)
    }

    /// What extents are multiples of: what the root says, unless something lies elsewhere, by the directory or
    /// the log. Then a release has written to the store that does not know of it; it has written such a root
    /// before it wrote a chunk.
    pub(super) fn alignment(&self, root: &Root, directory: &Directory, logged: u64) -> u64 {
        let wanted = u64::from(root.alignment);
        let places = places(root, directory);
        let all = places.iter().map(|place| place.offset).chain([logged]);
        if all.into_iter().all(|offset| offset.is_multiple_of(wanted)) {
            wanted
        } else {
            ALIGNMENT
        }
    }

    /// Takes the pages that a record frees out of the map; says which is not there.
    pub(super) fn free(&mut self, changes: &Changes) -> Result<Option<u32>> {
        for &page in &changes.freed {
            let Some(entry) = self.pages.map.replay_entry(page)? else {
                return Ok(Some(page));
            };
            self.taken = self.taken.saturating_sub(entry.extent());
            self.pages.map.replay_free(page)?;
            self.pages.images.forget(page);
        }
        Ok(None)
    }

    /// Keeps the bytes of a page that the log holds; its place in the data file perhaps does not.
    pub(super) fn keep_image(&self, page: u32, image: &[u8]) -> Result<()> {
        let kept = self.pages.images.keep(page, image);
        kept.map_err(|bytes| Error::Memory {
            path: self.pages.device.path().to_path_buf(),
            what: format!("page {page} in the log"),
            wanted: bytes,
            left: self.memory(),
        })
    }

    /// Lets go of the images whose bytes are in the data file, too: all of them, unless the power
    /// went.
    pub(super) fn place_images(&self) {
        let mut stored = Vec::new();
        for page in self.pages.images.pages() {
            // Its chunk is one that the log has changed.
            let Some(entry) = self.pages.map.resident(page) else {
                continue;
            };
            stored.resize(entry.stored as usize, 0);
            match self.pages.device.read_at(entry.offset, &mut stored) {
                Ok(()) if checksum(Tag::Page, page, &stored) == entry.sum => {
                    self.pages.images.forget(page);
                }
                // Whatever is there, it is written over.
                Ok(()) | Err(_) => {}
            }
        }
    }

    /// Says why no transaction can have written `page`, if so: ids are given out from the lowest on, and
    /// each of those given out had a place of its own in the file, which has not shrunk since.
    pub(super) fn new_page(&self, page: u32, next_page: u64) -> Result<Option<String>> {
        if u64::from(page) >= next_page.max(self.file_bytes / ALIGNMENT) {
            return Ok(Some(format!("page {page} is more than the file can have")));
        }
        if self.pages.map.replay_entry(page)?.is_some() {
            return Ok(Some(format!("page {page} is written and exists")));
        }
        Ok(None)
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
