//! Waking tasks at a time, whatever runtime they run on.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

/// A thread that wakes sleeping tasks. The first [`Sleep`] starts it; it ends when this is dropped.
#[derive(Debug, Default)]
pub(crate) struct Timer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Shared {
    sleepers: Mutex<Sleepers>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Sleepers {
    wakers: BTreeMap<(Instant, u64), Waker>,
    next: u64,
    ends: bool,
}

/// Ready at a time.
#[derive(Debug)]
pub(crate) struct Sleep {
    shared: Arc<Shared>,
    key: (Instant, u64),
}

impl Timer {
    pub(crate) fn sleep(&self, until: Instant) -> io::Result<Sleep> {
        let mut thread = self.thread.lock();
        if thread.is_none() {
            let shared = self.shared.clone();
            let started = std::thread::Builder::new()
                .name("buffer-timer".to_owned())
                .spawn(move || shared.run())?;
            *thread = Some(started);
        }
        let mut sleepers = self.shared.sleepers.lock();
        sleepers.next += 1;
        Ok(Sleep {
            shared: self.shared.clone(),
            key: (until, sleepers.next),
        })
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.shared.sleepers.lock().ends = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.get_mut().take()
            // A waker can own the last handle of the pool: then we are that thread.
            && thread.thread().id() != std::thread::current().id()
        {
            // It does nothing that panics but for what a waker does, which is not ours to report.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut sleepers = self.sleepers.lock();
        while !sleepers.ends {
            let Some((&key, _)) = sleepers.wakers.first_key_value() else {
                self.changed.wait(&mut sleepers);
                continue;
            };
            if key.0 > Instant::now() {
                self.changed.wait_until(&mut sleepers, key.0);
            } else if let Some(waker) = sleepers.wakers.remove(&key) {
                // Waking may run what it likes, so not under the lock.
                drop(sleepers);
                waker.wake();
                sleepers = self.sleepers.lock();
            }
        }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if Instant::now() >= self.key.0 {
            return Poll::Ready(());
        }
        let mut sleepers = self.shared.sleepers.lock();
        sleepers.wakers.insert(self.key, context.waker().clone());
        // The thread sleeps until the first of them; later ones need not wake it.
        if sleepers.wakers.first_key_value().map(|(key, _)| *key) == Some(self.key) {
            self.shared.changed.notify_one();
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        let waker = self.shared.sleepers.lock().wakers.remove(&self.key);
        // Dropping a waker may drop a task: not under the lock.
        drop(waker);
    }
}
