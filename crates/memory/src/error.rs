//! The one error type of this crate.

use std::io;
use std::path::PathBuf;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// What can go wrong with memory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The system did not give address space or memory.
    #[error(
        "cannot map {bytes} bytes of memory: {source}; ask for less, or raise the memory limit \
         (ulimit -v, vm.overcommit_memory, the container's limit)"
    )]
    Map {
        /// How much was asked for.
        bytes: u64,
        /// What the system said.
        source: io::Error,
    },
    /// The [`Budget`](crate::Budget) does not have that much left.
    #[error(
        "{wanted} bytes more would exceed the memory limit{}: {used} of {limit} bytes are in use; \
         raise the limit or run less at once",
        of_user(whose.as_deref())
    )]
    Budget {
        /// What was asked for, in bytes.
        wanted: u64,
        /// What is taken already, in bytes.
        used: u64,
        /// The limit, in bytes.
        limit: u64,
        /// Whose it is, where it is the part of one user.
        whose: Option<Box<str>>,
    },
    /// A file of the system could not be read.
    #[error("cannot read {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file of the system, or a text given in its stead, does not say what it should.
    #[error("{what}{}: {why}", in_line(*.line))]
    Parse {
        /// The file, or what was parsed.
        what: String,
        /// 1-based; 0 where the whole is meant.
        line: usize,
        /// What is wrong.
        why: String,
    },
    /// The system's caches could not be dropped.
    #[error(
        "cannot drop the system's caches ({}: {source}); run as root outside a container, or drop \
         only those of the store",
        crate::cache::SWITCH
    )]
    DropCaches {
        /// What the system said.
        source: io::Error,
    },
    /// The kernel does not say where pages are (`move_pages` refused or missing).
    #[error(
        "the kernel does not say where pages are (move_pages: {source}); a container's seccomp \
         profile may forbid it"
    )]
    Residency {
        /// What the system said.
        source: io::Error,
    },
}

/// Words about whose limit it is.
fn of_user(whose: Option<&str>) -> String {
    whose.map_or_else(String::new, |name| format!(" of user \"{name}\""))
}

/// Which line; nothing where the whole is meant.
fn in_line(line: usize) -> String {
    if line == 0 {
        String::new()
    } else {
        format!(", line {line}")
    }
}
