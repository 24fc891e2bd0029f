//! The errors of this crate, one variant per cause.

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
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A transaction that stands within another was to be committed by itself.
    #[error(
        "{path}: a transaction within another is not committed by itself: the outer one adopts it"
    )]
    Nested {
        /// The data file.
        path: PathBuf,
    },
    /// The file is mapped, so its pages cannot be moved.
    #[error("{path}: is mapped, so no page of it can be moved; vacuum it without --mapped")]
    Mapped {
        /// The data file.
        path: PathBuf,
    },
    /// The file does not start with Atoll's magic bytes.
    #[error("{path}: not an Atoll store (its first bytes are not Atoll's)")]
    NotAtoll {
        /// The file.
        path: PathBuf,
    },
    /// The file was written by a later release.
    #[error(
        "{path}: written in format version {found}, this release reads up to version {supported}; \
         use a newer release"
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// The format version in the file.
        found: u32,
        /// The newest format version that this release reads.
        supported: u32,
    },
    /// The file is shorter than what it says it holds.
    #[error(
        "{path}: truncated: {needed} bytes needed, {found} found; restore the file from a copy"
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// The bytes that the file should have at least.
        needed: u64,
        /// The bytes that it has.
        found: u64,
    },
    /// A checksum does not match the bytes it covers, or they make no sense although it does.
    #[error(
        "{path}: {region} at offset {offset} is damaged: {detail}; restore the store from a copy{}",
        remedy(*.region)
    )]
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
    #[error(
        "{path}: {} is writing to the store; wait until it has ended, or open the store for reading",
        named(.holder.as_ref())
    )]
    Busy {
        /// The file that is locked.
        path: PathBuf,
        /// Who has locked it, where the system tells.
        holder: Option<io::Holder>,
    },
    /// Another process has committed since this handle opened the store, so it cannot write.
    #[error(
        "{path}: another process has changed the store since it was opened here; open it again"
    )]
    Changed {
        /// The data file.
        path: PathBuf,
    },
    /// Another process began to open the store and does not end, so the log cannot be folded into
    /// the data file now. Nothing is lost.
    #[error(
        "{path}: another process began to open the store and does not go on, so the log was not \
         folded in; nothing is lost, the next checkpoint does it"
    )]
    Opening {
        /// The data file.
        path: PathBuf,
    },
    /// The data file is there and its log is not.
    #[error(
        "{path}: the store's log is missing; put it back beside the data file, it may hold \
         committed changes"
    )]
    LogMissing {
        /// Where the log should be.
        path: PathBuf,
    },
    /// The log belongs to another store.
    #[error(
        "{path}: this log belongs to another store; put back the one that was beside the data file"
    )]
    ForeignLog {
        /// The log.
        path: PathBuf,
    },
    /// There is no such file.
    #[error("{path}: no such file")]
    Missing {
        /// The file.
        path: PathBuf,
    },
    /// The directory in which the store should be does not exist.
    #[error("{path}: no such directory; make it first")]
    MissingDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A store is to be created where a file already is.
    #[error("{path}: a file of this name exists; open it, or choose another name")]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Creating the store was cut short, and nothing was ever in it. Creating it again works.
    #[error("{path}: creating this store was cut short, nothing was ever in it; create it again")]
    Unfinished {
        /// The data file.
        path: PathBuf,
    },
    /// No space is left on the device; the transaction is undone, the store stays usable.
    #[error(
        "{path}: no space left on the device; the transaction was undone, free some space and \
         repeat it"
    )]
    Full {
        /// The file that could not grow.
        path: PathBuf,
    },
    /// The store is open for reading only.
    #[error("{path}: open for reading only; open the store for writing")]
    ReadOnly {
        /// The data file.
        path: PathBuf,
    },
    /// An earlier failure to write the log left open what is on disk, so nothing more is
    /// committed by this process. Opening the store again clears the matter up.
    #[error(
        "{path}: no more commits after an earlier failure; close the store and open it again: \
         {cause}"
    )]
    Latched {
        /// The data file.
        path: PathBuf,
        /// The failure that came first.
        #[source]
        cause: Arc<Error>,
    },
    /// The log could not be written as it should, so it is unknown whether the commit is durable.
    /// Nothing more is committed by this process; opening the store again shows whether it was.
    #[error(
        "{path}: whether the commit of version {version} is durable is not known: {cause}; \
         nothing more is committed, close the store and open it again to see"
    )]
    Uncertain {
        /// The log.
        path: PathBuf,
        /// The version that the commit leads to.
        version: u64,
        /// What the device said.
        #[source]
        cause: Arc<Error>,
    },
    /// A structure of the file takes more memory than there is.
    #[error(
        "{path}: {what} takes {wanted} bytes of memory and {left} are left; raise the memory limit"
    )]
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
    #[error(
        "a page size of {bytes} bytes is not possible; use a power of two from 4096 to 1048576"
    )]
    PageSize {
        /// The page size asked for, in bytes.
        bytes: u32,
    },
    /// The alignment is not a power of two from 64 to 4096.
    #[error(
        "pages at multiples of {bytes} bytes are not possible; use a power of two from 64 to 4096"
    )]
    Alignment {
        /// The alignment asked for, in bytes.
        bytes: u32,
    },
    /// A page is empty or longer than the store's page size.
    #[error("a page of {bytes} bytes is not possible; use 1 to {limit}")]
    PageLength {
        /// Its length.
        bytes: usize,
        /// The longest possible.
        limit: usize,
    },
    /// No page with this number is live.
    #[error("{path}: page {page} does not exist")]
    NoSuchPage {
        /// The data file.
        path: PathBuf,
        /// The number.
        page: buffer::PageId,
    },
    /// All 2^32 page numbers are taken.
    #[error("{path}: all page numbers are in use; drop some tables")]
    OutOfPageIds {
        /// The data file.
        path: PathBuf,
    },
    /// A database was asked for, and this is a store of raw pages.
    #[error("{path}: a store of raw pages, not a database; look into it with `atoll pages`")]
    RawPages {
        /// The data file.
        path: PathBuf,
    },
    /// A store of raw pages was asked for, and this is another one.
    #[error(
        "{path}: not a store of raw pages; open it as a database, or create one under another name"
    )]
    NotPages {
        /// The data file.
        path: PathBuf,
    },
    /// A page beyond the last one was asked for.
    #[error("page {page} does not exist; there are {size}")]
    OutOfBounds {
        /// Its number.
        page: u32,
        /// How many pages there are.
        size: u64,
    },
    /// A page was asked for that holds allocation bits: only the store may use it (row B5).
    #[error("page {page} holds the allocation table, which only the store may use")]
    Protected {
        /// Its number.
        page: u32,
    },
    /// A page was asked for that nobody has allocated.
    #[error("page {page} is not allocated; allocate it first")]
    NotAllocated {
        /// Its number.
        page: u32,
    },
    /// A page is to be read to, or written from, bytes of another length than its own.
    #[error("{bytes} bytes are not a page; exactly {page_size} are needed")]
    PageBytes {
        /// Their length.
        bytes: usize,
        /// That of a page.
        page_size: usize,
    },
    /// A page of a page store could not be brought into memory.
    #[error("page {page} cannot be read: {cause}")]
    Unreadable {
        /// Its number.
        page: u32,
        /// Why not.
        cause: Arc<buffer::Error>,
    },
    /// The allocation bits of a page store contradict themselves.
    #[error(
        "{path}: the allocation table is damaged at page {page}: {detail}; restore the store from \
         a copy"
    )]
    Allocation {
        /// The data file.
        path: PathBuf,
        /// The page whose bit is wrong.
        page: u32,
        /// What is wrong.
        detail: &'static str,
    },
    /// The changes of one transaction do not fit one log record.
    #[error(
        "a transaction of {bytes} bytes of changes is not possible (limit {limit}); commit more \
         often"
    )]
    RecordTooLarge {
        /// The length of the record.
        bytes: u64,
        /// The longest possible.
        limit: u64,
    },
    /// The pool could not be made.
    #[error("{0}")]
    Pool(Arc<buffer::Error>),
    /// Reading or writing failed.
    #[error("{0}")]
    Io(Arc<io::Error>),
}

impl Error {
    /// The code that PostgreSQL has for an error of this kind: five digits and letters, as of the SQL standard.
    pub fn sqlstate(&self) -> &'static str {
        match self {
            Error::Full { .. } => "53100",
            Error::ReadOnly { .. } => "25006",
            Error::Busy { .. } | Error::Changed { .. } => "55006",
            Error::Damaged { .. } => "XX001",
            _ => "58030",
        }
    }
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

/// Who writes to a store.
fn named(holder: Option<&io::Holder>) -> String {
    holder.map_or_else(|| "another process".to_owned(), io::Holder::to_string)
}

/// What the user can do about a damaged region, besides restoring a copy; empty if nothing.
fn remedy(region: Region) -> String {
    match region {
        Region::LogRecord(version) => format!(
            ", or give up the commits from version {version} on with `atoll pages STORE repair`"
        ),
        _ => String::new(),
    }
}
