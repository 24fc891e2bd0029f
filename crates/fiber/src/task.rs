//! What is left of a task in the hands of whoever spawned it.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::{Error, Result};

/// A task's result to come. Dropped, the task goes on, unless
/// [`abort_on_drop`](JoinHandle::abort_on_drop) was asked for.
#[derive(Debug)]
#[must_use = "a task's failure is seen only through its handle"]
pub struct JoinHandle<T> {
    task: tokio::task::JoinHandle<T>,
    abort_on_drop: bool,
}

impl<T> JoinHandle<T> {
    pub(crate) fn new(task: tokio::task::JoinHandle<T>) -> JoinHandle<T> {
        JoinHandle {
            task,
            abort_on_drop: false,
        }
    }

    /// From now on dropping the handle aborts the task at its next suspension.
    pub fn abort_on_drop(mut self) -> JoinHandle<T> {
        self.abort_on_drop = true;
        self
    }

    /// Aborts the task at its next suspension; a finished task stays finished.
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Whether the task has finished, one way or another.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

/// [`Error::Panicked`] or [`Error::Cancelled`] where the task did not run to its end.
impl<T> Future for JoinHandle<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let joined = ready!(Pin::new(&mut self.task).poll(context));
        Poll::Ready(joined.map_err(error_of))
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if self.abort_on_drop {
            self.task.abort();
        }
    }
}

fn error_of(error: tokio::task::JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => Error::Panicked {
            message: message_of(&*panic),
        },
        Err(_) => Error::Cancelled,
    }
}

/// The text of a panic.
fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".to_owned())
}
