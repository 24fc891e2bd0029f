//! What can go wrong between a device and us.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::Holder;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed device operation (row B7). Each names the file, and the offset where one applies.
///
/// Cloning is cheap: one failed read may have to be told to many who waited for it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    NotFound {
        /// The file that was to be opened.
        path: PathBuf,
    },
    /// The directory that should hold the file does not exist.
    NoDirectory {
        /// The file that was to be created.
        path: PathBuf,
    },
    /// A file that was to be created is there already.
    Exists {
        /// The file that was to be created.
        path: PathBuf,
    },
    /// The path names something that is not a regular file.
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file or its directory may not be used by this user.
    Denied {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else writes the file, in this process or in another.
    Busy {
        /// The file.
        path: PathBuf,
        /// Who, where the system tells.
        holder: Option<Holder>,
    },
    /// The file ended, or the device stopped, before all bytes were read.
    ShortRead {
        /// The file.
        path: PathBuf,
        /// Where the read began.
        offset: u64,
        /// How many bytes were asked for.
        wanted: usize,
        /// How many came.
        got: usize,
    },
    /// The device took only a part of the bytes.
    ShortWrite {
        /// The file.
        path: PathBuf,
        /// Where the write began.
        offset: u64,
        /// How many bytes were to be written.
        wanted: usize,
        /// How many were.
        got: usize,
    },
    /// No room is left on the device, or in the user's quota.
    Full {
        /// The file that was to grow.
        path: PathBuf,
    },
    /// An earlier sync of this file failed, so nothing written since the last good one can be
    /// relied upon; the file takes no more writes until it is opened again.
    Latched {
        /// The file.
        path: PathBuf,
    },
    /// Any other failure the operating system reports.
    Os {
        /// The file.
        path: PathBuf,
        /// What was being done: `"read"`, `"write"`, `"sync"`, ...
        action: &'static str,
        /// Where, if at a place in the file.
        offset: Option<u64>,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
    /// A failure that [`fault::Disk`](crate::fault::Disk) was told to produce.
    Injected {
        /// The simulated file.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// The number of the operation on its disk, from zero.
        operation: u64,
    },
    /// The I/O threads could not be started, or are gone.
    Threads {
        /// Why.
        why: String,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotFound { path } => write!(f, "{}: no such file", path.display()),
            Error::NoDirectory { path } => write!(
                f,
                "{}: the directory does not exist; create it first",
                path.display()
            ),
            Error::Exists { path } => write!(
                f,
                "{}: exists already; remove it or choose another name",
                path.display()
            ),
            Error::NotAFile { path } => write!(f, "{}: is not a regular file", path.display()),
            Error::Denied { path } => write!(
                f,
                "{}: permission denied; check the owner and mode of the file and its directory",
                path.display()
            ),
            Error::Busy { path, holder } => {
                write!(f, "{}: is being written by ", path.display())?;
                match holder {
                    Some(holder) => holder.fmt(f)?,
                    None => f.write_str("another process")?,
                }
                f.write_str("; wait until it has ended, or open the file for reading")
            }
            Error::ShortRead {
                path,
                offset,
                wanted,
                got,
            } => write!(
                f,
                "{}: read only {got} of {wanted} bytes at offset {offset}; \
                 the file is shorter than it should be",
                path.display()
            ),
            Error::ShortWrite {
                path,
                offset,
                wanted,
                got,
            } => write!(
                f,
                "{}: wrote only {got} of {wanted} bytes at offset {offset}",
                path.display()
            ),
            Error::Full { path } => write!(
                f,
                "{}: no space left on the device or in the quota; make room and try again",
                path.display()
            ),
            Error::Latched { path } => write!(
                f,
                "{}: an earlier sync failed, so the file takes no more writes; \
                 check the device, then open the file again",
                path.display()
            ),
            Error::Os {
                path,
                action,
                offset: Some(offset),
                source,
            } => write!(
                f,
                "{}: {action} at offset {offset} failed: {source}",
                path.display()
            ),
            Error::Os {
                path,
                action,
                offset: None,
                source,
            } => write!(f, "{}: {action} failed: {source}", path.display()),
            Error::Injected {
                path,
                action,
                operation,
            } => write!(
                f,
                "{}: {action} failed, as the simulated disk was told to (operation {operation})",
                path.display()
            ),
            Error::Threads { why } => write!(f, "the I/O threads: {why}"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Os { source, .. } => Some(&**source),
            _ => None,
        }
    }
}
