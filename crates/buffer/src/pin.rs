//! Guards of resident pages.

use std::fmt;
use std::ops::Deref;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::config::PageId;
use crate::error::Result;
use crate::pool::Pool;
use crate::word::{Located, MAPPED};

/// A page that stays in its frame, unchanged, for as long as this lives.
///
/// Derefs to the bytes of the page, which begin at an address that is a multiple of 64. Many pins
/// of a page can exist at the same time, in many threads.
pub struct Pin<'p> {
    pool: &'p Pool,
    held: Held,
}

/// A [`Pin`] that keeps its pool alive, for lending a page to Arrow. There are never more than
/// [`Pool::lend_limit`] of a pool's.
pub struct OwnedPin {
    pool: Arc<Pool>,
    held: Held,
}

/// Invariant: stands for one pin counted in the word of `page`, which is resident in `frame`;
/// `start` and `len` are that frame's, or, where it is `MAPPED`, those that the source of the pool
/// has in memory.
#[derive(Clone, Copy)]
struct Held {
    start: NonNull<u8>,
    len: usize,
    page: PageId,
    frame: u32,
}

// SAFETY: while the pin is counted nobody writes to the frame (or to the mapped page), so its bytes may be read from any
// thread; everything else is plain data.
unsafe impl Send for Held {}
// SAFETY: as above: what is shared is read only.
unsafe impl Sync for Held {}

impl Held {
    /// The bytes.
    ///
    /// # Safety
    /// The pin must be counted for as long as `'a`.
    unsafe fn bytes<'a>(&self) -> &'a [u8] {
        // SAFETY: the frame has at least `len` initialised bytes at `start`, and nobody writes to
        // them while the pin is counted, which the caller says it is for `'a`. The bytes of a mapped
        // page were lent by the source, which the pool owns, and stay the same until the page is
        // discarded, which the pin forbids.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    fn node(&self, pool: &Pool) -> usize {
        match self.frame {
            MAPPED => pool.home_of(self.page),
            frame => pool.frames.get(frame).node as usize,
        }
    }
}

impl<'p> Pin<'p> {
    /// Wraps a pin that is counted already. Of a page that fills its frame the descriptor is not
    /// looked at: it would be one more line of memory to wait for.
    #[inline]
    pub(crate) fn new(pool: &'p Pool, page: PageId, at: Located) -> Pin<'p> {
        if at.frame == MAPPED {
            return Pin::mapped(pool, page);
        }
        let len = if at.full {
            pool.shape.page_size
        } else {
            pool.frames.get(at.frame).len()
        };
        Pin {
            pool,
            held: Held {
                start: pool.frames.start(at.frame, pool.shape),
                len,
                page,
                frame: at.frame,
            },
        }
    }

    /// Wraps a counted pin of a page that lies in the memory of its source.
    #[cold]
    fn mapped(pool: &'p Pool, page: PageId) -> Pin<'p> {
        // A resident page without a frame is one that the source gave; it goes on giving it.
        let bytes = pool.source.mapped(page).unwrap_or_default();
        Pin {
            pool,
            held: Held {
                start: NonNull::from(bytes).cast(),
                len: bytes.len(),
                page,
                frame: MAPPED,
            },
        }
    }

    /// The page.
    pub fn page(&self) -> PageId {
        self.held.page
    }

    /// The logical node on whose memory the page lies. Of a page that is mapped, the node that its
    /// placement bucket names: where the operating system put it, only that can tell.
    pub fn node(&self) -> usize {
        self.held.node(self.pool)
    }

    /// Turns this into a pin that keeps the pool alive; its bytes stay where they are.
    ///
    /// # Errors
    /// Gives the pin back where [`Pool::lend_limit`] pins are lent already, so that the caller
    /// copies the page instead, or where `pool` is not the pool of this pin.
    pub fn into_owned(self, pool: &Arc<Pool>) -> std::result::Result<OwnedPin, Pin<'p>> {
        if !std::ptr::eq(self.pool, Arc::as_ptr(pool)) || !pool.lend() {
            return Err(self);
        }
        let held = self.held;
        // The count goes over to the owned pin.
        std::mem::forget(self);
        Ok(OwnedPin {
            pool: pool.clone(),
            held,
        })
    }
}

impl Drop for Pin<'_> {
    #[inline]
    fn drop(&mut self) {
        self.pool.unpin(self.held.page);
    }
}

impl Deref for Pin<'_> {
    type Target = [u8];

    #[inline]
    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are borrowed from `self`, and the pin is counted until `self` is dropped.
        unsafe { self.held.bytes() }
    }
}

impl AsRef<[u8]> for Pin<'_> {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Pin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pin")
            .field("page", &self.page())
            .field("len", &self.len())
            .field("node", &self.node())
            .finish()
    }
}

impl OwnedPin {
    /// The page.
    pub fn page(&self) -> PageId {
        self.held.page
    }

    /// The logical node on whose memory the page lies, as of [`Pin::node`].
    pub fn node(&self) -> usize {
        self.held.node(&self.pool)
    }
}

impl Drop for OwnedPin {
    fn drop(&mut self) {
        self.pool.unpin(self.held.page);
        self.pool.lent.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Deref for OwnedPin {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the bytes are borrowed from `self`, and the pin is counted until `self` is dropped.
        unsafe { self.held.bytes() }
    }
}

impl AsRef<[u8]> for OwnedPin {
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for OwnedPin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnedPin")
            .field("page", &self.page())
            .field("len", &self.len())
            .field("node", &self.node())
            .finish()
    }
}

impl Pool {
    /// Pins a page that is resident, with one compare-and-swap on its word; `None` if it is not
    /// resident, which counts neither as a hit nor as a miss.
    #[inline]
    pub fn try_pin(&self, page: PageId) -> Option<Pin<'_>> {
        let at = self.translation.word(page)?.pin().ok()?;
        self.hits.add();
        Some(Pin::new(self, page, at))
    }

    /// Pins a page. If it is not resident the task is suspended until it is loaded, by itself or
    /// by whoever came first. Needs no particular runtime.
    ///
    /// The future may be dropped at any time. Once polled it should be polled on until it is ready
    /// or dropped: it may be the one that loads the page for others, who take over only when they
    /// have waited for the [patience](Pool::set_patience) of the pool.
    ///
    /// # Errors
    /// [`Error::Load`](crate::Error::Load) and [`Error::TooLong`](crate::Error::TooLong) for the loader and for all who waited for it;
    /// [`Error::Exhausted`](crate::Error::Exhausted) when every frame of every node stayed pinned for the
    /// [patience](Pool::set_patience) of the pool; [`Error::NoSuchPage`](crate::Error::NoSuchPage), [`Error::TooManyPins`](crate::Error::TooManyPins);
    /// [`Error::Held`](crate::Error::Held) where another held the page [exclusively](Pool::exclusive) that long.
    pub async fn pin(&self, page: PageId) -> Result<Pin<'_>> {
        match self.try_pin(page) {
            Some(pin) => Ok(pin),
            None => self.pin_missing(page).await,
        }
    }
}
