//! The atomics of [`word`](crate::word) and [`version`](crate::version); `tests/loom.rs` has loom's in this place.

pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
