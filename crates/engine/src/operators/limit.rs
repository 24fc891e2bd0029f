//! Limits without an order: any rows do, and once there are enough nobody need look for more.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::physical::program::Sink;

/// What all workers of a stage count together.
#[derive(Debug)]
pub(crate) struct Limit {
    /// Rows that are enough; `None` if none are.
    wanted: Option<usize>,
    counted: AtomicUsize,
    reached: AtomicBool,
}

impl Limit {
    /// As many as `sink` takes where it has a limit and no order; otherwise there are never enough.
    pub fn new(sink: &Sink) -> Limit {
        let wanted = match sink {
            Sink::Rows {
                order, skip, fetch, ..
            } if order.is_empty() => fetch.map(|n| n.saturating_add(*skip)),
            _ => None,
        };
        Limit {
            wanted,
            counted: AtomicUsize::new(0),
            reached: AtomicBool::new(wanted == Some(0)),
        }
    }

    /// So many rows more came to the sink; true once they are enough.
    pub fn count(&self, rows: usize) -> bool {
        let Some(wanted) = self.wanted else {
            return false;
        };
        if self.counted.fetch_add(rows, Ordering::Relaxed) + rows >= wanted {
            self.reached.store(true, Ordering::Relaxed);
        }
        self.reached()
    }

    /// Whether there are enough.
    pub fn reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}
