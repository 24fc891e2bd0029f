//! Which tables whoever has connected may know of.

use std::collections::BTreeSet;

use syntax::names::permanent;

use crate::error::Result;
use crate::statements::session::Session;

impl Session {
    /// The tables and views that the user of the session has any right on, by their names, before which stand those of
    /// other schemas than `public` and a point; none if it may see all. For those who tell what there is without a
    /// statement.
    ///
    /// # Errors
    ///
    /// If the user has no role any more; those of reading the catalog.
    pub fn tables_seen(&self) -> Result<Option<BTreeSet<String>>> {
        let instance = self.instance();
        let tables = instance.catalog.tables(&instance.store.snapshot())?;
        let rights = self.shared().rights(&tables)?;
        if rights.is_all() {
            return Ok(None);
        }
        let all = [tables.names(), tables.views()].concat();
        let seen = permanent(all).into_iter();
        let seen = seen.filter(|name| rights.sees(&tables, name));
        Ok(Some(
            seen.map(|name| table::titled(name).into_owned()).collect(),
        ))
    }
}
