//! The one error type of this crate.

use std::fmt;
use std::io;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with workers and tasks.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A layout without threads, or with more than [`MAX_THREADS`](crate::MAX_THREADS).
    Threads {
        /// What was asked for.
        threads: usize,
    },
    /// A width outside 1 to the number of threads.
    Width {
        /// What was asked for.
        width: usize,
        /// The number of threads.
        threads: usize,
    },
    /// The threads could not be started.
    Start {
        /// What the system said.
        source: io::Error,
    },
    /// A task panicked.
    Panicked {
        /// The message of the panic.
        message: String,
    },
    /// A task was aborted, or its workers were shut down.
    Cancelled,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Threads { threads } => write!(
                f,
                "{threads} threads are not possible: choose 1 to {}",
                crate::MAX_THREADS
            ),
            Error::Width { width, threads } => write!(
                f,
                "a width of {width} is not possible: choose 1 to {threads}, the number of threads"
            ),
            Error::Start { source } => write!(
                f,
                "cannot start the worker threads: {source}; ask for fewer, or raise the limit \
                 on processes (ulimit -u)"
            ),
            Error::Panicked { message } => write!(f, "a task panicked: {message}"),
            Error::Cancelled => write!(f, "the task was cancelled"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Start { source } => Some(source),
            _ => None,
        }
    }
}
