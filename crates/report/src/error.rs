//! The one error type of this crate.

use std::io;
use std::path::PathBuf;

/// What this crate returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a report could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A plot could not be drawn.
    #[error("cannot draw '{title}': {why}")]
    Plot {
        /// Its title.
        title: String,
        /// What the drawing library said.
        why: String,
    },
    /// A file could not be written.
    #[error("cannot write {path}: {source}")]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}
