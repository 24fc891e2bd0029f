//! The errors of device operations.

use std::path::PathBuf;
use std::sync::Arc;

use crate::holder::Holder;

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failed device operation (row B7). Each names the file, and the offset where one applies.
///
/// Cloning is cheap: one failed read may have to be told to many who waited for it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such file.
    #[error("{path}: no such file")]
    NotFound {
        /// The file that was to be opened.
        path: PathBuf,
    },
    /// The directory that should hold the file does not exist.
    #[error("{path}: the directory does not exist; create it first")]
    NoDirectory {
        /// The file that was to be created.
        path: PathBuf,
    },
    /// A file that was to be created is there already.
    #[error("{path}: exists already; remove it or choose another name")]
    Exists {
        /// The file that was to be created.
        path: PathBuf,
    },
    /// The path names something that is not a regular file.
    #[error("{path}: is not a regular file")]
    NotAFile {
        /// The path.
        path: PathBuf,
    },
    /// The file or its directory may not be used by this user.
    #[error("{path}: permission denied; check the owner and mode of the file and its directory")]
    Denied {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else writes the file, in this process or in another.
    #[error(
        "{path}: is being written by {}; wait until it has ended, or open the file for reading",
        named(.holder.as_ref())
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// Who, where the system tells.
        holder: Option<Holder>,
    },
    /// The file ended, or the device stopped, before all bytes were read.
    #[error(
        "{path}: read only {got} of {wanted} bytes at offset {offset}; the file is shorter than \
         it should be"
    )]
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
    #[error("{path}: wrote only {got} of {wanted} bytes at offset {offset}")]
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
    #[error("{path}: no space left on the device or in the quota; make room and try again")]
    Full {
        /// The file that was to grow.
        path: PathBuf,
    },
    /// An earlier sync of this file failed, so nothing written since the last good one can be
    /// relied upon; the file takes no more writes until it is opened again.
    #[error(
        "{path}: an earlier sync failed, so the file takes no more writes; check the device, then \
         open the file again"
    )]
    Latched {
        /// The file.
        path: PathBuf,
    },
    /// Any other failure the operating system reports.
    #[error("{path}: {action}{} failed: {source}", at(*.offset))]
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
    /// A mapped file became shorter than its map, or a page of it could not be read.
    #[error(
        "{path}: a mapped part of the file was lost: {needed} bytes are mapped and the file has {length}; \
         put it back from a copy, check the device, and open it again"
    )]
    Shrunk {
        /// The file.
        path: PathBuf,
        /// Up to where it is mapped, in bytes.
        needed: u64,
        /// How long it is now.
        length: u64,
    },
    /// More files are mapped than can be watched for losses.
    #[error("{path}: {limit} parts of files are mapped already, and no more can be")]
    TooManyMaps {
        /// The file that was to be mapped.
        path: PathBuf,
        /// How many can be.
        limit: usize,
    },
    /// The operating system could not read, for which a damaged disk is the usual reason.
    #[error("{path}: reading {wanted} bytes at offset {offset} failed: {source}; check the device")]
    Read {
        /// The file.
        path: PathBuf,
        /// Where the read began.
        offset: u64,
        /// How many bytes were asked for.
        wanted: usize,
        /// What the operating system said.
        source: Arc<std::io::Error>,
    },
    /// The memory for a read is shorter than the read.
    #[error("{path}: reading {wanted} bytes at offset {offset} into a buffer of {size}")]
    Room {
        /// The file.
        path: PathBuf,
        /// Where the read was to begin.
        offset: u64,
        /// How many bytes were asked for.
        wanted: usize,
        /// How many the memory has.
        size: usize,
    },
    /// The system refuses a ring of io_uring.
    #[error("io_uring: {why}; read with threads instead")]
    Uring {
        /// Why.
        why: String,
    },
    /// Memory could not be registered for a ring.
    #[error("{bytes} bytes cannot be registered for io_uring: {why}")]
    Unregistered {
        /// The memory.
        bytes: u64,
        /// Why.
        why: String,
    },
    /// The file system refuses to read past the page cache.
    #[error("{path}: direct I/O is refused here: {why}; read through the page cache instead")]
    Direct {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// A failure that [`fault::Disk`](crate::fault::Disk) was told to produce.
    #[error("{path}: {action} failed, as the simulated disk was told to (operation {operation})")]
    Injected {
        /// The simulated file.
        path: PathBuf,
        /// What was being done.
        action: &'static str,
        /// The number of the operation on its disk, from zero.
        operation: u64,
    },
    /// The I/O threads could not be started, or are gone.
    #[error("the I/O threads: {why}")]
    Threads {
        /// Why.
        why: String,
    },
}

/// Who holds a lock.
fn named(holder: Option<&Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), Holder::to_string)
}

/// Where in a file.
fn at(offset: Option<u64>) -> String {
    offset.map_or_else(String::new, |offset| format!(" at offset {offset}"))
}
