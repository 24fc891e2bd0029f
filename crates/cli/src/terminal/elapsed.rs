//! How long a statement has been running, on the terminal, until there is something else to show.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::units;

/// What takes less is not shown.
const PATIENCE: Duration = Duration::from_secs(1);

/// How often the line is written anew.
const EVERY: Duration = Duration::from_millis(200);

/// Whether a line may be shown.
static ON: AtomicBool = AtomicBool::new(false);

/// What shows it.
static CLOCK: Mutex<Option<Clock>> = Mutex::new(None);

/// A thread that shows the line until it is stopped.
struct Clock {
    stop: Arc<(Mutex<bool>, Condvar)>,
    thread: Option<JoinHandle<()>>,
}

/// Shows from now on how long it takes, and how many bytes were read, which `read` tells; if there is a terminal.
/// Nothing is shown after [`hide`] was called, or the guard dropped.
pub fn show(read: impl Fn() -> u64 + Send + 'static) -> Guard {
    if std::io::stderr().is_terminal() && std::io::stdout().is_terminal() {
        let stop = Arc::new((Mutex::new(false), Condvar::new()));
        let own = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("elapsed".to_owned())
            .spawn(move || tick(&own, &read));
        // Without a thread nothing is shown, which is no reason to run nothing.
        if let Ok(thread) = thread {
            let thread = Some(thread);
            *CLOCK.lock().unwrap_or_else(PoisonError::into_inner) = Some(Clock { stop, thread });
            ON.store(true, Ordering::SeqCst);
        }
    }
    Guard
}

/// Removes the line, before something else is shown.
pub fn hide() {
    if ON.swap(false, Ordering::SeqCst) {
        drop(CLOCK.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Ends [`show`].
#[must_use]
pub struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        hide();
    }
}

impl Drop for Clock {
    fn drop(&mut self) {
        let (stopped, told) = &*self.stop;
        *stopped.lock().unwrap_or_else(PoisonError::into_inner) = true;
        told.notify_all();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Writes the line again and again, and removes it at the end.
fn tick(stop: &(Mutex<bool>, Condvar), read: &dyn Fn() -> u64) {
    let (begun, (stopped, told)) = (Instant::now(), stop);
    let (mut wait, mut shown) = (PATIENCE, false);
    let mut ended = stopped.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let waited = told.wait_timeout_while(ended, wait, |ended| !*ended);
        ended = waited.unwrap_or_else(PoisonError::into_inner).0;
        if *ended {
            break;
        }
        let mut line = format!("\r{:.1} s", begun.elapsed().as_secs_f64());
        match read() {
            0 => {}
            bytes => line += &format!(", {} read", units::bytes(bytes)),
        }
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "{line}; Ctrl-C cancels\x1b[K");
        let _ = out.flush();
        (wait, shown) = (EVERY, true);
    }
    if shown {
        let mut out = std::io::stderr().lock();
        let _ = write!(out, "\r\x1b[K");
        let _ = out.flush();
    }
}
