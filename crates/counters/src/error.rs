//! The one error type of this crate.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with looking at a process.
///
/// A sensor has no errors: what it cannot read is an unavailable
/// [`Value`](crate::Value::Unavailable).
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There is no such process.
    NoProcess {
        /// The number asked for.
        pid: u32,
    },
    /// The number is a thread's.
    Thread {
        /// The number asked for.
        pid: u32,
        /// The process it is a thread of.
        process: u32,
    },
    /// The process ended while it was looked at.
    Ended {
        /// Its number.
        pid: u32,
    },
    /// The process has no memory of its own: a thread of the kernel, or one that has ended
    /// and waits for its parent.
    NoMemory {
        /// Its number.
        pid: u32,
        /// Which of the two.
        why: &'static str,
    },
    /// This user may not look at the process.
    Denied {
        /// Its number.
        pid: u32,
        /// What was refused.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the system could not be read.
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the system does not say what it should.
    Parse {
        /// The file.
        what: String,
        /// 1-based; 0 where the whole is meant.
        line: usize,
        /// What is wrong.
        why: String,
    },
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

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NoProcess { pid } => write!(
                f,
                "there is no process {pid} (or it is hidden from this user); ps -e lists those there are"
            ),
            Error::Thread { pid, process } => write!(
                f,
                "{pid} is a thread of process {process}; ask for {process}"
            ),
            Error::Ended { pid } => write!(f, "process {pid} ended"),
            Error::NoMemory { pid, why } => {
                write!(f, "process {pid} has no memory of its own: it is {why}")
            }
            Error::Denied { pid, what, source } => write!(
                f,
                "process {pid} does not show this user its {what}: {source}; ask as the user it runs as, or as root"
            ),
            Error::Read { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Error::Parse { what, line: 0, why } => write!(f, "{what}: {why}"),
            Error::Parse { what, line, why } => write!(f, "{what}, line {line}: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Denied { source, .. } | Error::Read { source, .. } => Some(source),
            _ => None,
        }
    }
}
