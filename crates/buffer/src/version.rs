//! The version of a frame: a sequence lock, by which a reader without a pin learns that the bytes
//! were being written, or have been since.
//!
//! Who owns a frame, or holds its page exclusively, is its only writer. It
//! 1. makes the version odd ([`begin`](Version::begin)),
//! 2. writes,
//! 3. makes it even again ([`end`](Version::end)), one higher than the last even one by two,
//!
//! and only then lets others find the page. A reader
//! 1. finds the page in the frame (the word, acquired),
//! 2. takes the version, which must be even ([`seen`](Version::seen)),
//! 3. copies,
//! 4. looks whether the word still names the frame and the version is the same
//!    ([`is_still`](Version::is_still)).
//!
//! The version rises in every load into the frame. So a page that was evicted and loaded into the
//! same frame anew has another one; and where it was loaded into another frame, the word says so.
//!
//! This module stands alone, so that `tests/loom.rs` can compile it against loom's atomics.

use crate::atomic::{AtomicU64, Ordering, fence};

/// The version of a frame: odd while somebody may write to it. It never wraps: a frame that is
/// written a billion times a second would need three centuries.
#[derive(Debug)]
pub(crate) struct Version(AtomicU64);

impl Default for Version {
    fn default() -> Version {
        Version(AtomicU64::new(0))
    }
}

impl Version {
    /// Even to odd. Only for the one who may write to the frame, before it does.
    pub(crate) fn begin(&self) {
        let version = self.0.load(Ordering::Relaxed);
        debug_assert!(version.is_multiple_of(2), "a frame has one writer");
        self.0.store(version + 1, Ordering::Relaxed);
        // No write to the frame is seen before the odd version; pairs with that in `is_still`.
        fence(Ordering::Release);
    }

    /// Odd to even. Only for the one who called [`begin`](Version::begin), after its last write.
    pub(crate) fn end(&self) {
        let version = self.0.load(Ordering::Relaxed);
        debug_assert!(!version.is_multiple_of(2), "begun before");
        self.0.store(version + 1, Ordering::Release);
    }

    /// The version, unless somebody may be writing. To be taken after the page was found in the
    /// frame and before its bytes are read.
    #[inline]
    pub(crate) fn seen(&self) -> Option<u64> {
        let version = self.0.load(Ordering::Acquire);
        version.is_multiple_of(2).then_some(version)
    }

    /// Whether nobody has written since `version` was [seen](Version::seen), and `here` says that
    /// the page is in the frame still: then all that was read between is one state of that page.
    #[inline]
    pub(crate) fn is_still(&self, version: u64, here: impl FnOnce() -> bool) -> bool {
        fence(Ordering::Acquire);
        // In this order: the word of a page that came back acquires the version of its new load.
        here() && self.0.load(Ordering::Relaxed) == version
    }
}
