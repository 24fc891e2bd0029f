//! Whose a session is among those of a server, and which others it may stop.

use std::sync::Arc;

use catalog::settings::{DateSettings, MayStop};

use crate::error::Result;
use crate::statements::session::Session;

impl Session {
    /// The session of a user of this name, as long as the role of that name is the one of this number: one that is dropped
    /// takes its sessions' rights with it, and who creates another of its name does not give them back.
    pub fn of_role(self, name: &str, number: Option<u64>) -> Session {
        let session = self.of_user(name);
        if let Some(number) = number {
            session.shared().path().begin_as(number);
        }
        session
    }

    /// Has another session of the [server](crate::Backend) end, or only its statement: what `pg_terminate_backend` and
    /// `pg_cancel_backend` do, without a worker, of which there may be none that has nothing to do. False if there is no
    /// such session.
    ///
    /// # Errors
    ///
    /// [`Error::Denied`](crate::Error::Denied) if the session may not do that; those of reading the catalog.
    pub fn stop_session(&self, process: i32, ends: bool) -> Result<bool> {
        let (shared, instance) = (self.shared(), self.instance());
        let tables = instance.catalog.tables(&instance.store.snapshot())?;
        let rights = shared.rights(&tables)?;
        let mut settings = shared
            .settings()
            .now(String::new(), Arc::new(DateSettings::default()));
        settings.stops(MayStop(Arc::new(move |owner, ends| {
            rights.check_stops(&tables, owner, ends)
        })));
        settings.stop(process, ends)
    }
}
