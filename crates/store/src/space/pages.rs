//! Where the pool's pages come from.

use std::sync::{Arc, OnceLock};

use buffer::{LoadError, PageId, Pool, Space};
use futures::future::BoxFuture;
use io::{Device, Queue, Room};

use crate::error::{Error, Region, Result};
use crate::format::bytes::{Tag, checksum};
use crate::format::codec;
use crate::format::kind::Codec;
use crate::format::structures::Entry;
use crate::space::map::PageMap;

/// The page map with the device it speaks of: all that loading a page takes, apart from the
/// store so that the pool and the store do not own each other.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) map: PageMap,
    pub(crate) device: Arc<dyn Device>,
    pub(crate) queue: Queue,
    /// Whether the frames of the pool are registered with the queue, if they were to be.
    pub(crate) registered: OnceLock<io::Result<()>>,
}

/// A frame that the operating system reads into.
struct InFrame {
    space: Space,
    registered: bool,
}

// SAFETY: the space owns its frame, whose bytes are initialised and stay where they are until it is
// dropped; `registered` is set only when all frames of its pool are (`Pages::register`), and a space
// keeps them mapped.
unsafe impl Room for InFrame {
    fn bytes(&mut self) -> (*mut u8, usize) {
        (self.space.as_mut_ptr(), self.space.len())
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
        self.verify(page, entry, stored)?;
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

    fn verify(&self, page: PageId, entry: &Entry, stored: &[u8]) -> Result<()> {
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

    fn entry(&self, page: PageId) -> Result<Entry> {
        self.map.get(page).ok_or_else(|| Error::NoSuchPage {
            path: self.device.path().to_path_buf(),
            page,
        })
    }

    /// Reads the stored bytes and decodes them into the frame.
    async fn read(&self, page: PageId, entry: &Entry, frame: &mut [u8]) -> Result<usize> {
        // The rest runs in the task that was woken, not on the I/O thread, so decompression
        // uses the cores of the one compute width.
        let stored = self
            .queue
            .read(&self.device, entry.offset, entry.stored as usize)
            .await;
        let stored = stored.map_err(|error| self.read_error(entry, error))?;
        self.decode(page, entry, &stored, frame)
    }

    /// Fills a frame: what is stored as it is, by the operating system.
    async fn fill(&self, page: PageId, mut frame: Space) -> Result<(Space, usize)> {
        let entry = self.entry(page)?;
        let length = entry.stored as usize;
        if entry.codec != Codec::Raw || entry.raw != entry.stored || length > frame.len() {
            let length = self.read(page, &entry, &mut frame).await?;
            return Ok((frame, length));
        }
        let room = InFrame {
            space: frame,
            registered: matches!(self.registered.get(), Some(Ok(()))),
        };
        let filled = self
            .queue
            .fill(&self.device, entry.offset, length, room)
            .await;
        let frame = filled
            .map_err(|error| self.read_error(&entry, error))?
            .space;
        self.verify(page, &entry, &frame[..length])?;
        Ok((frame, length))
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
    ) -> BoxFuture<'a, std::result::Result<usize, LoadError>> {
        Box::pin(async move {
            let entry = self.entry(page).map_err(shared)?;
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
}

fn shared(error: Error) -> LoadError {
    Arc::new(error)
}
