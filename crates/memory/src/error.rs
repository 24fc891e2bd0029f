//! The one error type of this crate.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with memory.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The system did not give address space or memory.
    Map {
        /// How much was asked for.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The [`Budget`](crate::Budget) does not have that much left.
    Budget {
        /// What was asked for, in bytes.
        wanted: u64,
        /// What is taken already, in bytes.
        used: u64,
        /// The limit, in bytes.
        limit: u64,
    },
    /// A file of the system could not be read.
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the system, or a text given in its stead, does not say what it should.
    Parse {
        /// The file, or what was parsed.
        what: String,
        /// 1-based; 0 where the whole is meant.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The system's caches could not be dropped.
    DropCaches {
        /// What the system said.
        source: io::Error,
    },
    /// The kernel does not say where pages are (`move_pages` refused or missing).
    Residency {
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Map { bytes, source } => write!(
                f,
                "cannot map {bytes} bytes of memory: {source}; ask for less, or raise the \
                 memory limit (ulimit -v, vm.overcommit_memory, the container's limit)"
            ),
            Error::Budget {
                wanted,
                used,
                limit,
            } => write!(
                f,
                "{wanted} bytes more would exceed the memory limit: {used} of {limit} bytes are \
                 in use; raise the limit or run less at once"
            ),
            Error::Read { path, source } => write!(f, "cannot read {}: {source}", path.display()),
            Error::Parse { what, line: 0, why } => write!(f, "{what}: {why}"),
            Error::Parse { what, line, why } => write!(f, "{what}, line {line}: {why}"),
            Error::DropCaches { source } => write!(
                f,
                "cannot drop the system's caches ({}: {source}); run as root outside a container, \
                 or drop only those of the store",
                crate::cache::SWITCH
            ),
            Error::Residency { source } => write!(
                f,
                "the kernel does not say where pages are (move_pages: {source}); a container's \
                 seccomp profile may forbid it"
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Map { source, .. }
            | Error::Read { source, .. }
            | Error::DropCaches { source }
            | Error::Residency { source } => Some(source),
            Error::Budget { .. } | Error::Parse { .. } => None,
        }
    }
}
