//! What a long run is given: memory, a flag that stops it, and whom to tell how far it is.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use memory::Budget;

use crate::error::{Error, Result};

/// What a load or a reordering is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// Reads and parses the file; counted in bytes of the file as it lies on disk.
    Read,
    /// Numbers the vertices; counted in vertices.
    Number,
    /// Looks for an order; counted in vertices.
    Order,
    /// Sorts the edges under their numbers; counted in edges, an undirected one twice.
    Sort,
    /// Writes the lists into pages; counted in edges, once for each direction.
    Write,
}

impl Phase {
    /// A short name.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Read => "read",
            Phase::Number => "number",
            Phase::Order => "order",
            Phase::Sort => "sort",
            Phase::Write => "write",
        }
    }
}

/// How far a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// What it is doing. A phase does not come again once the next has begun.
    pub phase: Phase,
    /// How much of it is done, in units of the phase.
    pub done: u64,
    /// How much there is, in the same unit; 0 where it is not known (a pipe).
    pub total: u64,
}

type Tell<'a> = Box<dyn FnMut(Progress) + Send + 'a>;

/// Memory, the flag that stops a run, and whom to tell how far it is.
///
/// ```
/// use std::sync::atomic::AtomicBool;
/// use std::sync::Arc;
///
/// let stop = Arc::new(AtomicBool::new(false));
/// let job = graph::Job::new(memory::Budget::new(64 << 20))
///     .stopped_by(stop)
///     .telling(|progress| eprintln!("{}: {}", progress.phase.name(), progress.done));
/// # drop(job);
/// ```
pub struct Job<'a> {
    budget: Arc<Budget>,
    stop: Arc<AtomicBool>,
    tell: Option<Tell<'a>>,
}

impl<'a> Job<'a> {
    /// A run that takes its memory from `budget`, is never stopped and tells nobody.
    pub fn new(budget: Arc<Budget>) -> Job<'a> {
        Job {
            budget,
            stop: Arc::default(),
            tell: None,
        }
    }

    /// The same run, which ends with [`Error::Interrupted`] soon after `stop` is set. What it was to change is then as
    /// it was.
    pub fn stopped_by(mut self, stop: Arc<AtomicBool>) -> Job<'a> {
        self.stop = stop;
        self
    }

    /// The same run, which calls `tell` several times a second from the thread that it runs on.
    pub fn telling(mut self, tell: impl FnMut(Progress) + Send + 'a) -> Job<'a> {
        self.tell = Some(Box::new(tell));
        self
    }

    pub(crate) fn budget(&self) -> &Arc<Budget> {
        &self.budget
    }

    /// Tells how far the run is.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if it is to stop.
    pub(crate) fn at(&mut self, phase: Phase, done: u64, total: u64) -> Result<()> {
        if let Some(tell) = &mut self.tell {
            tell(Progress { phase, done, total });
        }
        self.go_on()
    }

    /// Whether the run may go on.
    ///
    /// # Errors
    /// [`Error::Interrupted`] if it is to stop.
    pub(crate) fn go_on(&self) -> Result<()> {
        // Relaxed: the flag guards no other data.
        if self.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        Ok(())
    }
}

impl std::fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job")
            .field("budget", &self.budget)
            .field("stop", &self.stop)
            .finish_non_exhaustive()
    }
}
