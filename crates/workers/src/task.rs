//! Handles of spawned tasks.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use crate::{Error, Result};

/// A handle of a task, which can be awaited for the task's result. Dropping it detaches the task, unless
/// [`abort_on_drop`](JoinHandle::abort_on_drop) was called.
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

    /// Makes dropping the handle abort the task where it next suspends.
    pub fn abort_on_drop(mut self) -> JoinHandle<T> {
        self.abort_on_drop = true;
        self
    }

    /// Aborts the task where it next suspends. A finished task stays finished.
    pub fn abort(&self) {
        self.task.abort();
    }

    /// Whether the task has finished, in whatever way.
    pub fn is_finished(&self) -> bool {
        self.task.is_finished()
    }
}

/// Gives the task's result; [`Error::Panicked`] or [`Error::Cancelled`] if the task did not run to its end.
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

/// Lets the tasks run that wait for the same thread (of [`Workers`](crate::Workers): for any of them). Of several
/// tasks that have yielded, any may be the next to go on.
pub async fn yield_now() {
    tokio::task::yield_now().await;
}

fn error_of(error: tokio::task::JoinError) -> Error {
    match error.try_into_panic() {
        Ok(panic) => Error::Panicked {
            message: message_of(&*panic),
        },
        Err(_) => Error::Cancelled,
    }
}

/// The message of a panic.
fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "(no message)".to_owned())
}
