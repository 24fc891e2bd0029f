//! Loading pages before somebody asks for them (row B6).

use std::panic::AssertUnwindSafe;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt, stream};
use parking_lot::Mutex;

use crate::{PageId, Pool};

/// Loads of one call that go on at the same time.
const AT_ONCE: usize = 16;
/// Calls whose pages are still being loaded; further ones are ignored.
const CALLS: usize = 64;

/// Counts a call as long as it lives.
struct Call(Weak<Pool>);

impl Drop for Call {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.prefetching.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// The thread that loads ahead for those who are in no runtime. The first of them starts it, and
/// it ends with the pool. [`CALLS`] bounds what it is given.
#[derive(Default)]
pub(crate) struct Background {
    running: Mutex<Option<Running>>,
}

struct Running {
    tasks: UnboundedSender<BoxFuture<'static, ()>>,
    thread: JoinHandle<()>,
}

impl Background {
    /// Hands a task to the thread. Without a thread there is no prefetch: the task is dropped.
    fn spawn(&self, task: BoxFuture<'static, ()>) {
        let mut running = self.running.lock();
        if running.is_none() {
            let (tasks, arriving) = unbounded();
            let thread = std::thread::Builder::new()
                .name("buffer-prefetch".to_owned())
                .spawn(move || futures::executor::block_on(serve(arriving)));
            *running = thread.ok().map(|thread| Running { tasks, thread });
        }
        if let Some(running) = &*running {
            let _ = running.tasks.unbounded_send(task);
        }
    }
}

async fn serve(arriving: UnboundedReceiver<BoxFuture<'static, ()>>) {
    let run = |task: BoxFuture<'static, ()>| async move {
        // A source that panics costs its own call, not those of others.
        let _ = AssertUnwindSafe(task).catch_unwind().await;
    };
    arriving.for_each_concurrent(None, run).await;
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(Running { tasks, thread }) = self.running.get_mut().take() {
            drop(tasks);
            // A task can own the last handle of the pool: then we are that thread.
            if thread.thread().id() != std::thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Pool {
    /// Loads pages that are not resident, in the background and as far as there is room: pinned
    /// pages are not waited for, at most a quarter of the frames are filled, and errors are left
    /// to whoever pins the page. Within a tokio runtime a task does it, elsewhere the pool's one
    /// thread for this; dropping the pool ends it.
    pub fn prefetch(self: &Arc<Self>, pages: &[PageId]) {
        let absent = |page: &PageId| {
            let word = self.translation.word(*page);
            word.is_some_and(|word| word.load().is_absent())
        };
        let wanted: Vec<PageId> = pages
            .iter()
            .copied()
            .filter(absent)
            .take((self.frames.len() / 4).max(1))
            .collect();
        if wanted.is_empty() {
            return;
        }
        if self.prefetching.fetch_add(1, Ordering::Relaxed) >= CALLS {
            self.prefetching.fetch_sub(1, Ordering::Relaxed);
            return;
        }
        let call = Call(Arc::downgrade(self));
        let task = async move {
            let pool = &call.0;
            stream::iter(wanted)
                .for_each_concurrent(AT_ONCE, |page| async move {
                    if let Some(pool) = pool.upgrade() {
                        pool.load_ahead(page).await;
                    }
                })
                .await;
            drop(call);
        };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(task)),
            Err(_) => self.background.spawn(task.boxed()),
        }
    }
}
