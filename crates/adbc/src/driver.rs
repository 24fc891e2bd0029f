//! The driver, which makes databases.

use adbc_core::error::Result;
use adbc_core::options::{OptionDatabase, OptionValue};

use crate::database::{Database, Settings};
use crate::guard::caught;

/// Atoll's driver. It has no state: each database is one store.
#[derive(Debug, Default)]
pub struct Driver;

impl adbc_core::Driver for Driver {
    type DatabaseType = Database;

    fn new_database(&mut self) -> Result<Database> {
        self.new_database_with_opts([])
    }

    fn new_database_with_opts(
        &mut self,
        opts: impl IntoIterator<Item = (OptionDatabase, OptionValue)>,
    ) -> Result<Database> {
        caught(|| {
            let mut settings = Settings::default();
            for (key, value) in opts {
                settings.set(&key, &value)?;
            }
            Database::open(&settings)
        })
    }
}
