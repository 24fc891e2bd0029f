//! The counters of a pool (row B2).

/// A reading of a pool's counters. Taken while others work, so the numbers need not agree to the
/// last one with each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Statistics {
    /// The size of a frame in bytes.
    pub page_size: usize,
    /// All frames.
    pub frames: usize,
    /// Frames that hold a page.
    pub resident: usize,
    /// Frames that hold a page with at least one pin.
    pub pinned: usize,
    /// Pins now lent out as [`OwnedPin`](crate::OwnedPin).
    pub lent: usize,
    /// Pins of a page that was resident.
    pub hits: u64,
    /// Pins of a page that was not, whether it was then loaded, waited for or failed.
    pub misses: u64,
    /// Pages loaded, prefetched ones included.
    pub loads: u64,
    /// Bytes loaded, as the source reported them.
    pub loaded_bytes: u64,
    /// Mapped pages that were verified, which take no frame (row M1).
    pub mapped: u64,
    /// Loads that failed or were dropped half-way.
    pub failures: u64,
    /// Loads that stood still until another task took them over.
    pub takeovers: u64,
    /// Pages loaded into frames by [`Pool::prefetch`](crate::Pool::prefetch).
    pub prefetched: u64,
    /// Of these, pages that were used, the late ones included.
    pub prefetch_used: u64,
    /// Of these, pages that were asked for before they had come: who did so waited, and counts as a
    /// miss.
    pub prefetch_late: u64,
    /// Of these, pages that left the pool before anybody used them.
    pub prefetch_wasted: u64,
    /// Of these, pages that are resident and were not used yet.
    pub prefetch_unused: usize,
    /// Pages that were not prefetched because no frame was free or cold.
    pub prefetch_dropped: u64,
    /// Pages that made room for others.
    pub evictions: u64,
    /// Times a task had to wait because all frames were in use.
    pub waits: u64,
    /// Pages put into a frame of another node than their own, because all frames of that were in
    /// use.
    pub borrowed: u64,
    /// Frames that the clock looked at, in search of one to evict.
    pub looks: u64,
    /// The same, by logical node.
    pub nodes: Vec<NodeStatistics>,
}

impl Statistics {
    /// How many of the prefetched pages were used, 0 to 1; `None` where there are none.
    pub fn accuracy(&self) -> Option<f64> {
        ratio(self.prefetch_used, self.prefetched)
    }

    /// How many of the misses that there would have been prefetching avoided, 0 to 1: pages that were
    /// there when they were asked for. `None` where nothing was missed.
    pub fn coverage(&self) -> Option<f64> {
        let avoided = self.prefetch_used.saturating_sub(self.prefetch_late);
        ratio(avoided, avoided + self.misses)
    }
}

fn ratio(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| (part as f64 / whole as f64).min(1.0))
}

/// The share of one logical node in [`Statistics`].
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeStatistics {
    /// The node the operating system was asked to put the frames on.
    pub os_node: Option<u32>,
    /// Partitions on this node.
    pub partitions: usize,
    /// Frames on this node.
    pub frames: usize,
    /// Frames that hold a page.
    pub resident: usize,
    /// Frames that hold a page with at least one pin.
    pub pinned: usize,
    /// Pins of a page of this node that was not resident.
    pub misses: u64,
    /// Pages of this node that were loaded.
    pub loads: u64,
    /// Pages in frames of this node that made room for others.
    pub evictions: u64,
    /// Times a task that wanted a page of this node had to wait because all frames were in use.
    pub waits: u64,
    /// Pages of this node that were put into a frame of another.
    pub borrowed: u64,
}
