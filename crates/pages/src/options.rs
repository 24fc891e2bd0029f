//! How a page file is opened.

use buffer::{Placement, Prefetching};
use store::Access;

use crate::error::{Error, Result};

/// Most partitions of a pool.
pub const MAX_PARTITIONS: usize = 65_536;

/// Most pages that a thread prefetches.
pub const MAX_PREFETCH: usize = 1024;

/// How a [`PageFile`](crate::PageFile) is created or opened (rows B2 and B4).
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes of the pool, rounded down to whole frames; at least
    /// [`FRAMES_PER_NODE`](buffer::FRAMES_PER_NODE) frames a node.
    pub pool_bytes: u64,
    /// Partitions of the pool over all nodes, 1 to [`MAX_PARTITIONS`]; each node has the same
    /// number, at least one. A small pool has fewer, so that each has eight frames.
    pub partitions: usize,
    /// Whether the pool's memory is dealt to the nodes of the machine, and threads are bound to
    /// cpus. Without, the pool is one node, and the system places all.
    pub numa: bool,
    /// From which of the nodes the pool's memory comes.
    pub placement: Placement,
    /// The machine whose nodes these are, as [`topology::Machine::parse`] takes it; by default the
    /// one at hand.
    pub machine: Option<String>,
    /// Whether pages are read where the operating system maps the file, without frames (row M1).
    pub mapped: bool,
    /// Whether pages are read past the page cache of the operating system, where the file system can.
    pub direct: bool,
    /// The prefetcher that watches what each thread reads, and has more pages loaded meanwhile; beside the fixed number
    /// of pages that a [`Session`](crate::Session) may prefetch.
    pub prefetcher: Prefetching,
    /// Whether the pages may be changed, and by others meanwhile.
    pub access: Access,
}

impl Default for Options {
    /// A pool of 64 MiB in 16 partitions, without regard to nodes, to read and write.
    fn default() -> Options {
        Options {
            pool_bytes: 64 << 20,
            partitions: 16,
            numa: false,
            placement: Placement::default(),
            machine: None,
            mapped: false,
            direct: false,
            prefetcher: Prefetching::default(),
            access: Access::Write,
        }
    }
}

/// Checks that a setting is in its range.
pub(crate) fn within(what: &'static str, value: usize, least: usize, most: usize) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::Setting {
        what,
        value,
        least,
        most,
    })
}
