//! The source of a pool's pages, and the memory it fills.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use futures::FutureExt;
use futures::future::BoxFuture;

use crate::config::{LoadError, PageId};
use crate::frames::Frames;
use crate::partition::Partitions;

/// The source of pages: reads a page into a frame on a miss.
pub trait Source: Send + Sync + 'static {
    /// The placement bucket of a page, 0..=255; its home node is the bucket modulo the nodes.
    ///
    /// Only asked on a miss. A page that is not known has any bucket.
    fn bucket(&self, page: PageId) -> u8;

    /// What has to be read before the source knows where `page` is, if that is not known yet: awaited before
    /// [`bucket`](Source::bucket) and whatever follows are asked, which would block the thread for it otherwise.
    ///
    /// `None` where nothing has to be read. A failure is left to [`load`](Source::load). The future may be
    /// dropped before it is ready.
    fn locate(&self, page: PageId) -> Option<BoxFuture<'_, ()>> {
        let _ = page;
        None
    }

    /// Reads, verifies and decodes a page into `frame`, which is [`Config::page_size`](crate::Config::page_size)
    /// bytes long and holds old bytes; returns the length of the page.
    ///
    /// The future may be dropped before it is ready.
    fn load<'a>(
        &'a self,
        page: PageId,
        frame: &'a mut [u8],
    ) -> BoxFuture<'a, Result<usize, LoadError>>;

    /// As [`load`](Source::load), with a frame of its own, which comes back with the length of the
    /// page: for sources that have the operating system write into it, which may go on after the
    /// future was dropped. This is what the pool calls; by itself it calls `load`.
    fn fill(
        &self,
        page: PageId,
        mut frame: Space,
    ) -> BoxFuture<'_, Result<(Space, usize), LoadError>> {
        async move {
            let len = self.load(page, &mut frame).await?;
            Ok((frame, len))
        }
        .boxed()
    }

    /// Calls `poll`, once, in which loads may begin: what they read may be asked for together.
    fn together(&self, poll: &mut dyn FnMut()) {
        poll();
    }

    /// The bytes of a page that lie in memory as they are to be read, because their file is mapped
    /// (row M1); `None` for a page that has to be loaded. Such a page takes no frame: the operating
    /// system decides how long it stays in memory.
    ///
    /// Until the page is [discarded](crate::Pool::discard), every call gives the same bytes. They
    /// begin at an address that is a multiple of 64.
    fn mapped(&self, page: PageId) -> Option<&[u8]> {
        let _ = page;
        None
    }

    /// Verifies a mapped page, once, before the first pin of it.
    ///
    /// # Errors
    /// What is wrong with it: whoever pins it is told.
    fn verify(&self, page: PageId, bytes: &[u8]) -> Result<(), LoadError> {
        let _ = (page, bytes);
        Ok(())
    }

    /// Whether the bytes that [`mapped`](Source::mapped) gave were, and are, those of the file.
    ///
    /// # Errors
    /// That a part of the file was lost: what was computed since it was opened may be wrong.
    fn intact(&self) -> Result<(), LoadError> {
        Ok(())
    }
}

/// The memory of a frame that holds no page: owned by a load, and given back to the pool when it is
/// dropped. It has the size of a page, and holds old bytes.
pub struct Space {
    frames: Arc<Frames>,
    partitions: Arc<Partitions>,
    frame: u32,
    len: usize,
    /// Whether somebody else owns the frame by now.
    kept: bool,
}

impl Space {
    /// The memory of a frame that the caller owns, and that is the space's from now on.
    pub(crate) fn new(
        frames: &Arc<Frames>,
        partitions: &Arc<Partitions>,
        frame: u32,
        len: usize,
    ) -> Space {
        partitions.spaces.fetch_add(1, Ordering::SeqCst);
        frames.get(frame).version.begin();
        Space {
            frames: frames.clone(),
            partitions: partitions.clone(),
            frame,
            len,
            kept: false,
        }
    }

    /// Whether this is the frame of this number of these frames.
    pub(crate) fn is(&self, frame: u32, frames: &Arc<Frames>) -> bool {
        self.frame == frame && Arc::ptr_eq(&self.frames, frames)
    }

    /// Hands the frame back to who made the space, who owns it again.
    pub(crate) fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Space {
    fn drop(&mut self) {
        // Before anybody else can own the frame, or find the page in it.
        self.frames.get(self.frame).version.end();
        if !self.kept {
            self.partitions.give(self.frame, &self.frames);
        }
        self.partitions.spaces.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Deref for Space {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        let start = self.frames.get(self.frame).start();
        // SAFETY: `start` is the first of `len` bytes, which were zero at first and are initialised
        // ever since. The frame is owned: no word names it and no free list has it (`word`, invariant
        // 1), so nobody else accesses it while the space lives.
        unsafe { std::slice::from_raw_parts(start, self.len) }
    }
}

impl DerefMut for Space {
    fn deref_mut(&mut self) -> &mut [u8] {
        let start = self.frames.get(self.frame).start();
        // SAFETY: as in `deref`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(start, self.len) }
    }
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Space")
            .field("frame", &self.frame)
            .finish_non_exhaustive()
    }
}
