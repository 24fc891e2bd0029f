//! The one error type of this crate.

use std::path::PathBuf;
use std::{fmt, io};

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a database cannot be governed. Each message says what failed and what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The policy, its net, or a name that stands for nothing.
    Governor(governor::Error),
    /// Nothing to govern was found.
    NoTarget {
        /// What was looked for.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// The target has ended.
    Ended {
        /// What it was.
        what: String,
    },
    /// Another governor has this process, or one above or below it.
    Governed {
        /// The process that is governed already; 0 where it is a control group.
        pid: u32,
        /// The governor's number.
        by: u32,
    },
    /// The system refused to change something.
    Refused {
        /// What was to be changed.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file that could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A command that did not do what it should.
    Command {
        /// The command.
        what: String,
        /// What it said.
        why: String,
    },
    /// Looking at a process.
    Process(counters::Error),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Governor(error) => write!(f, "{error}"),
            Error::NoTarget { what, hint } => write!(f, "nothing to govern: {what}; {hint}"),
            Error::Ended { what } => write!(f, "{what} has ended"),
            Error::Governed { pid: 0, by } => write!(
                f,
                "this control group, or one above or below it, is governed already, by process {by}; end that one first"
            ),
            Error::Governed { pid, by } => write!(
                f,
                "process {pid} is governed already, by process {by}; end that one first"
            ),
            Error::Refused { what, source } => write!(
                f,
                "{what}: {source}; govern processes of your own user, or as root"
            ),
            Error::File { path, source } => write!(f, "{}: {source}", path.display()),
            Error::Command { what, why } => write!(f, "{what}: {why}"),
            Error::Process(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Governor(error) => error.source(),
            Error::Process(error) => Some(error),
            Error::Refused { source, .. } | Error::File { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<governor::Error> for Error {
    fn from(error: governor::Error) -> Error {
        Error::Governor(error)
    }
}

impl From<petri::Error> for Error {
    fn from(error: petri::Error) -> Error {
        Error::Governor(error.into())
    }
}

impl From<counters::Error> for Error {
    fn from(error: counters::Error) -> Error {
        Error::Process(error)
    }
}
