//! Guards of a page that one caller holds alone, to change it.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::NonNull;
use std::time::Instant;

use futures::future::select;

use crate::config::PageId;
use crate::error::{Error, Result};
use crate::pool::Pool;
use crate::word::{Located, MAPPED};

/// A resident page that nobody else holds, for as long as this lives: its bytes may be changed.
///
/// Others who want to pin it wait; optimistic reads that overlap this guard fail. The pool writes
/// nothing back: a change is there until the page leaves its frame, and the next load gives what
/// the source has.
pub struct Exclusive<'p> {
    pool: &'p Pool,
    /// Invariant: the first of the `len` bytes of `page`, in `frame`, whose word says that it is
    /// held exclusively and whose version is odd.
    start: NonNull<u8>,
    len: usize,
    page: PageId,
    frame: u32,
}

// SAFETY: the frame is this guard's alone, and the hold is given back from any thread.
unsafe impl Send for Exclusive<'_> {}
// SAFETY: a shared guard only reads.
unsafe impl Sync for Exclusive<'_> {}

impl<'p> Exclusive<'p> {
    /// Wraps a hold that the word has already.
    fn new(pool: &'p Pool, page: PageId, at: Located) -> Exclusive<'p> {
        let frame = pool.frames.get(at.frame);
        frame.version.begin();
        Exclusive {
            pool,
            start: pool.frames.start(at.frame, pool.shape),
            len: frame.len(),
            page,
            frame: at.frame,
        }
    }

    /// The page.
    pub fn page(&self) -> PageId {
        self.page
    }

    /// The logical node on whose memory the page lies.
    pub fn node(&self) -> usize {
        self.pool.frames.get(self.frame).node as usize
    }
}

impl Drop for Exclusive<'_> {
    fn drop(&mut self) {
        // The version first: who finds the page without a holder finds it even.
        self.pool.frames.get(self.frame).version.end();
        if let Some(word) = self.pool.translation.word(self.page) {
            word.release_exclusive();
        }
        self.pool.partitions.starving.freed();
    }
}

impl Deref for Exclusive<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        // SAFETY: the frame has at least `len` initialised bytes at `start`. While the word says
        // that the page is held exclusively nobody pins or evicts it, so nobody else writes.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Exclusive<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        // SAFETY: as in `deref`, and `self` is borrowed alone. Optimistic readers make no reference;
        // what they read meanwhile they throw away, as the version is odd (`optimistic`).
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl fmt::Debug for Exclusive<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exclusive")
            .field("page", &self.page)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Holds a page alone if it is resident and nobody has pinned it; `None` otherwise, and for a
    /// page that is mapped from its file.
    pub fn try_exclusive(&self, page: PageId) -> Option<Exclusive<'_>> {
        let word = self.translation.word(page)?;
        // What is mapped stays so until it is discarded; a mapped page is never held.
        if word.peek()?.frame == MAPPED {
            return None;
        }
        let at = word.try_exclusive().ok()?;
        if at.frame == MAPPED {
            // Discarded and mapped between the two looks.
            word.release_exclusive();
            self.partitions.starving.freed();
            return None;
        }
        self.hits.add();
        Some(Exclusive::new(self, page, at))
    }

    /// Holds a page alone: loads it if it is not resident, and waits for the pins of others to go.
    /// New pins are not kept out meanwhile, so a page that is pinned again and again may never be
    /// without.
    ///
    /// A task that holds a pin of the same page waits for itself, and gets [`Error::Held`].
    ///
    /// # Errors
    /// Those of [`Pool::pin`]; [`Error::Held`] where the page had pins, or another exclusive
    /// holder, for the [patience](Pool::set_patience) of the pool; [`Error::Mapped`] for a page
    /// that is mapped from its file.
    pub async fn exclusive(&self, page: PageId) -> Result<Exclusive<'_>> {
        if let Some(guard) = self.try_exclusive(page) {
            return Ok(guard);
        }
        let since = Instant::now();
        loop {
            // Before the look: what is let go between the two is not missed.
            let freed = self.partitions.starving.join();
            if let Some(guard) = self.try_exclusive(page) {
                return Ok(guard);
            }
            let word = self.translation.word(page);
            match word.and_then(|word| word.load().located()) {
                Some(at) if at.frame == MAPPED => return Err(Error::Mapped { page }),
                Some(_) => {
                    let until = since + self.patience();
                    if Instant::now() >= until {
                        return Err(self.held(page));
                    }
                    select(freed, self.sleep(until)?).await;
                }
                None => drop(self.pin_missing(page).await?),
            }
        }
    }

    /// Waits until nobody holds a page exclusively, so that it can be pinned.
    pub(crate) async fn wait_until_let_go(&self, page: PageId) -> Result<()> {
        let until = Instant::now() + self.patience();
        loop {
            let freed = self.partitions.starving.join();
            let word = self.translation.word(page);
            if !word.is_some_and(|word| word.load().is_exclusive()) {
                return Ok(());
            }
            if Instant::now() >= until {
                return Err(self.held(page));
            }
            select(freed, self.sleep(until)?).await;
        }
    }

    fn held(&self, page: PageId) -> Error {
        Error::Held {
            page,
            milliseconds: self.patience().as_millis() as u64,
        }
    }
}
