//! Group commit: several transactions made durable by one sync of the log.
//!
//! A transaction that has written its record lets the next writer in, and then waits here. The
//! first that finds no sync under way does one, for all records that were written by then; the
//! others wait for it, and those written meanwhile are the next group.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};
use crate::state::group::Waiting;
use crate::store::handle::Store;

/// How often a thread that is about to sync lets another run that writes. A transaction that takes
/// longer is not waited for: this is some microseconds.
const JOIN: usize = 64;

/// The longest that a quick sync takes: about as long as a thread needs to have another one do it.
const QUICK: Duration = Duration::from_micros(400);

impl Store {
    /// Whether a small commit is expected to be over before another thread could have taken it: the log is on a device that
    /// syncs fast, as seen of late, and no other process writes.
    pub fn syncs_quickly(&self) -> bool {
        let took = self.group.sync_time();
        !self.writes_on_demand() && took.is_some_and(|took| took <= QUICK)
    }

    /// Waits until `version`, whose record was written, is durable; syncs the log if nobody does.
    pub(crate) fn make_durable(&self, version: u64) -> Result<()> {
        let group = &self.group;
        let mut state = group.state.lock();
        loop {
            if state.durable >= version {
                return Ok(());
            }
            if let Some(cause) = self.latch.get() {
                return Err(self.uncertain(version, cause.clone()));
            }
            if state.syncing {
                group.ended.wait(&mut state);
                continue;
            }
            state.syncing = true;
            drop(state);
            self.let_others_join();
            state = group.state.lock();
            let target = state.written;
            debug_assert!(target >= version);
            drop(state);
            let begun = Instant::now();
            let synced = self.log.sync();
            group.synced(begun.elapsed());
            state = group.state.lock();
            state.syncing = false;
            match synced {
                Ok(()) => self.show(&mut state, target),
                // A disk that is found full only now is a failure like any other.
                Err(error) => {
                    let cause = Arc::new(Error::Io(Arc::new(error)));
                    let uncertain = self.uncertain(version, cause);
                    self.latch(uncertain.clone());
                    group.ended.notify_all();
                    return Err(uncertain);
                }
            }
            group.ended.notify_all();
        }
    }

    /// Gives those who write just now the time to append their records: the sync is theirs, too.
    fn let_others_join(&self) {
        for _ in 0..JOIN {
            if self.writers.load(Ordering::Relaxed) == 0 {
                break;
            }
            std::thread::yield_now();
        }
    }

    fn show(&self, state: &mut Waiting, durable: u64) {
        state.durable = state.durable.max(durable);
        let mut newest = None;
        while let Some(version) = state.hidden.pop_front_if(|first| first.number <= durable) {
            newest = Some(version);
        }
        if let Some(version) = newest {
            *self.current.write() = version;
        }
    }

    pub(super) fn uncertain(&self, version: u64, cause: Arc<Error>) -> Error {
        let cause = match &*cause {
            // What came first says what happened.
            Error::Uncertain { cause, .. } => cause.clone(),
            _ => cause,
        };
        Error::Uncertain {
            path: self.log.path().to_path_buf(),
            version,
            cause,
        }
    }
}
