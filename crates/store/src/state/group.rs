//! Which versions are durable, and which become so together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::state::version::Version;

/// Which versions are durable, and which wait to be.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) state: Mutex<Waiting>,
    /// Signalled when a sync has ended.
    pub(crate) ended: Condvar,
    /// Syncs of the log that were done for groups.
    pub(crate) syncs: AtomicU64,
    /// Nanoseconds that they took of late, the last one counting most; 0 before the first.
    took: AtomicU64,
}

/// What those who commit wait for.
#[derive(Debug)]
pub(crate) struct Waiting {
    /// The last version that is durable.
    pub(crate) durable: u64,
    /// The last version whose record was written.
    pub(crate) written: u64,
    /// Whether a sync is under way.
    pub(crate) syncing: bool,
    /// Versions that become visible as soon as they are durable, in their order.
    pub(crate) hidden: VecDeque<Arc<Version>>,
}

impl Group {
    /// Everything up to `durable` is durable.
    pub(crate) fn new(durable: u64) -> Group {
        Group {
            state: Mutex::new(Waiting {
                durable,
                written: durable,
                syncing: false,
                hidden: VecDeque::new(),
            }),
            ended: Condvar::new(),
            syncs: AtomicU64::new(0),
            took: AtomicU64::new(0),
        }
    }

    /// Takes note of a sync.
    pub(crate) fn synced(&self, took: Duration) {
        self.syncs.fetch_add(1, Ordering::Relaxed);
        let took = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX).max(1);
        let before = self.took.load(Ordering::Relaxed);
        let now = match before {
            0 => took,
            before => before - before / 4 + took / 4,
        };
        self.took.store(now, Ordering::Relaxed);
    }

    /// How long a sync has taken of late; none before the first.
    pub(crate) fn sync_time(&self) -> Option<Duration> {
        let took = self.took.load(Ordering::Relaxed);
        (took > 0).then(|| Duration::from_nanos(took))
    }

    /// The last version that is durable.
    pub(crate) fn durable(&self) -> u64 {
        self.state.lock().durable
    }

    /// The records up to `version` have been written.
    pub(crate) fn written(&self, version: u64) {
        let mut state = self.state.lock();
        state.written = state.written.max(version);
    }

    /// `version` becomes visible when it is durable. Its record has been written.
    pub(crate) fn hide(&self, version: Arc<Version>) {
        let mut state = self.state.lock();
        state.written = state.written.max(version.number);
        state.hidden.push_back(version);
    }
}
