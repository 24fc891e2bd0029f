//! Waiting for a number of tasks.

use std::future::Future;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// Counts tasks that have not ended, so that others can wait for all of them (the synchronisation counter of SMILE's
/// fibers, row B8). Clones count together.
///
/// ```
/// use workers::Counter;
///
/// let counter = Counter::default();
/// let pending = counter.pending();
/// assert_eq!(counter.left(), 1);
/// std::thread::spawn(move || drop(pending));
/// counter.wait_blocking();
/// assert_eq!(counter.left(), 0);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Counter(Arc<Count>);

#[derive(Debug, Default)]
struct Count {
    left: Mutex<usize>,
    none: Condvar,
    /// Wakes tasks when none is left.
    woken: Notify,
}

/// One more in the count of a [`Counter`], until it is dropped.
#[derive(Debug)]
#[must_use = "it counts only while it lives"]
pub struct Pending(Arc<Count>);

impl Counter {
    /// Adds one to the count until what is returned is dropped.
    pub fn pending(&self) -> Pending {
        *self.0.left.lock() += 1;
        Pending(self.0.clone())
    }

    /// `task`, which counts from this call until it ends, panics or is dropped.
    pub fn count<F: Future>(&self, task: F) -> impl Future<Output = F::Output> + use<F> {
        let pending = self.pending();
        async move {
            let output = task.await;
            drop(pending);
            output
        }
    }

    /// How many have not ended.
    pub fn left(&self) -> usize {
        *self.0.left.lock()
    }

    /// Suspends the task until none is left. If none is, it does not.
    pub async fn wait(&self) {
        loop {
            let woken = self.0.woken.notified();
            if self.left() == 0 {
                return;
            }
            woken.await;
        }
    }

    /// Blocks the thread until none is left. For threads that are not workers.
    pub fn wait_blocking(&self) {
        let mut left = self.0.left.lock();
        while *left > 0 {
            self.0.none.wait(&mut left);
        }
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut left = self.0.left.lock();
        *left -= 1;
        if *left == 0 {
            self.0.none.notify_all();
            self.0.woken.notify_waiters();
        }
    }
}
