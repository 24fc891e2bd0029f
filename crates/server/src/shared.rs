//! What all clients of a server share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use atoll::Database;
use rustls::ServerConfig;

use crate::admission::Admission;
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
