//! What a replacement policy is asked, and what it may do.

use std::fmt::Debug;

use crate::page::PageId;
use crate::word::Swept;

/// Frames that a policy looks at, at most, in one call of [`Replacement::victim`], and so under
/// one hold of its lock. When a pool has just filled, every page counts as used: without a bound
/// the first eviction would look at all frames of the partition.
pub const LOOKS: u32 = 1024;

/// As [`LOOKS`], in one call of [`Replacement::cold`].
pub const COLD_LOOKS: u32 = 256;

/// The frames of a partition, as a policy sees them. Other threads pin, load and discard
/// meanwhile: each answer is true at one moment.
pub trait Slots {
    /// Looks at the page in a slot: [`Swept::Aged`] with its usage count if it has no pins.
    fn look(&self, slot: u32) -> Swept;

    /// Takes one use off a page without pins, or evicts it if it has none left.
    fn age(&self, slot: u32) -> Swept;

    /// Sets the usage count of the page in a slot, pinned or not.
    fn set_uses(&self, slot: u32, uses: u32);

    /// Evicts the page in a slot, whatever its count; true if the slot now belongs to the caller.
    fn evict(&self, slot: u32) -> bool;

    /// The page the slot held last.
    fn page(&self, slot: u32) -> PageId;
}

/// The result of a search for a page to evict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victim {
    /// The page in this slot was evicted; the slot belongs to the caller.
    Taken(u32),
    /// [`LOOKS`] slots were looked at and none fell out: call again, or look at all.
    More,
}

/// A replacement policy at work on the slots of one partition. Called by many threads.
pub trait Replacement: Debug + Send + Sync {
    /// A page was loaded into a slot, in place of whatever was there before.
    fn loaded(&self, slot: u32, page: PageId, slots: &dyn Slots);

    /// Evicts a page. Looks at no more than [`LOOKS`] slots.
    fn victim(&self, slots: &dyn Slots) -> Victim;

    /// Evicts a page for one that is only guessed to be wanted: a page whose usage count
    /// is 0, or one that would leave next whatever its count. `None` if there
    /// is none among the [`COLD_LOOKS`] slots it looks at, at most.
    fn cold(&self, slots: &dyn Slots) -> Option<u32>;
}
