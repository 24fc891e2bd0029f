//! Where the pool's pages come from.

use std::sync::{Arc, OnceLock};

use buffer::{LoadError, PageId, Pool, Space};
use futures::future::BoxFuture;
use io::{Device, Map, Mapping, Queue, Room};
use parking_lot::Mutex;

use crate::error::{Error, Region, Result};
use crate::format::bytes::{Tag, checksum};
use crate::format::codec;
use crate::format::kind::Codec;
use crate::format::structures::{Blob, Entry};
use crate::space::images::Images;
use crate::space::map::PageMap;
use crate::space::reading::Reading;

/// The page map with the device it speaks of: all that loading a page takes, apart from the
/// store so that the pool and the store do not own each other.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) map: PageMap,
    /// Chunks of it that are being read.
    reading: Reading,
    /// Pages that are not in their places.
    pub(crate) images: Images,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) queue: Queue,
    /// Whether the frames of the pool are registered with the queue, if they were to be.
    pub(crate) registered: OnceLock<io::Result<()>>,
    /// The file as it was when it was opened, in the address space; `None` where pages are read into
    /// frames (row M1).
    pub(crate) mapping: Option<Map>,
}

impl Pages {
    /// The pages that `map` and `images` know, read from `device` through `queue`, or where it is mapped.
    pub(crate) fn new(
        map: PageMap,
        images: Images,
        device: Arc<dyn Device>,
        queue: Queue,
        mapping: Option<Map>,
    ) -> Pages {
        Pages {
            map,
            reading: Reading::default(),
            images,
            device,
            queue,
            registered: OnceLock::new(),
            mapping,
        }
    }
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
    // holds them, and no other process reads (`Store::reclaim`); and of a mapped store no page is
    // moved (`Store::vacuum`). A read-ahead that nobody waits for may verify a page while it is
    // reclaimed; what it finds is thrown away.
    Ok(unsafe { Map::new(device, 0, length, Mapping::ReadOnly) }?)
}

/// A frame that the operating system reads into. Dropped, as it is after a failure, it leaves the
/// frame where whoever asked can take it and try again.
struct InFrame {
    /// `None` once it was taken.
    space: Option<Space>,
    registered: bool,
    back: Arc<Mutex<Option<Space>>>,
}

impl Drop for InFrame {
    fn drop(&mut self) {
        *self.back.lock() = self.space.take();
    }
}

// SAFETY: the space owns its frame, whose bytes are initialised and stay where they are until it is
// dropped; `registered` is set only when all frames of its pool are (`Pages::register`), and a space
// keeps them mapped.
unsafe impl Room for InFrame {
    fn bytes(&mut self) -> (*mut u8, usize) {
        self.space
            .as_mut()
            .map_or((std::ptr::null_mut(), 0), |space| {
                (space.as_mut_ptr(), space.len())
            })
    }

