//! The one error type of this crate.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a database cannot be governed. Each message says what failed and what to do.
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
            Error::Policy { why } => write!(f, "the policy: {why}"),
            Error::Net(error) => write!(f, "the net: {error}"),
            Error::Name { what, name, known } => {
                write!(f, "there is no {what} '{name}'; give one of {known}")
            }
            Error::Trace { line, why } => write!(f, "trace, line {line}: {why}"),
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
            Error::Net(error) => Some(error),
            Error::Process(error) => Some(error),
            Error::Refused { source, .. } | Error::File { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl From<petri::Error> for Error {
    fn from(error: petri::Error) -> Error {
        Error::Net(error)
    }
}

impl From<counters::Error> for Error {
    fn from(error: counters::Error) -> Error {
        Error::Process(error)
    }
}
