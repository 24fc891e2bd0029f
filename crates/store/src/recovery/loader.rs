//! Reading the structures of a root.

use std::sync::Arc;

use memory::Budget;

use crate::catalog::changes::Changes;
use crate::catalog::spaces::{Catalog, decode_space};
use crate::error::{Error, Region, Result};
use crate::format::bytes::{Reader, Tag, checksum};
use crate::format::disk::{Limits, read_blob};
use crate::format::structures::{
    ALIGNMENT, Blob, CHUNK, CHUNK_BYTES, Directory, Entry, Root, aligned,
};
use crate::space::extents::{Extents, Ids};
use crate::space::pages::Pages;
use crate::state::free::Space;

/// Reads the structures of a root, and holds what they say against the file before anything takes
/// memory or enters the map.
pub(super) struct Loader<'a> {
    pub(super) pages: &'a Pages,
    pub(super) page_size: u32,
    pub(super) file_bytes: u64,
    pub(super) budget: Arc<Budget>,
    /// Bytes of the file that the entries of the map have so far.
    pub(super) taken: u64,
}

impl Loader<'_> {
    fn damaged(&self, region: Region, offset: u64, detail: impl Into<String>) -> Error {
        Error::damaged(self.pages.device.path(), region, offset, detail)
    }

    pub(super) fn blob(&self, region: Region, blob: &Blob) -> Result<Vec<u8>> {
        let limits = Limits {
            file_bytes: self.file_bytes,
            memory: self.budget.limit() - self.budget.used(),
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
        let spans: Vec<_> = used
            .iter()
            .map(|place| (place.offset, place.length))
            .collect();
        Extents::complement(&spans, alignment).map_err(|position| {
            let other = position
                .checked_sub(1)
                .map_or(Region::Identity, |before| used[before].region);
            let place = &used[position];
            self.damaged(place.region, place.offset, format!("overlaps {other}"))
        })
    }

    pub(super) fn map(&mut self, directory: &Directory) -> Result<()> {
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

    /// The free space: all that neither the map nor a structure uses.
    pub(super) fn space(
        &self,
        root: &Root,
        directory: &Directory,
        next_page: u64,
    ) -> Result<Space> {
        let mut used = places(root, directory);
        let live = || self.pages.map.live(next_page);
        let ids = Ids::complement(next_page, live().map(|(page, _)| page));
        used.extend(live().map(|(page, entry)| Place {
            offset: entry.offset,
            length: entry.extent(),
            region: Region::Page(page),
        }));
        let wanted = u64::from(root.alignment);
        let alignment = if used.iter().all(|place| place.offset.is_multiple_of(wanted)) {
            wanted
        } else {
            // A release has written to the store that does not know of it.
            ALIGNMENT
        };
        let extents = self.extents(used, alignment)?;
        Ok(Space {
            extents,
            ids,
            aside: Vec::new(),
        })
    }

    pub(super) fn free(&mut self, changes: &Changes) -> std::result::Result<(), String> {
        for &page in &changes.freed {
            let Some(entry) = self.pages.map.get(page) else {
                return Err(format!("page {page} is freed and does not exist"));
            };
            self.taken -= entry.extent();
            self.pages.map.clear(page);
            self.pages.images.forget(page);
        }
        Ok(())
    }

    /// Keeps the bytes of a page that the log holds; its place in the data file perhaps does not.
    pub(super) fn keep_image(&self, page: u32, image: &[u8]) -> Result<()> {
        let kept = self.pages.images.keep(page, image);
        kept.map_err(|bytes| Error::Memory {
            path: self.pages.device.path().to_path_buf(),
            what: format!("page {page} in the log"),
            wanted: bytes,
            left: self.budget.limit() - self.budget.used(),
        })
    }

    /// Lets go of the images whose bytes are in the data file, too: all of them, unless the power
    /// went.
    pub(super) fn place_images(&self) {
        let mut stored = Vec::new();
        for page in self.pages.images.pages() {
            let Some(entry) = self.pages.map.get(page) else {
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

    /// Fails if no transaction can have written `page`: ids are given out from the lowest on, and
    /// each of those given out had a place of its own in the file, which has not shrunk since.
    pub(super) fn new_page(&self, page: u32, next_page: u64) -> std::result::Result<(), String> {
        if self.pages.map.get(page).is_some() {
            return Err(format!("page {page} is written and exists"));
        }
        if u64::from(page) >= next_page.max(self.file_bytes / ALIGNMENT) {
            return Err(format!("page {page} is more than the file can have"));
        }
        Ok(())
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
