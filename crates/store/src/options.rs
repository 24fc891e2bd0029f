//! How a store is created and opened.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::structures::is_page_size;

/// The default of [`Options::checkpoint_bytes`].
pub const CHECKPOINT_BYTES: u64 = 16 << 20;

/// What a handle does with a store, and what others may do meanwhile. One handle writes at a time,
/// of all processes; any number read beside it, each the version that it found when it opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Reads. The files are not written to: what the log holds is applied in memory only.
    Read,
    /// Reads, and is the writer only while a transaction or a checkpoint lasts. One that begins
    /// after another process has committed fails with [`Error::Changed`]: open the store again.
    OnDemand,
    /// Is the writer until the handle is dropped.
    Write,
}

impl Access {
    /// How the files are opened.
    pub(crate) fn of_files(self) -> io::Access {
        match self {
            Access::Read => io::Access::Read,
            Access::OnDemand | Access::Write => io::Access::Write,
        }
    }
}

/// Settings of [`Store::create`](crate::Store::create) and [`Store::open`](crate::Store::open).
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of a page: a power of two from 4 KiB to 1 MiB; tables want 16, 32 or 64 KiB. A
    /// created store keeps it; opening ignores it.
    pub page_size: u32,
    /// The buffer pool through which pages are read.
    pub pool: PoolOptions,
    /// Whether pages that are stored as they are, not compressed, are read where the operating system
    /// mapped the file, in place of frames of the pool (row M1): the part of the file that there is
    /// when the store is opened. A simulated device cannot be mapped.
    pub mapped: bool,
    /// Whether pages are compressed when they are written, where that saves a fifth or more: off for
    /// a store that is going to be mapped.
    pub compress: bool,
    /// Whether the store may be changed, and whether others may at the same time.
    pub access: Access,
    /// What to do with a damaged record of the log that may have been an acknowledged commit.
    pub damage: Damage,
    /// A log longer than this many bytes is folded into the data file by the commit that made it
    /// so.
    pub checkpoint_bytes: u64,
}

/// What opening a store does where the log is damaged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Damage {
    /// Fails with [`Error::Damaged`], and changes nothing.
    #[default]
    Refuse,
    /// Gives up the damaged record and all that follow, though their commits were perhaps
    /// acknowledged. [`Store::recovery`](crate::Store::recovery) says which. Pages of an older
    /// version may have been written over since, which [`Store::check`](crate::Store::check) finds.
    /// Opened for writing, the store forgets what it gave up: keep a copy of the log.
    Drop,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            page_size: 64 << 10,
            pool: PoolOptions::default(),
            mapped: false,
            compress: true,
            access: Access::Write,
            damage: Damage::Refuse,
            checkpoint_bytes: CHECKPOINT_BYTES,
        }
    }
}

impl Options {
    /// The default settings, for reading only.
    pub fn read_only() -> Options {
        Options {
            access: Access::Read,
            ..Options::default()
        }
    }

    pub(crate) fn check_page_size(&self) -> Result<()> {
        match self.page_size {
            bytes if is_page_size(bytes) => Ok(()),
            bytes => Err(Error::PageSize { bytes }),
        }
    }
}

/// Settings of the buffer pool of a store.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// Bytes of all frames together; rounded down to whole pages.
    pub bytes: u64,
    /// The operating system's number of each node's memory; `None` leaves the place to the system.
    pub nodes: Vec<Option<u32>>,
    /// How many partitions share the frames of one node.
    pub partitions_per_node: usize,
    /// Threads that wait for the disk.
    pub io_threads: usize,
    /// The memory limit that the frames are taken from; `None` makes one of just `bytes`.
    pub budget: Option<Arc<memory::Budget>>,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions {
            bytes: 64 << 20,
            nodes: vec![None],
            partitions_per_node: 4,
            io_threads: 4,
            budget: None,
        }
    }
}
