//! Waiting for a frame when all are in use, on every node.
//!
//! Nobody may miss a frame that becomes free. The waiter
//! 1. lists itself and raises the flag,
//! 2. looks for a frame once more,
//! 3. sleeps;
//!
//! whoever unpins or gives back a frame
//! 1. makes the frame free (a sequentially consistent change of the word, or the free list under
//!    its lock),
//! 2. looks at the flag, and if it is up lowers it and wakes everybody.
//!
//! In the one order of these four steps either the waiter's look comes after the frame became
//! free, or the flag was up before the other looked at it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures::channel::oneshot;
use parking_lot::Mutex;

/// Those who wait for a frame.
#[derive(Debug, Default)]
pub(crate) struct Starving {
    flag: AtomicBool,
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    waiting: Vec<oneshot::Sender<()>>,
    /// When a frame last became free while a task waited, or a waiter gave up.
    progress: Option<Instant>,
}

impl Starving {
    /// Joins the waiters; the receiver is ready when it is worth looking again.
    pub(crate) fn join(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut inner = self.inner.lock();
        // Those who gave up leave their senders here: no more of them than of the living.
        if inner.waiting.len() >= 32 && inner.waiting.len().is_power_of_two() {
            inner.waiting.retain(|sender| !sender.is_canceled());
        }
        inner.waiting.push(sender);
        self.flag.store(true, Ordering::SeqCst);
        receiver
    }

    /// To be called after a frame became free.
    #[inline]
    pub(crate) fn freed(&self) {
        if self.flag.load(Ordering::SeqCst) {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        let waiting = {
            let mut inner = self.inner.lock();
            self.flag.store(false, Ordering::SeqCst);
            inner.progress = Some(Instant::now());
            std::mem::take(&mut inner.waiting)
        };
        // Waking may run what it likes, so not under the lock.
        for sender in waiting {
            let _ = sender.send(());
        }
    }

    /// When a waiter since `since` may give up: `patience` after the last progress, but not later
    /// than twelve times that after it came, however much others achieve.
    pub(crate) fn deadline(&self, since: Instant, patience: Duration) -> Instant {
        self.inner.lock().deadline(since, patience)
    }

    /// Whether a waiter may give up now. That is progress for the others, who may go on with the
    /// frames it held: they wait for a fifth of `patience` more, at least.
    pub(crate) fn gives_up(&self, since: Instant, patience: Duration) -> bool {
        let mut inner = self.inner.lock();
        let now = Instant::now();
        if now < inner.deadline(since, patience) {
            return false;
        }
        inner.progress = inner.progress.max(now.checked_sub(patience * 4 / 5));
        true
    }
}

impl Inner {
    fn deadline(&self, since: Instant, patience: Duration) -> Instant {
        let progress = self.progress.unwrap_or(since).max(since);
        (progress + patience).min(since + patience * 12)
    }
}
