//! The configuration of a pool, and the source of its pages.

use std::sync::Arc;

use futures::future::BoxFuture;

pub use crate::page::PageId;
use crate::replacement::Policy;

/// Why a source could not deliver a page; shared by all who waited for it.
pub type LoadError = Arc<dyn std::error::Error + Send + Sync>;

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
    /// Which page makes room for another.
    pub replacement: Policy,
}

/// The source of pages: reads a page into a frame on a miss.
pub trait Source: Send + Sync + 'static {
    /// The placement bucket of a page, 0..=255; its home node is the bucket modulo the nodes.
    ///
    /// Only asked on a miss. A page that is not known has any bucket.
    fn bucket(&self, page: PageId) -> u8;

    /// Reads, verifies and decodes a page into `frame`, which is [`Config::page_size`] bytes long
    /// and holds old bytes; returns the length of the page.
    ///
    /// The future may be dropped before it is ready.
    fn load<'a>(
        &'a self,
        page: PageId,
        frame: &'a mut [u8],
    ) -> BoxFuture<'a, Result<usize, LoadError>>;
}
