//! Snapshots: a version of the store, unchanged for as long as it is held.

use std::sync::Arc;

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
}

impl Snapshot {
    pub(crate) fn new(store: Arc<Store>, version: Arc<Version>) -> Snapshot {
        Snapshot { store, version }
    }

    pub(crate) fn catalog(&self) -> &Catalog {
        &self.version.catalog
    }

    /// The number of the commit: 0 for a store just created, then one more for each.
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
