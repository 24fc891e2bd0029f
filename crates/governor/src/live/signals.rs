//! SIGTERM and SIGHUP: end, and put everything back.

use std::sync::atomic::{AtomicBool, Ordering};

static ASKED: AtomicBool = AtomicBool::new(false);

extern "C" fn note(_: libc::c_int) {
    ASKED.store(true, Ordering::Relaxed);
}

/// From now on these signals only make [`asked_to_end`] true.
pub fn listen() {
    let handler = note as extern "C" fn(libc::c_int);
    for signal in [libc::SIGTERM, libc::SIGHUP] {
        // SAFETY: the handler stores to an atomic, which is allowed in a signal handler.
        unsafe { libc::signal(signal, handler as libc::sighandler_t) };
    }
}

/// Whether one of them came.
pub fn asked_to_end() -> bool {
    ASKED.load(Ordering::Relaxed)
}
