//! What belongs to one process, and may be closed.

use parking_lot::Mutex;
use pyo3::prelude::*;

use crate::error::InterfaceError;

/// Something that is usable in the process that made it, and until it is closed. In a process that was forked since
/// then it is left as it is: its threads are not there.
pub(crate) struct Owned<T: Send> {
    process: u32,
    what: &'static str,
    value: Mutex<Option<T>>,
}

impl<T: Send> Owned<T> {
    pub(crate) fn new(what: &'static str, value: T) -> Owned<T> {
        Owned {
            process: std::process::id(),
            what,
            value: Mutex::new(Some(value)),
        }
    }

    /// Fails in a process that was forked.
    ///
    /// # Errors
    /// [`InterfaceError`].
    pub(crate) fn check(&self) -> PyResult<()> {
        let here = std::process::id();
        if self.process == here {
            return Ok(());
        }
        Err(InterfaceError::new_err(format!(
            "the database was opened by process {}, of which this one ({here}) was forked: open it again here",
            self.process
        )))
    }

    /// Takes what there is: from now on it is closed.
    pub(crate) fn take(&self) -> Option<T> {
        self.value.lock().take()
    }

    fn closed(&self) -> PyErr {
        InterfaceError::new_err(format!("{} is closed", self.what))
    }
}

impl<T: Clone + Send> Owned<T> {
    /// What there is.
    ///
    /// # Errors
    /// [`InterfaceError`] if it was taken, or belongs to another process.
    pub(crate) fn get(&self) -> PyResult<T> {
        self.check()?;
        self.value.lock().clone().ok_or_else(|| self.closed())
    }
}

impl<T: Send> Owned<T> {
    /// Drops `value` without the interpreter: a thread that is waited for may need it to let go of a data frame.
    fn drop_detached(value: T) {
        let mut value = Some(value);
        let detached = Python::try_attach(|py| py.detach(|| drop(value.take())));
        if detached.is_none() {
            drop(value);
        }
    }
}

impl<T: Send> Drop for Owned<T> {
    fn drop(&mut self) {
        let Some(value) = self.value.get_mut().take() else {
            return;
        };
        if self.process == std::process::id() {
            Owned::drop_detached(value);
        } else {
            std::mem::forget(value);
        }
    }
}
