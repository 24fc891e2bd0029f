//! The tables of a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use store::Snapshot;

use crate::catalog::body::body;
use crate::catalog::table::{Body, Table};
use crate::error::Result;
use crate::format::key;

/// Gives the tables of snapshots. A table that did not change from one snapshot to the next is not
/// decoded again.
#[derive(Debug, Default)]
pub struct Catalog {
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    bodies: HashMap<u32, Arc<Body>>,
    /// Weak, so that an idle catalog keeps no old snapshot (and its freed pages) alive.
    latest: Weak<Tables>,
}

/// The tables of one snapshot.
#[derive(Debug)]
pub struct Tables {
    version: u64,
    tables: BTreeMap<String, Arc<Table>>,
}

impl Catalog {
    /// A catalog that has decoded nothing yet.
    pub fn new() -> Catalog {
        Catalog::default()
    }

    /// The tables of `snapshot`.
    ///
    /// # Errors
    /// [`Error::Damaged`](crate::Error::Damaged) if a record does not decode.
    pub fn tables(&self, snapshot: &Snapshot) -> Result<Arc<Tables>> {
        let mut kept = self.kept.lock();
        if let Some(tables) = kept
            .latest
            .upgrade()
            .filter(|t| t.version == snapshot.version())
        {
            return Ok(tables);
        }
        let mut tables = BTreeMap::new();
        let mut bodies = HashMap::new();
        for (entry, value) in snapshot.prefix(key::DIRECTORY, key::TABLE) {
            let (name, space) = key::directory_entry(&entry, &value)?;
            let body = body(snapshot, &name, space, kept.bodies.get(&space))?;
            bodies.insert(space, body.clone());
            tables.insert(
                name,
                Arc::new(Table {
                    body,
                    snapshot: snapshot.clone(),
                }),
            );
        }
        let tables = Arc::new(Tables {
            version: snapshot.version(),
            tables,
        });
        *kept = Kept {
            bodies,
            latest: Arc::downgrade(&tables),
        };
        Ok(tables)
    }
}

impl Tables {
    /// The names of the tables, in alphabetical order.
    pub fn names(&self) -> Vec<&str> {
        self.tables.keys().map(String::as_str).collect()
    }

    /// The table called `name`.
    pub fn get(&self, name: &str) -> Option<&Arc<Table>> {
        self.tables.get(name)
    }

    /// The version of their snapshot.
    pub fn version(&self) -> u64 {
        self.version
    }
}
