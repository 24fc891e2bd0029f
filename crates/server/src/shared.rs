//! What all clients of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use atoll::Database;
use rustls::ServerConfig;

use crate::admission::Admission;
use crate::files::Files;
use crate::options::Options;
use crate::sessions::Sessions;

/// What all clients of a server share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub database: Database,
    pub options: Options,
    pub admission: Admission,
    pub tls: Option<Arc<ServerConfig>>,
    pub sessions: Arc<Sessions>,
    pub counts: Counts,
    pub stopping: AtomicBool,
    /// The files of the store.
    pub files: Files,
    /// Connections of all listeners that are served.
    pub open: Arc<AtomicUsize>,
    /// Portals and cursors that wait in the middle of their rows.
    pub waiting: Arc<Places>,
}

/// How many of something there may be at a time.
#[derive(Debug)]
pub(crate) struct Places {
    most: usize,
    taken: AtomicUsize,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub(crate) struct Place(Arc<Places>);

impl Places {
    pub(crate) fn new(most: usize) -> Arc<Places> {
        let taken = AtomicUsize::new(0);
        Arc::new(Places { most, taken })
    }

    /// Takes one; none if there is none.
    pub(crate) fn take(self: &Arc<Places>) -> Option<Place> {
        let taken = self.taken.fetch_add(1, Ordering::AcqRel);
        let place = Place(Arc::clone(self));
        (taken < self.most).then_some(place)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.taken.fetch_sub(1, Ordering::AcqRel);
    }
}

/// How many queries may wait in the middle of their rows: each may have a file of what it has spilled, and of the files that
/// the process may open half are for connections and the store.
pub(crate) fn most_waiting() -> usize {
    const FEWEST: usize = 64;
    const OTHERWISE: usize = 512;
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let line = limits
        .lines()
        .find_map(|line| line.strip_prefix("Max open files"));
    let soft = line.and_then(|line| line.split_whitespace().next());
    let soft: Option<usize> = soft.and_then(|soft| soft.parse().ok());
    soft.map_or(OTHERWISE, |files| files / 2).max(FEWEST)
}

impl Shared {
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }
}

/// What has happened since the server started.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub connections: Count,
    pub refused: Count,
    pub failed_logins: Count,
    pub statements: Count,
    pub errors: Count,
    pub cancelled: Count,
    pub rows: Count,
    pub bytes: Count,
    pub microseconds: Count,
}

/// A number that only grows.
#[derive(Debug, Default)]
pub(crate) struct Count(AtomicU64);

impl Count {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
