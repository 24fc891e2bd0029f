//! The configuration of a pool.

use std::sync::Arc;

pub use crate::page::PageId;
use crate::prefetch::Prefetching;
use crate::replacement::Policy;

/// Why a source could not deliver a page; shared by all who waited for it.
pub type LoadError = Arc<dyn std::error::Error + Send + Sync>;

/// From which nodes the memory of frames comes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Placement {
    /// Frames of a node lie on it while it has free memory, otherwise on another. A page whose node has no frame to give
    /// takes one of another node.
    #[default]
    Prefer,
    /// Frames of a node lie on it and nowhere else, and a page takes a frame of its own node or waits for one. Where a
    /// node has less memory than its frames need, the system ends the process.
    Bind,
    /// Each frame lies on all nodes in turn, 4 KiB by 4 KiB (2 MiB where huge pages are used).
    Interleave,
    /// A frame lies on the node of the thread that first fills it.
    FirstUse,
}

/// The size and shape of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// Memory for frames in bytes, over all nodes. Rounded down to whole frames on each node, of
    /// which there must be at least [`FRAMES_PER_NODE`](crate::FRAMES_PER_NODE).
    pub bytes: u64,
    /// The size of a frame in bytes: a power of two from 4 KiB to 1 MiB (row B1).
    pub page_size: usize,
    /// How many partitions share the frames of one node (row B4). Zero leaves the choice to the
    /// pool; small pools have fewer, so that each has at least eight frames.
    pub partitions_per_node: usize,
    /// One entry for each logical node, 1 to 256: the number by which the operating system knows
    /// it, or `None` where its memory need not lie anywhere in particular.
    pub nodes: Vec<Option<u32>>,
    /// From which of these nodes memory comes.
    pub placement: Placement,
    /// Which page makes room for another.
    pub replacement: Policy,
    /// What [readers](crate::Reader) of the pool load ahead, each for itself.
    pub prefetch: Prefetching,
}
