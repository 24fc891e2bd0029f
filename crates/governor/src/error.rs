//! The one error type of this crate.

use std::{fmt, io};

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why nothing can be decided. Each message says what failed and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A policy that does not hold together.
    Policy {
        /// What is wrong with it.
        why: String,
    },
    /// The net, or a step of it.
    Net(petri::Error),
    /// A mode, sensor or the like that no text names.
    Name {
        /// What was to be named.
        what: &'static str,
        /// What was given.
        name: String,
        /// What would be accepted.
        known: &'static str,
    },
    /// A recorded trace that is not understood.
    Trace {
        /// 1-based.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The thread that governs the workers could not be started.
    Thread {
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Policy { why } => write!(f, "the policy: {why}"),
            Error::Net(error) => write!(f, "the net: {error}"),
            Error::Name { what, name, known } => {
                write!(f, "there is no {what} '{name}'; give one of {known}")
            }
            Error::Trace { line, why } => write!(f, "trace, line {line}: {why}"),
            Error::Thread { source } => {
                write!(f, "starting the thread that governs the workers: {source}")
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Net(error) => Some(error),
            Error::Thread { source } => Some(source),
            _ => None,
        }
    }
}

impl From<petri::Error> for Error {
    fn from(error: petri::Error) -> Error {
        Error::Net(error)
    }
}
