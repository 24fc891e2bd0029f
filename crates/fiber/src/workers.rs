//! The worker threads.

use std::cell::Cell;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::{Error, JoinHandle, Layout, MAX_THREADS, Result};

/// Which worker the calling code is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    /// Index of the worker, below the number of threads.
    pub worker: usize,
    /// Index of its node.
    pub node: usize,
}

thread_local! {
    static HERE: Cell<Option<Here>> = const { Cell::new(None) };
}

/// The worker and node the calling code is on; `None` on threads that are not workers. Cheap.
/// A task may be elsewhere after each `await`.
pub fn here() -> Option<Here> {
    HERE.get()
}

/// A set of pinned worker threads and the runtime on them.
#[derive(Debug)]
pub struct Workers {
    layout: Layout,
    runtime: tokio::runtime::Runtime,
    width: AtomicUsize,
}

impl Workers {
    /// Starts the threads of `layout`; the width is their number.
    ///
    /// # Errors
    ///
    /// [`Error::Threads`] for a number of threads outside 1 to [`MAX_THREADS`],
    /// [`Error::Start`] where the system does not give the threads.
    pub fn new(layout: Layout) -> Result<Arc<Workers>> {
        let threads = layout.threads();
        if threads == 0 || threads > MAX_THREADS {
            return Err(Error::Threads { threads });
        }
        let places = layout.places().to_vec();
        let next = AtomicUsize::new(0);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(threads)
            .enable_time()
            .on_thread_start(move || {
                let worker = next.fetch_add(1, Ordering::Relaxed);
                if let Some(place) = places.get(worker) {
                    HERE.set(Some(Here {
                        worker,
                        node: place.node,
                    }));
                }
            })
            .build()
            .map_err(|source| Error::Start { source })?;
        Ok(Arc::new(Workers {
            width: AtomicUsize::new(threads),
            layout,
            runtime,
        }))
    }

    /// Runs a task on the workers.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        JoinHandle::new(self.runtime.spawn(future))
    }

    /// Runs a task on the workers and blocks the calling thread, which must not be a worker,
    /// until it is done.
    ///
    /// # Panics
    ///
    /// When the task panics, with its panic; when called from a task.
    pub fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match self.runtime.block_on(self.runtime.spawn(future)) {
            Ok(output) => output,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(error) => panic!("{error}"),
            },
        }
    }

    /// The runtime on these threads, for code that spawns by itself.
    pub fn handle(&self) -> &tokio::runtime::Handle {
        self.runtime.handle()
    }

    /// How many workers may run.
    pub fn width(&self) -> usize {
        self.width.load(Ordering::Relaxed)
    }

    /// Changes how many workers may run, 1 to the number of threads. May be called from
    /// anywhere, in mid-query too.
    ///
    /// # Errors
    ///
    /// [`Error::Width`] for a width out of range; nothing changes then.
    pub fn set_width(&self, width: usize) -> Result<()> {
        let threads = self.layout.threads();
        if width == 0 || width > threads {
            return Err(Error::Width { width, threads });
        }
        self.width.store(width, Ordering::Relaxed);
        Ok(())
    }

    /// Number of nodes, those without workers included.
    pub fn nodes(&self) -> usize {
        self.layout.nodes()
    }

    /// Number of worker threads: the largest width.
    pub fn threads(&self) -> usize {
        self.layout.threads()
    }

    /// Where the workers are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }
}
