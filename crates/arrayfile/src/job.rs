//! What an import or export is given: memory, a flag that stops it, and whom to tell how far it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memory::Budget;

use crate::error::{Error, Result};

type Tell<'a> = Box<dyn FnMut(Progress) + Send + 'a>;

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes of the array's values that are done.
    pub done: u64,
    /// Bytes that there are.
    pub total: u64,
}

/// Memory, the flag that stops a run, and whom to tell how far it is.
///
/// ```
/// let job = arrayfile::Job::new(memory::Budget::new(64 << 20))
///     .telling(|progress| eprintln!("{} of {} bytes", progress.done, progress.total));
/// # drop(job);
/// ```
pub struct Job<'a> {
    budget: Arc<Budget>,
    stop: Arc<AtomicBool>,
    tell: Option<Tell<'a>>,
    threads: usize,
}

impl<'a> Job<'a> {
    /// A run that takes its memory from `budget`, is never stopped, tells nobody and has one thread.
    pub fn new(budget: Arc<Budget>) -> Job<'a> {
        Job {
            budget,
            stop: Arc::default(),
            tell: None,
            threads: 1,
        }
    }

    /// The same run, which compresses the chunks of arrays by up to `threads` threads, of which the caller is one.
    pub fn threads(mut self, threads: usize) -> Job<'a> {
        self.threads = threads.max(1);
        self
    }

    /// The same run, which ends with [`Error::Interrupted`] after the chunk at hand once `stop` is set. What it was to
    /// change is then as it was.
    pub fn stopped_by(mut self, stop: Arc<AtomicBool>) -> Job<'a> {
        self.stop = stop;
        self
    }

    /// The same run, which calls `tell` after each chunk from the thread that it runs on.
    pub fn telling(mut self, tell: impl FnMut(Progress) + Send + 'a) -> Job<'a> {
        self.tell = Some(Box::new(tell));
        self
    }

    /// Tells how far the run is.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if it is to stop.
    pub(crate) fn at(&mut self, done: u64, total: u64) -> Result<()> {
        if let Some(tell) = &mut self.tell {
            tell(Progress { done, total });
        }
        // Relaxed: the flag guards no other data.
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }

    /// Sets `bytes` aside until what is returned is dropped; `what` says what for.
    ///
    /// # Errors
    /// [`Error::Memory`].
    pub(crate) fn reserve(&self, what: &str, bytes: u64) -> Result<Reserved> {
        let taken = self.budget.take(bytes);
        taken.map_err(|source| Error::Memory {
            what: what.to_owned(),
            bytes,
            source: Arc::new(source),
        })?;
        Ok(Reserved {
            budget: Arc::clone(&self.budget),
            bytes,
        })
    }

    /// How many threads may work for it.
    pub(crate) fn most_threads(&self) -> usize {
        self.threads
    }

    /// Bytes that are not taken.
    pub(crate) fn free(&self) -> u64 {
        self.budget.limit().saturating_sub(self.budget.used())
    }
}

impl std::fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("budget", &self.budget)
            .field("stop", &self.stop)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

/// Memory that was set aside.
#[derive(Debug)]
pub(crate) struct Reserved {
    budget: Arc<Budget>,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.budget.give(self.bytes);
    }
}
