//! The one error type of this crate.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a report could not be made.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A plot could not be drawn.
    Plot {
        /// Its title.
        title: String,
        /// What the drawing library said.
        why: String,
    },
    /// A file could not be written.
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Plot { title, why } => write!(f, "cannot draw '{title}': {why}"),
            Error::Write { path, source } => write!(f, "cannot write {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Write { source, .. } => Some(source),
            Error::Plot { .. } => None,
        }
    }
}
