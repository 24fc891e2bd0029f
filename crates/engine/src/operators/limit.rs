//! Limits without an order (early termination): any rows will do, and workers stop once there are enough.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::physical::program::Sink;

/// The row count of a limit, shared by all workers of a stage.
#[derive(Debug)]
pub(crate) struct Limit {
    /// The number of rows that suffice; `None` if there is no limit.
    wanted: Option<usize>,
    counted: AtomicUsize,
    reached: AtomicBool,
}

impl Limit {
    /// The limit of `sink`, if it has one and no order; otherwise a limit that is never reached.
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

    /// Counts rows that reached the sink. Returns true once the limit is reached.
    pub fn count(&self, rows: usize) -> bool {
        let Some(wanted) = self.wanted else {
            return false;
        };
        if self.counted.fetch_add(rows, Ordering::Relaxed) + rows >= wanted {
            self.reached.store(true, Ordering::Relaxed);
        }
        self.reached()
    }

    /// Whether the limit is reached.
    pub fn reached(&self) -> bool {
        self.reached.load(Ordering::Relaxed)
    }
}
