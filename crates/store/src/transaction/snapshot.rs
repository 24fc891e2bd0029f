//! Snapshots: a version of the store, unchanged for as long as it is held.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::catalog::spaces::{Catalog, Entries};
use crate::state::version::Version;
use crate::store::handle::Store;

/// The store as it was after some commit: catalog and pages. Reading it never waits for a writer.
///
/// Pages that later commits free stay readable for the ids found in this snapshot's catalog.
#[derive(Debug, Clone)]
pub struct Snapshot {
    store: Arc<Store>,
    version: Arc<Version>,
    /// Of a snapshot of a transaction under way: what keeps its pages.
    open: Option<Arc<View>>,
}

/// Counts the snapshots of transactions under way that share a gate.
#[derive(Debug, Default)]
pub(crate) struct Views(AtomicUsize);

impl Views {
    /// Whether none is left.
    pub(super) fn are_gone(&self) -> bool {
        // Pairs with the release in the last one's drop: what it read, it read before we write.
        self.0.load(Ordering::Acquire) == 0
    }
}

/// Keeps the version that a transaction began from, and with it the pages that it frees, and those that it writes.
#[derive(Debug)]
struct View {
    _base: Arc<Version>,
    views: Arc<Views>,
}

impl Drop for View {
    fn drop(&mut self) {
        self.views.0.fetch_sub(1, Ordering::Release);
    }
}

impl Snapshot {
    pub(crate) fn new(store: Arc<Store>, version: Arc<Version>) -> Snapshot {
        Snapshot {
            store,
            version,
            open: None,
        }
    }

    /// The state of a transaction that began from `self` and whose catalog is `catalog` now.
    pub(super) fn of_open(&self, catalog: Catalog, views: &Arc<Views>) -> Snapshot {
        views.0.fetch_add(1, Ordering::Relaxed);
        let number = self.version.number;
        Snapshot {
            store: self.store.clone(),
            version: Arc::new(Version { number, catalog }),
            open: Some(Arc::new(View {
                _base: self.version.clone(),
                views: views.clone(),
            })),
        }
    }

    /// Whether it is the state of a transaction that was under way when it was taken
    /// ([`Transaction::view`](crate::Transaction::view)), and not of a commit.
    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.version.catalog
    }

    /// The number of the commit: 0 for a store just created, then one more for each. That of a transaction under way
    /// is the one that it began from.
    pub fn version(&self) -> u64 {
        self.version.number
    }

    /// The value of a key.
    pub fn get(&self, space: u32, key: &[u8]) -> Option<Arc<[u8]>> {
        self.version.catalog.get(space, key)
    }

    /// The keys that start with `prefix`, and their values, in the order of the keys.
    pub fn prefix(&self, space: u32, prefix: &[u8]) -> Entries<'_> {
        self.version.catalog.prefix(space, prefix)
    }

    /// As [`prefix`](Snapshot::prefix), from the first key that is not less than `from`, which starts with `prefix`.
    /// The cost is that of one search.
    pub fn prefix_from(&self, space: u32, prefix: &[u8], from: &[u8]) -> Entries<'_> {
        self.version.catalog.prefix_from(space, prefix, from)
    }

    /// The pool through which pages are read.
    pub fn pool(&self) -> &Arc<buffer::Pool> {
        self.store.pool()
    }

    /// The store that this is a version of.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }
}

impl Store {
    /// The last committed version. Never waits for a writer.
    pub fn snapshot(self: &Arc<Self>) -> Snapshot {
        Snapshot::new(self.clone(), self.current())
    }
}
