//! The number of a page.

/// The number of a page in its store.
pub type PageId = u32;
