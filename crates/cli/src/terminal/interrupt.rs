//! Ctrl-C asks what runs to stop; pressed twice, it ends the process at once. The shell ends only if a statement does
//! not stop within seconds.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The exit status of a process ended by Ctrl-C.
pub const STATUS: i32 = 130;

/// How long a statement in the shell may take to stop before another Ctrl-C ends the shell.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause before what runs is asked to stop once more.
const AGAIN: Duration = Duration::from_millis(50);

type Handler = Box<dyn Fn() + Send>;

static ASKED: AtomicU32 = AtomicU32::new(0);
static IGNORED: AtomicBool = AtomicBool::new(false);
static RUNNING: Mutex<Option<Handler>> = Mutex::new(None);

/// What is done before Ctrl-C ends the process.
static LAST: Mutex<Option<Handler>> = Mutex::new(None);

/// When the first Ctrl-C came, if further ones are not to end the process.
static PATIENT: Mutex<Option<Option<Instant>>> = Mutex::new(None);

/// Installs the handler. Without it Ctrl-C ends the process, which loses nothing that is committed.
pub fn listen() {
    let _ = ctrlc::set_handler(|| {
        if IGNORED.load(Ordering::SeqCst) {
            return;
        }
        let early = wait_longer();
        let before = ASKED.fetch_add(1, Ordering::SeqCst);
        if before > 0 && !early {
            if let Some(last) = &*LAST.lock().unwrap_or_else(PoisonError::into_inner) {
                last();
            }
            std::process::exit(STATUS);
        }
        if stop() && before == 0 {
            std::thread::spawn(insist);
        }
    });
}

/// Has `work` done before Ctrl-C ends the process, in place of what was to be done so far.
#[cfg(feature = "sql")]
pub fn before_exit(work: impl Fn() + Send + 'static) {
    *LAST.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(work));
}

/// Asks running work to stop; `false` if there is none.
fn stop() -> bool {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(stop) = &*running {
        stop();
    }
    running.is_some()
}

/// Asks again until what runs has ended: a request is lost while a statement is just about to wait for the workers.
fn insist() {
    loop {
        std::thread::sleep(AGAIN);
        if !asked() || !stop() {
            return;
        }
    }
}

/// Whether a Ctrl-C comes too soon after the first to end the process.
fn wait_longer() -> bool {
    let mut patient = PATIENT.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *patient {
        None => false,
        Some(first) => first.get_or_insert_with(Instant::now).elapsed() < PATIENCE,
    }
}

/// From now on, repeated Ctrl-C ends the process only if the first one has had no effect for seconds.
pub fn be_patient() {
    *PATIENT.lock().unwrap_or_else(PoisonError::into_inner) = Some(None);
}

/// Whether Ctrl-C was pressed since the last [`forget`].
pub fn asked() -> bool {
    ASKED.load(Ordering::SeqCst) > 0
}

/// Forgets that Ctrl-C was pressed, as what it was meant for has ended.
pub fn forget() {
    ASKED.store(0, Ordering::SeqCst);
    if let Some(first) = &mut *PATIENT.lock().unwrap_or_else(PoisonError::into_inner) {
        *first = None;
    }
}

/// Calls `stop` on Ctrl-C until the guard is dropped.
pub fn during(stop: impl Fn() + Send + 'static) -> Guard {
    *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stop));
    Guard
}

/// A flag that Ctrl-C sets until the guard is dropped.
pub fn flag() -> (Arc<AtomicBool>, Guard) {
    let stop = Arc::new(AtomicBool::new(false));
    let guard = setting(&stop);
    (stop, guard)
}

/// Sets `stop` on Ctrl-C until the guard is dropped.
pub fn setting(stop: &Arc<AtomicBool>) -> Guard {
    let stop = Arc::clone(stop);
    during(move || stop.store(true, Ordering::SeqCst))
}

/// Ends [`during`].
#[must_use]
pub struct Guard;

impl Drop for Guard {
    fn drop(&mut self) {
        *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// Leaves Ctrl-C to another program on the terminal until the guard is dropped.
pub fn ignore() -> Ignored {
    IGNORED.store(true, Ordering::SeqCst);
    Ignored
}

/// Ends [`ignore`].
#[must_use]
pub struct Ignored;

impl Drop for Ignored {
    fn drop(&mut self) {
        IGNORED.store(false, Ordering::SeqCst);
    }
}
