//! Ctrl-C: what runs is asked to stop; asked twice, the process ends at once.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// The exit status of a process ended by Ctrl-C.
pub const STATUS: i32 = 130;

type Handler = Box<dyn Fn() + Send>;

static ASKED: AtomicU32 = AtomicU32::new(0);
static RUNNING: Mutex<Option<Handler>> = Mutex::new(None);

/// Starts listening. Without it Ctrl-C ends the process, which loses nothing that is committed.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if ASKED.fetch_add(1, Ordering::SeqCst) > 0 {
            std::process::exit(STATUS);
        }
        if let Some(stop) = &*RUNNING.lock().unwrap_or_else(PoisonError::into_inner) {
            stop();
        }
    });
}

/// Whether Ctrl-C was pressed since the last [`forget`].
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst) > 0
}

/// Forgets that Ctrl-C was pressed: what it was meant for has ended.
pub fn forget() {
    ASKED.store(0, Ordering::SeqCst);
}

/// Calls `stop` on Ctrl-C until the guard is dropped.
pub fn during(stop: impl Fn() + Send + 'static) -> Guard {
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stop));
    Guard
}

/// Ends [`during`].
#[must_use]
pub struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
