//! Reading a resident page without a pin.

use std::fmt;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::config::PageId;
use crate::pool::Pool;
use crate::version::Version;
use crate::word::{Located, MAPPED, Word};

/// How often [`Pool::read_optimistic`] tries before it leaves the page to a pin.
const TRIES: usize = 8;

/// A resident page that is read without a pin, and without a write to memory that others read: any
/// number of threads read one page as if each were alone.
///
/// Nothing keeps the page in its frame meanwhile. What the copying methods give may be a mixture
/// of states, or belong to another page, until [`is_valid`](Optimistic::is_valid) has said after
/// them that it is not: use nothing before.
pub struct Optimistic<'p> {
    word: Word<'p>,
    version: &'p Version,
    /// Invariant: the first of `len` bytes of a frame, which stay mapped as long as the pool lives.
    start: NonNull<u8>,
    len: usize,
    page: PageId,
    at: Located,
    seen: u64,
}

impl Optimistic<'_> {
    /// The page.
    pub fn page(&self) -> PageId {
        self.page
    }

    /// The length of the page in bytes. As everything else, to be believed once
    /// [`is_valid`](Optimistic::is_valid); in any case not more than a frame has.
    #[expect(clippy::len_without_is_empty, reason = "a page has bytes")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies bytes from `offset` on; false, and `into` as it was, where the page is not that long.
    #[inline]
    #[must_use]
    pub fn copy(&self, offset: usize, into: &mut [u8]) -> bool {
        let Some(end) = offset.checked_add(into.len()) else {
            return false;
        };
        if end > self.len {
            return false;
        }
        let (words, rest) = into.as_chunks_mut::<8>();
        let mut from = offset;
        for word in words {
            *word = self.load::<[u8; 8]>(from);
            from += 8;
        }
        for byte in rest {
            *byte = self.load::<[u8; 1]>(from)[0];
            from += 1;
        }
        true
    }

    /// The eight bytes at `offset`, little-endian; `None` where the page is not that long.
    #[inline]
    pub fn u64_at(&self, offset: usize) -> Option<u64> {
        let end = offset.checked_add(8)?;
        (end <= self.len).then(|| u64::from_le_bytes(self.load::<[u8; 8]>(offset)))
    }

    /// Whether all that was copied so far is one state of the page, and that is its state still:
    /// it was neither changed nor evicted nor discarded since this guard was made. Once false it
    /// stays false.
    #[inline]
    #[must_use]
    pub fn is_valid(&self) -> bool {
        let here = || self.word.peek() == Some(self.at);
        self.version.is_still(self.seen, here)
    }

    /// One value at `offset`; the caller has checked that it ends within the page.
    #[inline]
    fn load<T: Bytes>(&self, offset: usize) -> T {
        debug_assert!(offset + size_of::<T>() <= self.len);
        // SAFETY: the bytes lie in a frame, which was initialised (zero at first), is mapped for as
        // long as the pool, borrowed here, lives, and has `len` bytes; `T` is an array of bytes, of
        // alignment 1, for which any bytes are a value. Another thread or the operating system may
        // write to them at this moment. Rust and C call that a race even if what was read is
        // thrown away, as `is_valid` has callers do; every sequence lock over plain memory has it. The
        // read is volatile, so the compiler makes one load of it, invents none and takes nothing for
        // known about the value: what may come out is a mixture of old and new bytes. No reference
        // to the bytes of the frame is made.
        let value = unsafe {
            self.start
                .as_ptr()
                .add(offset)
                .cast::<MaybeUninit<T>>()
                .read_volatile()
        };
        // SAFETY: initialised, as above.
        unsafe { value.assume_init() }
    }
}

/// Arrays of bytes: any bytes are a value, at any address.
trait Bytes: Copy {}

impl Bytes for [u8; 8] {}
impl Bytes for [u8; 1] {}

impl fmt::Debug for Optimistic<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Optimistic")
            .field("page", &self.page)
            .field("len", &self.len)
            .finish_non_exhaustive()
    }
}

impl Pool {
    /// Begins to read a page without a pin. `None` where it is not resident, being written, or
    /// mapped from its file: then [pin](Pool::pin) it.
    ///
    /// Counts neither as a hit nor as a use: a page that is read only so looks cold to the
    /// replacement policy, and is pinned by whoever next finds it evicted.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use buffer::{Config, LoadError, PageId, Policy, Pool, Source};
    /// # struct Sevens;
    /// # impl Source for Sevens {
    /// #     fn bucket(&self, _: PageId) -> u8 { 0 }
    /// #     fn load<'a>(&'a self, _: PageId, frame: &'a mut [u8])
    /// #         -> futures::future::BoxFuture<'a, Result<usize, LoadError>> {
    /// #         frame.fill(7);
    /// #         Box::pin(async { Ok(4096) })
    /// #     }
    /// # }
    /// # let config = Config {
    /// #     bytes: 64 * 4096, page_size: 4096, partitions_per_node: 1, nodes: vec![None],
    /// #     placement: buffer::Placement::default(),
    /// #     replacement: Policy::default(), prefetch: buffer::Prefetching::default(),
    /// # };
    /// # let pool = Pool::new(&config, Arc::new(Sevens), memory::Budget::new(1 << 20))?;
    /// drop(futures::executor::block_on(pool.pin(3))?);
    /// let page = pool.optimistic(3).ok_or("resident")?;
    /// let mut bytes = [0; 16];
    /// assert!(page.copy(64, &mut bytes));
    /// assert!(page.is_valid(), "nobody evicted it meanwhile");
    /// assert_eq!(bytes, [7; 16]);
    ///
    /// pool.discard(3)?;
    /// assert!(!page.is_valid());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[inline]
    pub fn optimistic(&self, page: PageId) -> Option<Optimistic<'_>> {
        let word = self.translation.word(page)?;
        let at = word.peek()?;
        if at.frame == MAPPED {
            return None;
        }
        let frame = self.frames.get(at.frame);
        let seen = frame.version.seen()?;
        let len = if at.full {
            self.shape.page_size
        } else {
            frame.len()
        };
        Some(Optimistic {
            word,
            version: &frame.version,
            start: self.frames.start(at.frame, self.shape),
            len,
            page,
            at,
            seen,
        })
    }

    /// What `read` computes from a resident page, read without a pin; `None` where the page is not
    /// resident, or changed at each of a few tries: then [pin](Pool::pin) it.
    ///
    /// `read` is called again where the page changed under it, and what it returned then is
    /// dropped. It sees bytes that may be of no page at all: it must not follow them out of bounds,
    /// panic over them, loop on them without end, or do anything but compute its result.
    #[inline]
    pub fn read_optimistic<T>(
        &self,
        page: PageId,
        mut read: impl FnMut(&Optimistic<'_>) -> T,
    ) -> Option<T> {
        for _ in 0..TRIES {
            let guard = self.optimistic(page)?;
            let value = read(&guard);
            if guard.is_valid() {
                return Some(value);
            }
        }
        None
    }
}
