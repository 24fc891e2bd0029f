//! Checkpoints under way: the turn of a store's, and how many there are in this process.

use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::MutexGuard;

/// Shows that no other checkpoint is under way.
pub(crate) type Turn<'a> = MutexGuard<'a, ()>;

/// Stores of this process that are held only, or among others, by a checkpoint under way.
static RUNNING: AtomicUsize = AtomicUsize::new(0);

/// Whether the lock on a store may be let go soon, as soon as a checkpoint ends.
pub(super) fn is_running() -> bool {
    RUNNING.load(Ordering::Acquire) > 0
}

/// Counts a checkpoint for as long as it lives.
pub(super) struct Running;

impl Running {
    pub(super) fn new() -> Running {
        RUNNING.fetch_add(1, Ordering::AcqRel);
        Running
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::AcqRel);
    }
}
