//! What of the tables that there are somebody may know of.

use std::collections::BTreeSet;

use atoll::Session;

use crate::errors;
use crate::wire::backend::Report;

/// Those of what there is that somebody may know of.
pub(crate) struct Seen(Option<BTreeSet<String>>);

impl Seen {
    /// Those that the user of a session may.
    ///
    /// # Errors
    /// If the catalog cannot be read.
    pub(crate) fn of(session: &Session) -> Result<Seen, Report> {
        let seen = session.tables_seen();
        Ok(Seen(seen.map_err(|e| errors::report(&e, ""))?))
    }

    /// Whether that is one of them that has this name with its schema.
    pub(crate) fn has(&self, titled: &str) -> bool {
        self.0.as_ref().is_none_or(|all| all.contains(titled))
    }

    /// The same of a schema and a name in it.
    pub(crate) fn has_in(&self, schema: &str, name: &str) -> bool {
        match schema {
            "public" => self.has(name),
            _ => self.has(&format!("{schema}.{name}")),
        }
    }
}
