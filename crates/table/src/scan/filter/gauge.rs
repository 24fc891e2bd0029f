//! How useful a filter is.

use std::sync::atomic::{AtomicU64, Ordering};

/// Counts the rows that a filter tested and those that passed; shared by all who apply the filter.
#[derive(Debug, Default)]
pub struct Gauge {
    tested: AtomicU64,
    passed: AtomicU64,
    /// The filter must not be skipped.
    counts_only: bool,
}

/// Rows after which a gauge is believed, and after which if nearly all rows passed. The second is low, as a filter that comes
/// behind another one may have to look at a hundred times as many rows to test so many.
const GAUGE_ROWS: u64 = 65_536;
const CERTAIN_ROWS: u64 = 4_096;

impl Gauge {
    /// A gauge that only counts: the filter is never [useless](Gauge::is_useless).
    pub fn counting() -> Gauge {
        Gauge {
            counts_only: true,
            ..Gauge::default()
        }
    }

    /// Rows that the filter was tested on, and those that passed.
    pub fn counts(&self) -> (u64, u64) {
        let tested = self.tested.load(Ordering::Relaxed);
        (tested, self.passed.load(Ordering::Relaxed))
    }

    /// Counts rows that the filter was tested on and those that passed.
    pub(crate) fn add(&self, tested: usize, passed: usize) {
        self.tested.fetch_add(tested as u64, Ordering::Relaxed);
        self.passed.fetch_add(passed as u64, Ordering::Relaxed);
    }

    /// Whether the filter may be skipped, as it costs more than it saves: of at least 65,536 rows
    /// three quarters or more passed, or of at least 4,096 rows 31 of 32.
    pub fn is_useless(&self) -> bool {
        if self.counts_only {
            return false;
        }
        let tested = self.tested.load(Ordering::Relaxed);
        let passed = self.passed.load(Ordering::Relaxed);
        (tested >= GAUGE_ROWS && passed * 4 >= tested * 3)
            || (tested >= CERTAIN_ROWS && passed * 32 >= tested * 31)
    }
}
