//! The one error type of this crate.

use std::io;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of workers or tasks.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A layout with no threads, or with more than [`MAX_THREADS`](crate::MAX_THREADS).
    #[error(
        "{threads} threads are not possible: choose 1 to {}",
        crate::MAX_THREADS
    )]
    Threads {
        /// The number asked for.
        threads: usize,
    },
    /// A width outside 1 to the number of threads.
    #[error("a width of {width} is not possible: choose 1 to {threads}, the number of threads")]
    Width {
        /// The width asked for.
        width: usize,
        /// The number of threads.
        threads: usize,
    },
    /// The threads could not be started.
    #[error(
        "cannot start the worker threads: {source}; ask for fewer, or raise the limit on processes (ulimit -u)"
    )]
    Start {
        /// The system's error.
        source: io::Error,
    },
    /// A number that no queue has.
    #[error("there is no queue {queue}: choose 0 to {}", queues - 1)]
    Queue {
        /// The number asked for.
        queue: usize,
        /// How many queues there are.
        queues: usize,
    },
    /// A task waited for another in a way that stops its thread.
    #[error("a task cannot block its thread until another ends: spawn it and await its handle")]
    OnWorker,
    /// A task panicked.
    #[error("a task panicked: {message}")]
    Panicked {
        /// The message of the panic.
        message: String,
    },
    /// A task was aborted, or its workers were shut down.
    #[error("the task was cancelled")]
    Cancelled,
}