    fn registered(&self) -> bool {
        self.registered
    }
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
        self.sum(page, entry, stored)?;
        let length = entry.raw as usize;
        let Some(into) = into.get_mut(..length) else {
            return Err(self.damaged(page, entry, format!("{length} bytes do not fit a frame")));
        };
        codec::decompress(entry.codec, stored, into)
            .map_err(|why| self.damaged(page, entry, why))?;
        Ok(length)
    }

    fn damaged(&self, page: PageId, entry: &Entry, detail: String) -> Error {
        Error::damaged(self.device.path(), Region::Page(page), entry.offset, detail)
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

    /// Registers the frames of the pool that reads through this, if the system lets us.
    pub(crate) fn register(&self, pool: &Pool) {
        let memory: Vec<_> = pool
            .memory()
            .map(|range| (range.start, range.end as usize - range.start as usize))
            .collect();
        // SAFETY: the memory of the pool's frames, which is mapped and writable while it lives.
        let result = unsafe { self.queue.register(&memory) };
        // A second pool would find its frames unregistered, and be read into as if they were.
        let _ = self.registered.set(result);
    }

    /// The entry of a page that is to be read. Its chunk may have to be read before.
    async fn entry(&self, page: PageId) -> Result<Entry> {
        if let Some(missing) = self.map.missing(page) {
            self.locate_at(missing).await;
        }
        self.found(page, self.map.get(page)?)
    }

    fn found(&self, page: PageId, entry: Option<Entry>) -> Result<Entry> {
        entry.ok_or_else(|| Error::NoSuchPage {
            path: self.device.path().to_path_buf(),
            page,
        })
    }

    async fn locate_at(&self, missing: (u32, Blob)) {
        self.reading
            .read(missing, &self.map, &self.queue, &self.device)
            .await;
    }

    /// Reads the stored bytes of a page and decodes them into the frame.
    async fn read(&self, page: PageId, entry: &Entry, frame: &mut [u8]) -> Result<usize> {
        if let Some(image) = self.images.get(page) {
            return self.decode(page, entry, &image, frame);
        }
        // The rest runs in the task that was woken, not on the I/O thread, so decompression
        // uses the cores of the one compute width.
        let stored = self
            .queue
            .read(&self.device, entry.offset, entry.stored as usize)
            .await;
        let stored = stored.map_err(|error| self.read_error(entry, error))?;
        self.decode(page, entry, &stored, frame)
    }

    /// Fills a frame with a page; returns its length.
    async fn fill(&self, page: PageId, frame: Space) -> Result<(Space, usize)> {
        let back = Arc::new(Mutex::new(Some(frame)));
        let mut entry = self.entry(page).await?;
        loop {
            let Some(frame) = back.lock().take() else {
                return Err(self.damaged(page, &entry, "its frame is gone".to_string()));
            };
            let filled = self.fill_from(page, &entry, frame, &back).await;
            if filled.is_ok() {
                return filled;
            }
            // Its place may have been used again if it moved meanwhile.
            match self.map.get(page) {
                Ok(Some(now)) if now != entry => entry = now,
                _ => return filled,
            }
        }
    }

    /// Fills a frame with what is at a place: a page that is stored as it is, by the operating system.
    /// After a failure the frame is in `back`.
    async fn fill_from(
        &self,
        page: PageId,
        entry: &Entry,
        mut frame: Space,
        back: &Arc<Mutex<Option<Space>>>,
    ) -> Result<(Space, usize)> {
        let length = entry.stored as usize;
        let plain = entry.codec == Codec::Raw && entry.raw == entry.stored;
        if !plain || length > frame.len() || self.images.get(page).is_some() {
            return match self.read(page, entry, &mut frame).await {
                Ok(length) => Ok((frame, length)),
                Err(error) => {
                    *back.lock() = Some(frame);
                    Err(error)
                }
            };
        }
        let room = InFrame {
            space: Some(frame),
            registered: matches!(self.registered.get(), Some(Ok(()))),
            back: back.clone(),
        };
        let filled = self
            .queue
            .fill(&self.device, entry.offset, length, room)
            .await;
        let mut room = filled.map_err(|error| self.read_error(entry, error))?;
        // Dropped with the space in it where the checksum is wrong.
        self.sum(
            page,
            entry,
            room.space.as_deref().map_or(&[], |space| &space[..length]),
        )?;
        match room.space.take() {
            Some(frame) => Ok((frame, length)),
            None => Err(self.damaged(page, entry, "its frame is gone".to_string())),
        }
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
        // Of a page whose chunk cannot be read: loading it fails, and says why.
        let entry = self.map.get(page).ok().flatten();
        entry.map_or(0, |entry| entry.bucket)
    }

    fn locate(&self, page: PageId) -> Option<BoxFuture<'_, ()>> {
        let missing = self.map.missing(page)?;
        Some(Box::pin(self.locate_at(missing)))
    }

    fn load<'a>(
        &'a self,
        page: PageId,
        frame: &'a mut [u8],
    ) -> BoxFuture<'a, std::result::Result<usize, LoadError>> {
        Box::pin(async move {
            let entry = self.entry(page).await.map_err(shared)?;
            self.read(page, &entry, frame).await.map_err(shared)
        })
    }

    fn fill(
        &self,
        page: PageId,
        frame: Space,
    ) -> BoxFuture<'_, std::result::Result<(Space, usize), LoadError>> {
        Box::pin(async move { Pages::fill(self, page, frame).await.map_err(shared) })
    }

    fn together(&self, poll: &mut dyn FnMut()) {
        self.queue.together(poll);
    }

    fn mapped(&self, page: PageId) -> Option<&[u8]> {
        let mapping = self.mapping.as_ref()?;
        let entry = self.map.fixed(page)?;
        if entry.codec != Codec::Raw || entry.stored != entry.raw || self.images.get(page).is_some()
        {
            return None;
        }
        mapping.range(entry.offset, entry.stored as usize)
    }

    fn verify(&self, page: PageId, bytes: &[u8]) -> std::result::Result<(), LoadError> {
        let entry = self.found(page, self.map.fixed(page)).map_err(shared)?;
        let found = self.sum(page, &entry, bytes);
        // What was lost reads as zeros: that it was is the better message.
        self.intact()?;
        found.map_err(shared)
    }

    fn intact(&self) -> std::result::Result<(), LoadError> {
        match &self.mapping {
            Some(mapping) => mapping.check().map_err(|error| shared(error.into())),
            None => Ok(()),
        }
    }
}

fn shared(error: Error) -> LoadError {
    Arc::new(error)
}
