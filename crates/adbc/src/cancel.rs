//! Cancelling from another thread what a statement or a connection does.
//!
//! An interrupt of the database reaches who waits at that moment, and nobody else: one that comes between two batches, or just
//! before a statement waits, would be lost. So a wish stays with what was to be cancelled ([`Execution`]), and who wishes
//! goes on interrupting until it was noticed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use adbc_core::CancelHandle;
use adbc_core::error::Result;
use atoll::Interrupter;
use parking_lot::Mutex;

use crate::error::{cancelled, state, told};

/// How long who cancels waits for that to be noticed.
const PATIENCE: Duration = Duration::from_secs(5);

/// One execution of a statement, up to the end of its rows.
#[derive(Debug, Default)]
pub(crate) struct Execution {
    /// It is to end.
    wanted: AtomicBool,
    /// The database works for it.
    running: AtomicBool,
    /// There is nothing left to cancel.
    done: AtomicBool,
}

impl Execution {
    /// Has the database do `work`, unless it was cancelled.
    pub(crate) fn run<T>(
        &self,
        work: impl FnOnce() -> std::result::Result<T, atoll::Error>,
    ) -> Result<T> {
        // Who cancels sets `wanted` and looks at `running` then: one of the two sees the other.
        self.running.store(true, Ordering::SeqCst);
        let running = Running(&self.running);
        if self.wanted.load(Ordering::SeqCst) {
            return Err(cancelled());
        }
        let done = told(work());
        drop(running);
        done
    }

    /// There is nothing to cancel any more.
    pub(crate) fn end(&self) {
        self.done.store(true, Ordering::SeqCst);
    }
}

/// Takes back that something runs, also after a panic.
struct Running<'r>(&'r AtomicBool);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// What cancels the executions of a statement, or the calls of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Canceller {
    interrupter: Interrupter,
    current: Arc<Mutex<Option<Arc<Execution>>>>,
}

impl Canceller {
    /// For what runs in `session`.
    pub(crate) fn new(session: &atoll::Session) -> Canceller {
        Canceller {
            interrupter: session.interrupter(),
            current: Arc::default(),
        }
    }

    /// A new execution, which is the one to cancel from now on.
    pub(crate) fn begin(&self) -> Arc<Execution> {
        let execution = Arc::new(Execution::default());
        *self.current.lock() = Some(Arc::clone(&execution));
        execution
    }
}

impl CancelHandle for Canceller {
    fn try_cancel(&self) -> Result<()> {
        let current = self.current.lock().clone();
        let current = current.filter(|execution| !execution.done.load(Ordering::SeqCst));
        let Some(execution) = current else {
            return Err(state("there is nothing to cancel"));
        };
        execution.wanted.store(true, Ordering::SeqCst);
        let begun = Instant::now();
        while execution.running.load(Ordering::SeqCst) && begun.elapsed() < PATIENCE {
            self.interrupter.interrupt();
            thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}
