//! The thread that prefetches for callers outside of a tokio runtime.

use std::panic::AssertUnwindSafe;
use std::thread::JoinHandle;

use futures::channel::mpsc::{UnboundedReceiver, UnboundedSender, unbounded};
use futures::future::BoxFuture;
use futures::{FutureExt, StreamExt};
use parking_lot::Mutex;

/// The thread that prefetches for callers outside of a tokio runtime. The first call starts it, and
/// it ends with the pool. Its queue has no bound: callers limit how much they prefetch.
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
    pub(crate) fn spawn(&self, task: BoxFuture<'static, ()>) {
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
