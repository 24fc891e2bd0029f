//! The errors of the pool.

use std::sync::Arc;

use crate::config::{LoadError, PageId};

/// The result of everything in this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// A failure of the pool (row B7).
///
/// Cloning is cheap: one failed load may have to be told to many who waited for it.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The page size is not a power of two from 4 KiB to 1 MiB.
    #[error(
        "a page size of {page_size} bytes cannot be used; choose a power of two from 4096 to \
         1048576"
    )]
    PageSize {
        /// What was asked for, in bytes.
        page_size: usize,
    },
    /// The number of nodes is not between 1 and 256.
    #[error("a pool over {nodes} nodes cannot be made; choose 1 to 256")]
    Nodes {
        /// What was asked for.
        nodes: usize,
    },
    /// The pool would have fewer frames per node than can work.
    #[error("a pool of {bytes} bytes is too small, it needs at least {needed}; raise --pool")]
    TooSmall {
        /// What was asked for, in bytes.
        bytes: u64,
        /// What is needed at least, in bytes.
        needed: u64,
    },
    /// The memory for frames is not a whole number of frames on each node.
    #[error(
        "a pool of {bytes} bytes is not a multiple of {multiple}, the bytes of one page on each of \
         its nodes; use {lower} or {upper}"
    )]
    NotWhole {
        /// What was asked for, in bytes.
        bytes: u64,
        /// Page size times nodes, in bytes.
        multiple: u64,
        /// The next lower size that fits.
        lower: u64,
        /// The next higher size that fits.
        upper: u64,
    },
    /// The pool would be larger than the memory this process may use.
    #[error(
        "a pool of {bytes} bytes is larger than the {available} bytes of memory this process may \
         use; lower --pool"
    )]
    TooLarge {
        /// What was asked for, in bytes.
        bytes: u64,
        /// What this process may use, in bytes.
        available: u64,
    },
    /// The memory for the frames could not be had.
    #[error("memory for the pool: {source}")]
    Memory {
        /// Why.
        source: Arc<memory::Error>,
    },
    /// The page id is beyond the address space the system gave us for the translation array.
    #[error(
        "page {page} cannot be translated, the system gave us address space for {capacity} pages; \
         raise the limit on virtual memory (ulimit -v)"
    )]
    NoSuchPage {
        /// The page.
        page: PageId,
        /// The number of pages that can be translated.
        capacity: u64,
    },
    /// The source could not deliver the page.
    #[error("page {page}: {source}")]
    Load {
        /// The page.
        page: PageId,
        /// What the source says.
        source: LoadError,
    },
    /// A mapped file lost a part while it was mapped.
    #[error("{source}")]
    Lost {
        /// What the source says.
        source: LoadError,
    },
    /// The source says it delivered more bytes than a frame has.
    #[error("page {page}: the source reports {len} bytes, a frame has {page_size}")]
    TooLong {
        /// The page.
        page: PageId,
        /// The length the source reported, in bytes.
        len: usize,
        /// The size of a frame, in bytes.
        page_size: usize,
    },
    /// Every frame stayed pinned for as long as we were willing to wait.
    #[error(
        "page {page}: {pinned} of the {frames} frames of the pool are in use and none became \
         free; the pool of {bytes} bytes is smaller than this query needs; raise --pool"
    )]
    Exhausted {
        /// The page that was wanted.
        page: PageId,
        /// All frames of the pool.
        frames: usize,
        /// How many of them were pinned or being loaded.
        pinned: usize,
        /// The size of the whole pool, in bytes.
        bytes: u64,
    },
    /// The page is mapped from its file, so it cannot be changed in a frame.
    #[error(
        "page {page}: is mapped from its file and cannot be changed; open the store without --mapped"
    )]
    Mapped {
        /// The page.
        page: PageId,
    },
    /// The page stayed pinned, or held exclusively, for as long as we were willing to wait.
    #[error("page {page}: others held it for {milliseconds} ms; have them drop their guards first")]
    Held {
        /// The page.
        page: PageId,
        /// How long we waited, in milliseconds.
        milliseconds: u64,
    },
    /// The page is pinned, so it cannot be discarded.
    #[error("page {page}: cannot be discarded, it is pinned {pins} times")]
    Pinned {
        /// The page.
        page: PageId,
        /// The pins it has.
        pins: u32,
    },
    /// The page has as many pins as can be counted.
    #[error("page {page}: has too many pins")]
    TooManyPins {
        /// The page.
        page: PageId,
    },
    /// The thread that watches over waiting tasks could not be started.
    #[error("the pool's timer thread: {source}")]
    Thread {
        /// Why.
        source: Arc<std::io::Error>,
    },
}
