//! Waiting for the database without the interpreter, and with an eye on Ctrl-C.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::prelude::*;

use crate::error::InternalError;

/// Runs `work` on this thread without the interpreter: for what is over soon, but may wait for a thread that needs the
/// interpreter.
///
/// # Errors
/// [`InternalError`] if it panics.
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    let done = py.detach(|| catch_unwind(AssertUnwindSafe(work)));
    done.map_err(|_| panicked())
}

fn panicked() -> PyErr {
    InternalError::new_err("a thread of the package panicked")
}

/// How often signals are looked at.
const TICK: Duration = Duration::from_millis(50);

/// After how long somebody who waits is told so, and how often.
const PATIENCE: Duration = Duration::from_secs(2);
const AGAIN: Duration = Duration::from_millis(500);

/// Runs `work` on a thread of its own while this one waits, without the interpreter, and looks at signals. When one
/// raises an exception, `stop` is called until the work has ended, and that exception is the result.
///
/// # Errors
/// Those of `work`; [`InternalError`] if it panics; what a signal raises.
pub(crate) fn watched<T: Send>(
    py: Python<'_>,
    stop: impl Fn() + Sync,
    work: impl FnOnce() -> Result<T, atoll::Error> + Send,
) -> PyResult<T> {
    watched_and_told(py, stop, None, work)
}

/// As [`watched`], and calls `tell`, if there is one, with the seconds that have passed: after two, and then twice a
/// second. What it raises is as if a signal had.
///
/// # Errors
/// Those of [`watched`], and what `tell` raises.
pub(crate) fn watched_and_told<T: Send>(
    py: Python<'_>,
    stop: impl Fn() + Sync,
    tell: Option<&Py<PyAny>>,
    work: impl FnOnce() -> Result<T, atoll::Error> + Send,
) -> PyResult<T> {
    let ended = py.detach(|| {
        thread::scope(|scope| {
            let (sender, receiver) = channel();
            let worker = scope.spawn(move || {
                let done = work();
                // Nobody waits any more only if this thread has ended, which the scope rules out.
                let _ = sender.send(());
                done
            });
            let mut raised: Option<PyErr> = None;
            let begun = Instant::now();
            let mut due = begun + PATIENCE;
            while receiver.recv_timeout(TICK) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none() {
                    raised = Python::attach(|py| py.check_signals()).err();
                }
                if let (None, Some(tell)) = (&raised, tell)
                    && Instant::now() >= due
                {
                    let seconds = begun.elapsed().as_secs_f64();
                    raised = Python::attach(|py| tell.call1(py, (seconds,))).err();
                    due = Instant::now() + AGAIN;
                }
                if raised.is_some() {
                    stop();
                }
            }
            (worker.join(), raised)
        })
    });
    match ended {
        (Ok(Ok(_)), Some(raised)) => {
            // What it wrote is committed: who catches this must not do it again. Python before 3.11 has no notes.
            let note = "the statement was done all the same";
            let _ = raised.value(py).call_method1("add_note", (note,));
            Err(raised)
        }
        (_, Some(raised)) => Err(raised),
        (Ok(done), None) => done.map_err(|error| crate::error::of(&error)),
        (Err(_), None) => Err(panicked()),
    }
}
