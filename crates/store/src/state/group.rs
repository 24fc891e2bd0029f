//! Which versions are durable, and which become so together.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

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
        }
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
