//! How a store is created and opened.

use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::structures::{is_alignment, is_page_size};

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
    /// Pages begin at multiples of this many bytes in the file: a power of two from 64, which saves
    /// room where they are compressed, to 4096. With 4096, direct reads go into frames without a copy;
    /// a [`PageStore`](crate::PageStore) is made with at least that. A created store keeps it; opening
    /// ignores it.
    pub alignment: u32,
    /// The most bytes of pages that small commits leave in memory: such a page is in the log, is written to
    /// its place later, by a thread of the store's own and with its neighbours, and not at all if it
    /// is freed before. Taken from the memory limit. Where there is no room, pages are written by the
    /// commit, as they are with 0, and by a handle that writes [on demand](Access::OnDemand).
    pub dirty_bytes: u64,
    /// The most bytes of the page map that are kept in memory because they may be needed again: 24 for each page, in
    /// chunks of 1,024 pages. Taken from the memory limit. Chunks that commits have changed stay until the next
    /// checkpoint has written them, and four others in any case.
    pub map_bytes: u64,
    /// Whether the store may be changed, and whether others may at the same time.
    pub access: Access,
    /// What to do with a damaged record of the log that may have been an acknowledged commit.
    pub damage: Damage,
    /// When the log has grown by more than this many bytes, it is folded into the data file, by a
    /// thread of the store's own while commits go on. The log may grow to four times as much before
    /// they wait for it. A handle that writes [on demand](Access::OnDemand) does it within the commit
    /// that made the log so long.
    pub checkpoint_bytes: u64,
    /// What a commit survives once it was acknowledged; a transaction may ask for
    /// [another](crate::Transaction::set_durability).
    pub durability: Durability,
    /// Pages of a transaction with at most this many bytes together, as they are stored, are
    /// written to the log as well, so that one sync of the log makes the commit durable. With
    /// more, the data file is synced first, which then costs less than writing them twice.
    pub small_commit: usize,
}

/// The default of [`Options::small_commit`], in bytes: a commit of one page of any size that tables
/// have takes one sync. Where syncs are fast, two of them cost less than writing a page of 64 KiB
/// twice: by the example `commits`, the time of one to that of two was 0.38 at 4 KiB, 0.69 at 16
/// KiB and 1.47 at 64 KiB on such a disk. Where syncs take milliseconds it is the other way round.
pub const SMALL_COMMIT: usize = 64 << 10;

/// The default of [`Options::map_bytes`]: the map of 2.7 million pages, which are 170 GB where they have 64 KiB.
pub const MAP_BYTES: u64 = 64 << 20;

/// The default of [`Options::dirty_bytes`].
pub const DIRTY_BYTES: u64 = 4 << 20;

/// What a commit survives once [`commit`](crate::Transaction::commit) has returned.
///
/// Whatever is lost, it is whole commits, the last ones: the store is never torn between two of
/// them. A commit makes all those before it as durable as itself. `Power` is as good as the disk's
/// word: one that reports a flush it has not done may lose the last commits, and even damage what
/// a checkpoint wrote shortly before; both are noticed, but where whole sectors of the last
/// commits are missing, which looks as if they had never been acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Nothing: it may be lost when the process ends without [closing](crate::Store::close) the
    /// store. It costs no call to the system but for its pages.
    None,
    /// The end of the process, also by a kill; not the end of the system, nor a loss of power. The
    /// system has been given the commit, and is not waited for.
    Process,
    /// A loss of power: the disk has confirmed the commit.
    #[default]
    Power,
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
            alignment: 64,
            dirty_bytes: DIRTY_BYTES,
            map_bytes: MAP_BYTES,
            access: Access::Write,
            damage: Damage::Refuse,
            checkpoint_bytes: CHECKPOINT_BYTES,
            durability: Durability::default(),
            small_commit: SMALL_COMMIT,
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

    /// The most bytes of dirty pages.
    pub(crate) fn dirty_limit(&self) -> u64 {
        match self.access {
            Access::Write => self.dirty_bytes,
            // Whoever writes next reads them from the file, and writes elsewhere.
            Access::OnDemand | Access::Read => 0,
        }
    }

    /// Whether a store can be created so.
    pub(crate) fn check(&self) -> Result<()> {
        if !is_page_size(self.page_size) {
            return Err(Error::PageSize {
                bytes: self.page_size,
            });
        }
        if !is_alignment(self.alignment) {
            return Err(Error::Alignment {
                bytes: self.alignment,
            });
        }
        Ok(())
    }
}

/// Settings of the buffer pool of a store.
#[derive(Debug, Clone)]
pub struct PoolOptions {
    /// Bytes of all frames together; rounded down to whole pages.
    pub bytes: u64,
    /// The operating system's number of each node's memory; `None` leaves the place to the system.
    pub nodes: Vec<Option<u32>>,
    /// From which of these nodes memory comes, and whether a page may take a frame of another node.
    pub placement: buffer::Placement,
    /// How many partitions share the frames of one node.
    pub partitions_per_node: usize,
    /// Threads that wait for the disk, where no ring of io_uring does.
    pub io_threads: usize,
    /// What is loaded ahead of a [`PageReader`](crate::PageReader): pages that the prefetcher of this
    /// name guesses (rows B6 and B13).
    pub prefetch: buffer::Prefetching,
    /// How pages are read: by a ring or by threads, how many at once, and which are read together
    /// (row B13). The number of threads is [`io_threads`](PoolOptions::io_threads).
    pub reads: io::Settings,
    /// Whether pages are read past the page cache of the operating system. Pages that lie at multiples of
    /// 64 bytes, not of sectors, are then read into a buffer of their own and copied: see
    /// [`alignment`](Options::alignment).
    pub direct: io::Direct,
    /// Whether the frames are registered with the ring, if there is one: the kernel then maps them
    /// once, not at each read. It locks all of them in memory from the start, where they stay.
    pub registered: bool,
    /// The memory limit that the frames are taken from; `None` makes one of just `bytes`.
    pub budget: Option<Arc<memory::Budget>>,
}

impl Default for PoolOptions {
    fn default() -> PoolOptions {
        PoolOptions {
            bytes: 64 << 20,
            nodes: vec![None],
            placement: buffer::Placement::default(),
            partitions_per_node: 4,
            io_threads: 4,
            prefetch: buffer::Prefetching::default(),
            reads: io::Settings {
                // Through the page cache a ring was slower (decision 54).
                backend: io::Backend::Threads,
                ..io::Settings::default()
            },
            direct: io::Direct::Never,
            registered: false,
            budget: None,
        }
    }
}
