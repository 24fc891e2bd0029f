//! Which tables and arrays a transaction may write to: first updater wins.

use std::sync::Arc;

use catalog::locks::calls::TransactionLocks;
use store::Snapshot;
use syntax::names::{of_schema, schema_of};
use table::Tables;

use crate::error::{Error, Result};
use crate::statements::transaction::{OpenTransaction, no_snapshot};

impl OpenTransaction {
    /// The locks that it has taken.
    pub(crate) fn locks(&self) -> Arc<TransactionLocks> {
        Arc::clone(&self.locks)
    }

    /// The right to write to these tables, too, once it has that to write at all.
    ///
    /// # Errors
    /// As [`write`](OpenTransaction::write).
    pub(crate) fn claim(&self, names: &[String]) -> Result<()> {
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        match &self.writes {
            None => Err(no_snapshot()),
            Some(writes) => {
                let at = self.levels.first().and_then(|level| level.tx.as_ref());
                let at = at.ok_or_else(no_snapshot)?.base();
                self.unchanged(&writes.base, at, &names)
            }
        }
    }

    /// The right to write to all that is in a schema, and to it.
    ///
    /// # Errors
    /// As [`write`](OpenTransaction::write).
    pub(crate) fn claim_schema(&self, schema: &str) -> Result<()> {
        let (Some(seen), Some(writes)) = (&self.seen, &self.writes) else {
            return Err(no_snapshot());
        };
        let all = [&seen.tables, &writes.base].into_iter();
        let all = all.flat_map(|all| [all.names(), all.views(), all.sequences()]);
        let within = all.flatten().filter(|name| schema_of(name) == schema);
        let mut names: Vec<String> = within.map(str::to_owned).collect();
        names.push(of_schema(schema));
        self.claim(&names)
    }

    /// First updater wins, by tables and arrays: `base` are the tables of the version `at`.
    pub(super) fn unchanged(&self, base: &Tables, at: &Snapshot, names: &[&str]) -> Result<()> {
        let seen = self.seen.as_ref().ok_or_else(no_snapshot)?;
        let moved = seen.snapshot.version() != at.version();
        let differs = |name: &&&str| {
            seen.tables.differs(base, name) || moved && array::differs(&seen.snapshot, at, name)
        };
        match names.iter().find(differs) {
            None => Ok(()),
            Some(name) => Err(Error::Conflict {
                code: "40001",
                message: format!(
                    "could not serialize access to table \"{name}\" due to a concurrent change: it was committed after this transaction had begun to read; roll back and try again"
                ),
            }),
        }
    }

    /// That no constraint of what a statement changes is to be looked at later: it would be another one then.
    pub(super) fn is_settled(&self, what: &str, names: &[&str]) -> Result<()> {
        let shown = match what.split_once(' ') {
            Some(("ALTER" | "DROP", _)) => what,
            Some(("TRUNCATE", _)) => "TRUNCATE",
            _ => return Ok(()),
        };
        let pending = self.levels.last().map_or(&[][..], |level| &level.pending);
        let schema = what.ends_with("SCHEMA");
        let waits = |name: &&&str| schema || pending.iter().any(|own| own.is_of(name));
        match names.iter().find(waits).filter(|_| !pending.is_empty()) {
            None => Ok(()),
            Some(name) => Err(Error::coded(
                "55006",
                format!(
                    "cannot {shown} \"{}\" because it has pending trigger events",
                    table::titled(name)
                ),
            )),
        }
    }
}
