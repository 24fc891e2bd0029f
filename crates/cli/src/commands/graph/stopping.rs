//! Ctrl-C while a graph is worked on.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;
use crate::terminal::interrupt::{self, Guard};

/// A flag that Ctrl-C sets until the guard is dropped.
pub fn flag() -> (Arc<AtomicBool>, Guard) {
    let stop = Arc::new(AtomicBool::new(false));
    let guard = set(&stop);
    (stop, guard)
}

/// Sets `stop` on Ctrl-C until the guard is dropped.
pub fn set(stop: &Arc<AtomicBool>) -> Guard {
    let stop = Arc::clone(stop);
    interrupt::during(move || stop.store(true, Ordering::Relaxed))
}

/// What the command ends with.
pub fn failure(error: graph::Error) -> Failure {
    match error {
        graph::Error::Interrupted => Failure::Interrupted,
        error => error.into(),
    }
}
