//! The one error type of this crate.

use std::io;
use std::path::PathBuf;

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Why a database cannot be governed. Each message says what failed and what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the policy: its net, its settings, an unknown name.
    #[error(transparent)]
    Governor(#[from] governor::Error),
    /// There is nothing to govern.
    #[error("nothing to govern: {what}; {hint}")]
    NoTarget {
        /// What was looked for.
        what: String,
        /// What to do.
        hint: &'static str,
    },
    /// The target has ended.
    #[error("{what} has ended")]
    Ended {
        /// The target.
        what: String,
    },
    /// Another governor has this process, or one above or below it.
    #[error("{}; end that one first", already(*.pid, *.by))]
    Governed {
        /// The process that is governed already; 0 where it is a control group.
        pid: u32,
        /// The governor's number.
        by: u32,
    },
    /// The system refused to change something.
    #[error("{what}: {source}; govern processes of your own user, or as root")]
    Refused {
        /// What was to be changed.
        what: String,
        /// The system's error.
        source: io::Error,
    },
    /// A file that could not be read or written.
    #[error("{}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A command that did not do what it should.
    #[error("{what}: {why}")]
    Command {
        /// The command.
        what: String,
        /// Why it failed.
        why: String,
    },
    /// A process cannot be looked at.
    #[error("{0}")]
    Process(#[from] counters::Error),
}

impl From<petri::Error> for Error {
    fn from(error: petri::Error) -> Error {
        Error::Governor(error.into())
    }
}

/// Says that process `pid`, or a control group if that is 0, is governed by process `by`.
fn already(pid: u32, by: u32) -> String {
    if pid == 0 {
        format!(
            "this control group, or one above or below it, is governed already, by process {by}"
        )
    } else {
        format!("process {pid} is governed already, by process {by}")
    }
}
