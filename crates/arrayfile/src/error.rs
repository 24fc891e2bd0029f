//! The errors of this crate. Each message names the file, in it the chunk, and what to do.

use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// An error about arrays in files.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The array or its store failed; the message already names it.
    #[error("{0}")]
    Array(#[source] array::Error),
    /// Reading or writing a file failed; the message already names it.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A folder, or a file in it, could not be used.
    #[error("{path}: cannot {action}: {source}")]
    System {
        /// The file or folder.
        path: PathBuf,
        /// What was to be done with it.
        action: &'static str,
        /// What the operating system says.
        source: Arc<std::io::Error>,
    },
    /// What was to be written is there already.
    #[error("{path}: exists already; remove it or choose another name")]
    Exists {
        /// The file or folder.
        path: PathBuf,
    },
    /// A file that is damaged, or not what its name says.
    #[error("{path}: {what}")]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// A file that is sound but has what this crate does not read.
    #[error("{path}: {what}")]
    Unsupported {
        /// The file.
        path: PathBuf,
        /// What it has, and what to do.
        what: String,
    },
    /// A chunk that is damaged.
    #[error(
        "{path}, chunk {chunk}: {what}; write the array again, or remove the file of the chunk to read the fill value in its place"
    )]
    Chunk {
        /// The file of the chunk.
        path: PathBuf,
        /// The numbers of the chunk along each dimension.
        chunk: String,
        /// What is wrong with it.
        what: String,
    },
    /// Options that do not fit the file or the array.
    #[error("{what}")]
    Options {
        /// What does not fit, and what to do.
        what: String,
    },
    /// An array that a file of this format cannot have.
    #[error("array '{array}': {what}")]
    Export {
        /// The array.
        array: String,
        /// What it has, and what to do.
        what: String,
    },
    /// A chunk needs more memory than there is.
    #[error("{what} needs {bytes} bytes of memory: {source}; shorter chunks need less")]
    Memory {
        /// What needs it.
        what: String,
        /// How much.
        bytes: u64,
        /// What is left.
        source: Arc<memory::Error>,
    },
    /// The caller asked to stop; nothing was changed.
    #[error("interrupted")]
    Interrupted,
}

impl From<array::Error> for Error {
    fn from(error: array::Error) -> Error {
        match error {
            array::Error::Interrupted => Error::Interrupted,
            error => Error::Array(error),
        }
    }
}

impl Error {
    pub(crate) fn system(
        path: &Path,
        action: &'static str,
    ) -> impl FnOnce(std::io::Error) -> Error {
        let path = path.to_owned();
        move |source| Error::System {
            path,
            action,
            source: Arc::new(source),
        }
    }

    pub(crate) fn malformed(path: &Path, what: impl Into<String>) -> Error {
        Error::Malformed {
            path: path.to_owned(),
            what: what.into(),
        }
    }

    pub(crate) fn unsupported(path: &Path, what: impl Into<String>) -> Error {
        Error::Unsupported {
            path: path.to_owned(),
            what: what.into(),
        }
    }
}
