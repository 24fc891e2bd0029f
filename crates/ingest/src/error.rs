//! The errors of reading files.

use std::any::Any;
use std::io;
use std::path::{Path, PathBuf};

/// The result of reading files.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file cannot be read. Each displays as one line for the user.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file is not there, damaged, or holds what its columns do not take.
    #[error("{}{}: {reason}", .path.display(), at(*.line))]
    File {
        /// The file, as it was named.
        path: PathBuf,
        /// The line, counted from 1, where there is one.
        line: Option<u64>,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// The options contradict each other or the files.
    #[error("{0}")]
    Options(String),
    /// The caller asked for the work to stop.
    #[error("stopped while files were read")]
    Stopped,
}

/// `:12`, or nothing where no line is known.
fn at(line: Option<u64>) -> String {
    line.map_or_else(String::new, |line| format!(":{line}"))
}

impl Error {
    /// The error of a file as a whole.
    pub(crate) fn file(path: &Path, reason: impl Into<String>) -> Error {
        Error::File {
            path: path.to_owned(),
            line: None,
            reason: reason.into(),
        }
    }

    /// The error of one line of a file.
    pub(crate) fn line(path: &Path, line: u64, reason: impl Into<String>) -> Error {
        Error::File {
            path: path.to_owned(),
            line: Some(line),
            reason: reason.into(),
        }
    }

    /// A file that the operating system does not let us read.
    pub(crate) fn io(path: &Path, error: &io::Error) -> Error {
        let advice = match error.kind() {
            io::ErrorKind::NotFound => return Error::file(path, "no such file; check the path"),
            io::ErrorKind::PermissionDenied => "check its permissions",
            io::ErrorKind::InvalidData
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::UnexpectedEof => "it is damaged or cut off; write it again",
            _ => "check the file and its disk",
        };
        Error::file(path, format!("cannot be read: {error}; {advice}"))
    }
}

/// The message of a panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("its data cannot be decoded").to_owned()
}
