//! What whoever asks `information_schema` sees. `pg_catalog` tells of everything, as PostgreSQL's does.

use syntax::names::session_of;
use table::{Privileges, Tables};

use crate::rights::Rights;
use crate::search_path::SearchPath;

/// What whoever runs a statement sees of a snapshot: what they have rights on, and the temporary tables of their session.
pub struct Seen<'t> {
    /// The tables of the snapshot.
    pub tables: &'t Tables,
    /// By whose rights.
    pub rights: &'t Rights,
    /// The schema of the temporary tables, if there may be any.
    pub temporary: Option<&'t str>,
    /// Where names are looked up, if anything is told that has some.
    pub path: Option<&'t SearchPath>,
}

impl<'t> Seen<'t> {
    /// Whether this table, view or sequence is seen: if it belongs to a role whose rights they have, or something may be done
    /// with it.
    pub fn has(&self, name: &str) -> bool {
        match session_of(name) {
            Some(schema) => Some(schema) == self.temporary,
            None => {
                self.rights.is_all()
                    || self.rights.owns(self.tables, name)
                    || Privileges::ALL
                        .iter()
                        .any(|(one, ..)| self.rights.has(self.tables, name, *one))
            }
        }
    }

    /// The names of the tables that are seen, in order; materialized views are not in the standard.
    pub(crate) fn names(&self) -> Vec<&'t str> {
        let mut names = self.tables.names();
        names.retain(|name| self.tables.materialized(name).is_none() && self.has(name));
        names.sort_unstable();
        names
    }

    /// The names of the views that are seen, in order.
    pub(crate) fn views(&self) -> Vec<&'t str> {
        let mut names = self.tables.views();
        names.retain(|name| self.has(name));
        names.sort_unstable();
        names
    }
}
