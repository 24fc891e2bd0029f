//! Sessions of clients of a server: whose they are, what they may know of, and how they end each other.

use std::collections::BTreeSet;

use crate::error::Result;
use crate::session::Session;

impl Session {
    /// The session of a user of this name, as long as the role of that name is the one of this
    /// [number](crate::Logins::number): for servers, which have seen who it is.
    #[must_use]
    pub fn of_role(mut self, name: &str, number: Option<u64>) -> Session {
        self.session = self.session.of_role(name, number);
        self
    }

    /// The tables and views that the user of the session has any right on, by their names, before which stand those of other
    /// schemas than `public` and a point; none if it may see all.
    ///
    /// # Errors
    ///
    /// If the user has no role any more; those of reading the catalog.
    pub fn tables_seen(&self) -> Result<Option<BTreeSet<String>>> {
        Ok(self.session.tables_seen()?)
    }

    /// Has another session of the server end, or only its statement, as `pg_terminate_backend` and `pg_cancel_backend` do;
    /// false if there is no such session.
    ///
    /// # Errors
    ///
    /// If the role of this session may not do that; those of reading the catalog.
    pub fn stop_session(&self, process: i32, ends: bool) -> Result<bool> {
        Ok(self.session.stop_session(process, ends)?)
    }
}
