//! What can go wrong, one variant per cause.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The result of this crate's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// A part of the data file or of the log that a checksum covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Region {
    /// The identity block at the start of the data file.
    Identity,
    /// One of the two root slots of the data file.
    Root(u8),
    /// The directory, which lists map chunks and catalog spaces.
    Directory,
    /// A chunk of the page map, by number.
    MapChunk(u32),
    /// A space of the catalog, by number.
    Space(u32),
    /// The contents of a page.
    Page(buffer::PageId),
    /// One of the two header slots of the log.
    LogHeader(u8),
    /// A record of the log, by the version it leads to.
    LogRecord(u64),
}

impl fmt::Display for Region {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Region::Identity => write!(f, "identity block"),
            Region::Root(slot) => write!(f, "root slot {slot}"),
            Region::Directory => write!(f, "directory"),
            Region::MapChunk(chunk) => write!(f, "page map chunk {chunk}"),
            Region::Space(space) => write!(f, "catalog space {space}"),
            Region::Page(page) => write!(f, "page {page}"),
            Region::LogHeader(slot) => write!(f, "log header slot {slot}"),
            Region::LogRecord(version) => write!(f, "log record of version {version}"),
        }
    }
}

/// Why the store could not do what it was asked.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Error {
    /// The file does not start with Atoll's magic bytes.
    NotAtoll {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a later release.
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The format version in the file.
        found: u32,
        /// The newest format version that this release reads.
        supported: u32,
    },
    /// The file is shorter than what it says it holds.
    Truncated {
        /// The file.
        path: PathBuf,
        /// The bytes that the file should have at least.
        needed: u64,
        /// The bytes that it has.
        found: u64,
    },
    /// A checksum does not match the bytes it covers, or they make no sense although it does.
    Damaged {
        /// The file.
        path: PathBuf,
        /// What the bytes should have been.
        region: Region,
        /// Where the region starts in the file.
        offset: u64,
        /// What exactly is wrong.
        detail: String,
    },
    /// Another process, or another handle of this one, writes to the store.
    Busy {
        /// The file that is locked.
        path: PathBuf,
        /// Who has locked it, where the system tells.
        holder: Option<io::Holder>,
    },
    /// Another process has committed since this handle opened the store, so it cannot write.
    Changed {
        /// The data file.
        path: PathBuf,
    },
    /// Another process began to open the store and does not end, so the log cannot be folded into
    /// the data file now. Nothing is lost.
    Opening {
        /// The data file.
        path: PathBuf,
    },
    /// The data file is there and its log is not.
    LogMissing {
        /// Where the log should be.
        path: PathBuf,
    },
    /// The log belongs to another store.
    ForeignLog {
        /// The log.
        path: PathBuf,
    },
    /// There is no such file.
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The directory in which the store should be does not exist.
    MissingDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A store is to be created where a file already is.
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Creating the store was cut short, and nothing was ever in it. Creating it again works.
    Unfinished {
        /// The data file.
        path: PathBuf,
    },
    /// No space is left on the device; the transaction is undone, the store stays usable.
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The store is open for reading only.
    ReadOnly {
        /// The data file.
        path: PathBuf,
    },
    /// An earlier failure to write the log left open what is on disk, so nothing more is
    /// committed by this process. Opening the store again clears the matter up.
    Latched {
        /// The data file.
        path: PathBuf,
        /// The failure that came first.
        cause: Arc<Error>,
    },
    /// The log could not be written as it should, so it is unknown whether the commit is durable.
    /// Nothing more is committed by this process; opening the store again shows whether it was.
    Uncertain {
        /// The log.
        path: PathBuf,
        /// The version that the commit leads to.
        version: u64,
        /// What the device said.
        cause: Arc<Error>,
    },
    /// A structure of the file takes more memory than there is.
    Memory {
        /// The file.
        path: PathBuf,
        /// The structure.
        what: String,
        /// The bytes that it takes.
        wanted: u64,
        /// The bytes that are left.
        left: u64,
    },
    /// The page size is not a power of two from 4 KiB to 1 MiB.
    PageSize {
        /// The page size asked for, in bytes.
        bytes: u32,
    },
    /// A page is empty or longer than the store's page size.
    PageLength {
        /// Its length.
        bytes: usize,
        /// The longest possible.
        limit: usize,
    },
    /// No page with this number is live.
    NoSuchPage {
        /// The data file.
        path: PathBuf,
        /// The number.
        page: buffer::PageId,
    },
    /// All 2^32 page numbers are taken.
    OutOfPageIds {
        /// The data file.
        path: PathBuf,
    },
    /// A database was asked for, and this is a store of raw pages.
    RawPages {
        /// The data file.
        path: PathBuf,
    },
    /// A store of raw pages was asked for, and this is another one.
    NotPages {
        /// The data file.
        path: PathBuf,
    },
    /// A page beyond the last one was asked for.
    OutOfBounds {
        /// Its number.
        page: u32,
        /// How many pages there are.
        size: u64,
    },
    /// A page was asked for that holds allocation bits: only the store may use it (row B5).
    Protected {
        /// Its number.
        page: u32,
    },
    /// A page was asked for that nobody has allocated.
    NotAllocated {
        /// Its number.
        page: u32,
    },
    /// A page is to be read to, or written from, bytes of another length than its own.
    PageBytes {
        /// Their length.
        bytes: usize,
        /// That of a page.
        page_size: usize,
    },
    /// A page of a page store could not be brought into memory.
    Unreadable {
        /// Its number.
        page: u32,
        /// Why not.
        cause: Arc<buffer::Error>,
    },
    /// The allocation bits of a page store contradict themselves.
    Allocation {
        /// The data file.
        path: PathBuf,
        /// The page whose bit is wrong.
        page: u32,
        /// What is wrong.
        detail: &'static str,
    },
    /// The changes of one transaction do not fit one log record.
    RecordTooLarge {
        /// The length of the record.
        bytes: u64,
        /// The longest possible.
        limit: u64,
    },
    /// The pool could not be made.
    Pool(Arc<buffer::Error>),
    /// Reading or writing failed.
    Io(Arc<io::Error>),
}

