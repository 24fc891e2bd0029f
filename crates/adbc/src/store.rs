//! The open store that the handles of a database share.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use adbc_core::error::Result;
use atoll::Session;
use tempfile::TempDir;

use crate::error::{state, told};

/// An open store. It is closed when the last database, connection, statement and stream of it is gone.
#[derive(Debug)]
pub(crate) struct Store {
    database: Option<atoll::Database>,
    /// Where a store lies that was not given a path.
    folder: Option<TempDir>,
    /// The process whose threads do the work.
    process: u32,
}

impl Store {
    /// Opens the store `path`, or a new one in a temporary folder if there is no path.
    pub(crate) fn open(
        path: Option<&Path>,
        create: bool,
        options: &atoll::Options,
    ) -> Result<Arc<Store>> {
        let (path, folder) = match path {
            Some(path) => (path.to_owned(), None),
            None => {
                let folder = tempfile::Builder::new().prefix("atoll-").tempdir();
                let folder = folder.map_err(|error| {
                    let message = format!("no temporary folder can be made: {error}; give a path");
                    crate::error::with(adbc_core::error::Status::IO, "58030", message)
                })?;
                (folder.path().join("memory.atoll"), Some(folder))
            }
        };
        let opened = if create {
            atoll::Database::open_or_create(&path, options)
        } else {
            atoll::Database::open(&path, options)
        };
        Ok(Arc::new(Store {
            database: Some(told(opened)?),
            folder,
            process: std::process::id(),
        }))
    }

    /// The database.
    ///
    /// # Errors
    /// In a process that was forked since: the threads that compute are not there.
    pub(crate) fn database(&self) -> Result<&atoll::Database> {
        let here = std::process::id();
        if self.process != here {
            return Err(state(format!(
                "the database was opened by process {}, of which this one ({here}) was forked: open it again here",
                self.process
            )));
        }
        self.database
            .as_ref()
            .ok_or_else(|| state("the database is closed"))
    }

    /// A new session.
    pub(crate) fn session(&self) -> Result<Session> {
        Ok(self.database()?.session())
    }

    /// The file; none of a temporary store.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let database = self.database.as_ref()?;
        let temporary = self.folder.is_some();
        (!temporary).then(|| database.path().to_owned())
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let (database, folder) = (self.database.take(), self.folder.take());
        if self.process != std::process::id() {
            // Its threads are those of another process, and so is its folder.
            std::mem::forget((database, folder));
            return;
        }
        if let Some(database) = database {
            // Without it the next opening reads the log: nothing is lost where this fails.
            let _ = crate::guard::caught(|| told(database.close()));
        }
        drop(folder);
    }
}
