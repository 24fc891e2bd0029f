//! Where the pool's pages come from.

use std::sync::Arc;

use buffer::{LoadError, PageId};
use io::{Device, Map, Mapping, Queue};

use crate::error::{Error, Region, Result};
use crate::format::bytes::{Tag, checksum};
use crate::format::codec;
use crate::format::kind::Codec;
use crate::format::structures::Entry;
use crate::space::images::Images;
use crate::space::map::PageMap;

/// The page map with the device it speaks of: all that loading a page takes, apart from the
/// store so that the pool and the store do not own each other.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) map: PageMap,
    /// Pages that are not in their places.
    pub(crate) images: Images,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) queue: Queue,
    /// The file as it was when it was opened, in the address space; `None` where pages are read into
    /// frames (row M1).
    pub(crate) mapping: Option<Map>,
}

/// Maps the file of a store.
pub(crate) fn mapping(device: &dyn Device) -> Result<Map> {
    let bytes = device.len()?;
    let too_long = |_| Error::Memory {
        path: device.path().to_path_buf(),
        what: "the mapping of the file".to_string(),
        wanted: bytes,
        left: usize::MAX as u64,
    };
    let length = usize::try_from(bytes).map_err(too_long)?;
    // SAFETY: the parts that are lent are those of live pages, while they are pinned. Pages are never
    // written over in place: their space is used again only when no snapshot knows them, no pin
    // holds them, and no other process reads (`Store::reclaim`). A read-ahead that nobody waits for
    // may verify a page while it is reclaimed; what it finds is thrown away.
    Ok(unsafe { Map::new(device, 0, length, Mapping::ReadOnly) }?)
}

impl Pages {
    /// Checks the stored bytes of a page and decodes them; returns the length in `into`.
    pub(crate) fn decode(
        &self,
        page: PageId,
        entry: &Entry,
        stored: &[u8],
        into: &mut [u8],
    ) -> Result<usize> {
        let damaged = |detail| self.damaged(page, entry, detail);
        self.sum(page, entry, stored)?;
        let length = entry.raw as usize;
        let Some(into) = into.get_mut(..length) else {
            return Err(damaged(format!("{length} bytes do not fit a frame")));
        };
        codec::decompress(entry.codec, stored, into).map_err(damaged)?;
        Ok(length)
    }

    /// Holds the stored bytes of a page against their checksum.
    fn sum(&self, page: PageId, entry: &Entry, stored: &[u8]) -> Result<()> {
        let sum = checksum(Tag::Page, page, stored);
        if sum == entry.sum {
            return Ok(());
        }
        let detail = format!("checksum is {sum:08x} and not {:08x}", entry.sum);
        Err(self.damaged(page, entry, detail))
    }

    fn damaged(&self, page: PageId, entry: &Entry, detail: String) -> Error {
        Error::damaged(self.device.path(), Region::Page(page), entry.offset, detail)
    }

    fn entry(&self, page: PageId) -> Result<Entry> {
        self.map.get(page).ok_or_else(|| Error::NoSuchPage {
            path: self.device.path().to_path_buf(),
            page,
        })
    }

    async fn read(&self, page: PageId, frame: &mut [u8]) -> Result<usize> {
        let mut entry = self.entry(page)?;
        loop {
            let read = self.read_at(page, entry, frame).await;
            if read.is_ok() {
                return read;
            }
            // Its place may have been used again if it moved meanwhile.
            match self.map.get(page) {
                Some(now) if now != entry => entry = now,
                _ => return read,
            }
        }
    }

    async fn read_at(&self, page: PageId, entry: Entry, frame: &mut [u8]) -> Result<usize> {
        if let Some(image) = self.images.get(page) {
            return self.decode(page, &entry, &image, frame);
        }
        // The rest runs in the task that was woken, not on the I/O thread, so decompression
        // uses the cores of the one compute width.
        let stored = self
            .queue
            .read(&self.device, entry.offset, entry.stored as usize)
            .await;
        let stored = stored.map_err(|error| self.read_error(&entry, error))?;
        self.decode(page, &entry, &stored, frame)
    }

    fn read_error(&self, entry: &Entry, error: io::Error) -> Error {
        match error {
            io::Error::ShortRead { offset, got, .. } => Error::Truncated {
                path: self.device.path().to_path_buf(),
                needed: entry.offset + u64::from(entry.stored),
                found: offset + got as u64,
            },
            error => error.into(),
        }
    }
}

impl buffer::Source for Pages {
    fn bucket(&self, page: PageId) -> u8 {
        self.map.bucket(page)
    }

    fn load<'a>(
        &'a self,
        page: PageId,
        frame: &'a mut [u8],
    ) -> futures::future::BoxFuture<
        'a,
        std::result::Result<usize, Arc<dyn std::error::Error + Send + Sync>>,
    > {
        Box::pin(async move {
            self.read(page, frame)
                .await
                .map_err(|error| Arc::new(error) as Arc<_>)
        })
    }

    fn mapped(&self, page: PageId) -> Option<&[u8]> {
        let mapping = self.mapping.as_ref()?;
        let entry = self.map.get(page)?;
        if entry.codec != Codec::Raw || entry.stored != entry.raw {
            return None;
        }
        mapping.range(entry.offset, entry.stored as usize)
    }

    fn verify(&self, page: PageId, bytes: &[u8]) -> std::result::Result<(), LoadError> {
        let entry = self
            .entry(page)
            .map_err(|error| Arc::new(error) as Arc<_>)?;
        let found = self.sum(page, &entry, bytes);
        // What was lost reads as zeros: that it was is the better message.
        self.intact()?;
        found.map_err(|error| Arc::new(error) as Arc<_>)
    }

    fn intact(&self) -> std::result::Result<(), LoadError> {
        match &self.mapping {
            Some(mapping) => mapping
                .check()
                .map_err(|error| Arc::new(Error::from(error)) as Arc<_>),
            None => Ok(()),
        }
    }
}