impl Error {
    /// Whether the cause is a full device, after which the store stays usable.
    pub fn is_full(&self) -> bool {
        matches!(self, Error::Full { .. })
    }

    /// Whether folding the log in can be tried again later.
    pub(crate) fn may_wait(&self) -> bool {
        matches!(self, Error::Full { .. } | Error::Opening { .. })
    }

    pub(crate) fn unreadable(page: u32, cause: buffer::Error) -> Error {
        Error::Unreadable {
            page,
            cause: Arc::new(cause),
        }
    }

    pub(crate) fn damaged(
        path: &Path,
        region: Region,
        offset: u64,
        detail: impl Into<String>,
    ) -> Error {
        Error::Damaged {
            path: path.to_path_buf(),
            region,
            offset,
            detail: detail.into(),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::NotAtoll { path } => {
                write!(
                    f,
                    "{}: not an Atoll store (its first bytes are not Atoll's)",
                    path.display()
                )
            }
            Error::NewerFormat {
                path,
                found,
                supported,
            } => write!(
                f,
                "{}: written in format version {found}, this release reads up to version {supported}; use a newer release",
                path.display()
            ),
            Error::Truncated {
                path,
                needed,
                found,
            } => write!(
                f,
                "{}: truncated: {needed} bytes needed, {found} found; restore the file from a copy",
                path.display()
            ),
            Error::Damaged {
                path,
                region,
                offset,
                detail,
            } => {
                write!(
                    f,
                    "{}: {region} at offset {offset} is damaged: {detail}; restore the store from a copy",
                    path.display()
                )?;
                match region {
                    Region::LogRecord(version) => write!(
                        f,
                        ", or give up the commits from version {version} on with `atoll pages STORE repair`"
                    ),
                    _ => Ok(()),
                }
            }
            Error::Busy { path, holder } => {
                write!(f, "{}: ", path.display())?;
                match holder {
                    Some(holder) => holder.fmt(f)?,
                    None => f.write_str("another process")?,
                }
                f.write_str(" is writing to the store; wait until it has ended, or open the store for reading")
            }
            Error::Changed { path } => write!(
                f,
                "{}: another process has changed the store since it was opened here; open it again",
                path.display()
            ),
            Error::Opening { path } => write!(
                f,
                "{}: another process began to open the store and does not go on, so the log was not folded in; \
                 nothing is lost, the next checkpoint does it",
                path.display()
            ),
            Error::LogMissing { path } => write!(
                f,
                "{}: the store's log is missing; put it back beside the data file, it may hold committed changes",
                path.display()
            ),
            Error::ForeignLog { path } => write!(
                f,
                "{}: this log belongs to another store; put back the one that was beside the data file",
                path.display()
            ),
            Error::Missing { path } => write!(f, "{}: no such file", path.display()),
            Error::MissingDirectory { path } => {
                write!(f, "{}: no such directory; make it first", path.display())
            }
            Error::Exists { path } => {
                write!(
                    f,
                    "{}: a file of this name exists; open it, or choose another name",
                    path.display()
                )
            }
            Error::Unfinished { path } => write!(
                f,
                "{}: creating this store was cut short, nothing was ever in it; create it again",
                path.display()
            ),
            Error::Full { path } => write!(
                f,
                "{}: no space left on the device; the transaction was undone, free some space and repeat it",
                path.display()
            ),
            Error::ReadOnly { path } => {
                write!(
                    f,
                    "{}: open for reading only; open the store for writing",
                    path.display()
                )
            }
            Error::Latched { path, cause } => write!(
                f,
                "{}: no more commits after an earlier failure; close the store and open it again: {cause}",
                path.display()
            ),
            Error::Uncertain {
                path,
                version,
                cause,
            } => write!(
                f,
                "{}: whether the commit of version {version} is durable is not known: {cause}; \
                 nothing more is committed, close the store and open it again to see",
                path.display()
            ),
            Error::Memory {
                path,
                what,
                wanted,
                left,
            } => write!(
                f,
                "{}: {what} takes {wanted} bytes of memory and {left} are left; raise the memory limit",
                path.display()
            ),
            Error::PageSize { bytes } => {
                write!(
                    f,
                    "a page size of {bytes} bytes is not possible; use a power of two from 4096 to 1048576"
                )
            }
            Error::PageLength { bytes, limit } => {
                write!(
                    f,
                    "a page of {bytes} bytes is not possible; use 1 to {limit}"
                )
            }
            Error::NoSuchPage { path, page } => {
                write!(f, "{}: page {page} does not exist", path.display())
            }
            Error::OutOfPageIds { path } => {
                write!(
                    f,
                    "{}: all page numbers are in use; drop some tables",
                    path.display()
                )
            }
            Error::RawPages { path } => write!(
                f,
                "{}: a store of raw pages, not a database; look into it with `atoll pages`",
                path.display()
            ),
            Error::NotPages { path } => write!(
                f,
                "{}: not a store of raw pages; open it as a database, or create one under another name",
                path.display()
            ),
            Error::OutOfBounds { page, size } => {
                write!(f, "page {page} does not exist; there are {size}")
            }
            Error::Protected { page } => write!(
                f,
                "page {page} holds the allocation table, which only the store may use"
            ),
            Error::NotAllocated { page } => {
                write!(f, "page {page} is not allocated; allocate it first")
            }
            Error::PageBytes { bytes, page_size } => write!(
                f,
                "{bytes} bytes are not a page; exactly {page_size} are needed"
            ),
            Error::Unreadable { page, cause } => write!(f, "page {page} cannot be read: {cause}"),
            Error::Allocation { path, page, detail } => write!(
                f,
                "{}: the allocation table is damaged at page {page}: {detail}; restore the store from a copy",
                path.display()
            ),
            Error::RecordTooLarge { bytes, limit } => write!(
                f,
                "a transaction of {bytes} bytes of changes is not possible (limit {limit}); commit more often"
            ),
            Error::Pool(error) => error.fmt(f),
            Error::Io(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Latched { cause, .. } | Error::Uncertain { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
