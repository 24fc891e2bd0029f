//! The one error type of this crate.

use std::io;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why nothing can be decided. Each message says what failed and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A policy that is not consistent.
    #[error("the policy: {why}")]
    Policy {
        /// What is wrong with it.
        why: String,
    },
    /// The net cannot be read, or a step of it failed.
    #[error("the net: {0}")]
    Net(#[from] petri::Error),
    /// No mode, sensor or the like has this name.
    #[error("there is no {what} '{name}'; give one of {known}")]
    Name {
        /// What the name was to stand for: a mode, a sensor.
        what: &'static str,
        /// The name.
        name: String,
        /// The names that are accepted.
        known: &'static str,
    },
    /// A recorded trace that is not understood.
    #[error("trace, line {line}: {why}")]
    Trace {
        /// The line, from 1.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The thread that governs the workers could not be started.
    #[error("starting the thread that governs the workers: {source}")]
    Thread {
        /// The system's error.
        source: io::Error,
    },
}
