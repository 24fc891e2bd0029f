//! The pool.

use std::sync::Arc;
use std::time::Duration;

use crate::{Config, Error, PageId, Pin, Result, Source, Statistics};

/// The least number of frames on a node.
pub const FRAMES_PER_NODE: usize = 8;

/// Frames over the memory of all nodes.
pub struct Pool {
    _source: Arc<dyn Source>,
    nodes: usize,
}

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pool").field("nodes", &self.nodes).finish()
    }
}

impl Pool {
    /// Makes a pool of empty frames.
    ///
    /// # Errors
    /// [`Error::PageSize`], [`Error::Nodes`], [`Error::TooSmall`], [`Error::TooLarge`],
    /// [`Error::Memory`].
    pub fn new(
        config: &Config,
        source: Arc<dyn Source>,
        _budget: Arc<memory::Budget>,
    ) -> Result<Arc<Pool>> {
        Ok(Arc::new(Pool {
            _source: source,
            nodes: config.nodes.len(),
        }))
    }

    /// Pins a page that is resident; one compare-and-swap.
    pub fn try_pin(&self, _page: PageId) -> Option<Pin<'_>> {
        None
    }

    /// Pins a page, loading it first where it is not resident.
    ///
    /// # Errors
    /// [`Error::Load`], [`Error::Exhausted`], ...
    pub async fn pin(&self, page: PageId) -> Result<Pin<'_>> {
        Err(Error::NoSuchPage { page, capacity: 0 })
    }

    /// Loads pages in the background, as far as there is room.
    pub fn prefetch(self: &Arc<Self>, _pages: &[PageId]) {}

    /// Drops the frame of a page that was freed.
    ///
    /// # Errors
    /// [`Error::Pinned`].
    pub fn discard(&self, _page: PageId) -> Result<()> {
        Ok(())
    }

    /// Empties all frames that are not pinned.
    pub fn clear(&self) {}

    /// The counters.
    pub fn statistics(&self) -> Statistics {
        Statistics::default()
    }

    /// How many logical nodes the frames lie on.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// The size of a frame in bytes.
    pub fn page_size(&self) -> usize {
        0
    }

    /// The most pins lent out as [`OwnedPin`](crate::OwnedPin) at the same time.
    pub fn lend_limit(&self) -> usize {
        0
    }

    /// Sets [`lend_limit`](Pool::lend_limit).
    pub fn set_lend_limit(&self, _pins: usize) {}

    /// Sets how long a task waits without progress for a frame before
    /// [`Error::Exhausted`]; 5 seconds at first.
    pub fn set_patience(&self, _patience: Duration) {}
}
