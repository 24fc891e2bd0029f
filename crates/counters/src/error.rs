//! The one error type of this crate.

use std::io;
use std::path::PathBuf;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with looking at a process.
///
/// A sensor has no errors: what it cannot read is an unavailable
/// [`Value`](crate::Value::Unavailable).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such process.
    #[error(
        "there is no process {pid} (or it is hidden from this user); ps -e lists those there are"
    )]
    NoProcess {
        /// The number asked for.
        pid: u32,
    },
    /// The number is a thread's.
    #[error("{pid} is a thread of process {process}; ask for {process}")]
    Thread {
        /// The number asked for.
        pid: u32,
        /// The process it is a thread of.
        process: u32,
    },
    /// The process ended while it was looked at.
    #[error("process {pid} ended")]
    Ended {
        /// Its number.
        pid: u32,
    },
    /// The process has no memory of its own: a thread of the kernel, or one that has ended
    /// and waits for its parent.
    #[error("process {pid} has no memory of its own: it is {why}")]
    NoMemory {
        /// Its number.
        pid: u32,
        /// Which of the two.
        why: &'static str,
    },
    /// This user may not look at the process.
    #[error(
        "process {pid} does not show this user its {what}: {source}; ask as the user it runs as, or as root"
    )]
    Denied {
        /// Its number.
        pid: u32,
        /// What was refused.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the system could not be read.
    #[error("cannot read {}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the system does not say what it should.
    #[error("{what}{}: {why}", at(*.line))]
    Parse {
        /// The file.
        what: String,
        /// 1-based; 0 where the whole is meant.
        line: usize,
        /// What is wrong.
        why: String,
    },
}

/// `, line 12`, or nothing where the whole file is meant.
fn at(line: usize) -> String {
    match line {
        0 => String::new(),
        line => format!(", line {line}"),
    }
}

impl Error {
    /// The error for a file of process `pid` that could not be read.
    pub(crate) fn of_process(pid: u32, what: &str, source: io::Error) -> Error {
        match source.raw_os_error() {
            Some(libc::ENOENT | libc::ESRCH) => Error::Ended { pid },
            Some(libc::EACCES | libc::EPERM) => Error::Denied {
                pid,
                what: what.to_owned(),
                source,
            },
            _ => Error::Read {
                path: PathBuf::from(format!("/proc/{pid}/{what}")),
                source,
            },
        }
    }

    /// The error for a text that is not understood.
    pub(crate) fn parse(what: impl Into<String>, line: usize, why: impl Into<String>) -> Error {
        Error::Parse {
            what: what.into(),
            line,
            why: why.into(),
        }
    }
}
