//! The configuration of a pool, and the source of its pages.

use std::sync::Arc;

use futures::future::BoxFuture;

/// The number of a page in its store.
pub type PageId = u32;

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

    /// The bytes of a page that lie in memory as they are to be read, because their file is mapped
    /// (row M1); `None` for a page that has to be loaded. Such a page takes no frame: the operating
    /// system decides how long it stays in memory.
    ///
    /// Until the page is [discarded](crate::Pool::discard), every call gives the same bytes. They
    /// begin at an address that is a multiple of 64.
    fn mapped(&self, page: PageId) -> Option<&[u8]> {
        let _ = page;
        None
    }

    /// Verifies a mapped page, once, before the first pin of it.
    ///
    /// # Errors
    /// What is wrong with it: whoever pins it is told.
    fn verify(&self, page: PageId, bytes: &[u8]) -> Result<(), LoadError> {
        let _ = (page, bytes);
        Ok(())
    }

    /// Whether the bytes that [`mapped`](Source::mapped) gave were, and are, those of the file.
    ///
    /// # Errors
    /// That a part of the file was lost: what was computed since it was opened may be wrong.
    fn intact(&self) -> Result<(), LoadError> {
        Ok(())
    }
}
