//! The turn to write as locks of tables: who has it holds locks of the tables that it has written to.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::error::Result;
use crate::locks::{SessionLocks, Subject};

/// Somebody who has the turn to write, or waits for it.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) session: u64,
    process: u32,
    pub(super) granted: bool,
    tables: Vec<(String, &'static str)>,
    since: SystemTime,
}

impl Claim {
    /// What `pg_locks` shows of it.
    pub(super) fn shown(
        &self,
    ) -> impl Iterator<Item = (Subject, u32, u64, &'static str, Option<SystemTime>)> + '_ {
        self.tables.iter().map(|(name, mode)| {
            let since = (!self.granted).then_some(self.since);
            let what = Subject::Table(name.clone());
            (what, self.process, self.session, *mode, since)
        })
    }
}

/// A claim to the turn to write, which ends when this is dropped.
#[derive(Debug)]
pub(crate) struct TurnClaim {
    number: u64,
    session: Arc<SessionLocks>,
}

/// What PostgreSQL calls the lock that a statement takes of the tables that it changes.
fn mode(what: &str) -> &'static str {
    match what.split_whitespace().next().unwrap_or_default() {
        "INSERT" | "UPDATE" | "DELETE" | "MERGE" | "COPY" => "RowExclusiveLock",
        "SELECT" => "RowShareLock",
        "CREATE" => "ShareRowExclusiveLock",
        _ => "AccessExclusiveLock",
    }
}

impl SessionLocks {
    /// The session wants the turn to write, for a statement that changes these tables.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::error::Error::Conflict) if it would wait for itself.
    pub(crate) fn claim(self: &Arc<Self>, what: &str, names: &[&str]) -> Result<TurnClaim> {
        let mut state = self.all.state.lock();
        let number = state.number();
        let claim = Claim {
            session: self.number,
            process: self.process(),
            granted: false,
            tables: tables(what, names),
            since: SystemTime::now(),
        };
        state.claims.insert(number, claim);
        let checked = state.check(self.number);
        drop(state);
        let claim = TurnClaim {
            number,
            session: Arc::clone(self),
        };
        checked.map(|()| claim)
    }
}

fn tables(what: &str, names: &[&str]) -> Vec<(String, &'static str)> {
    let mode = mode(what);
    let names = names.iter().filter(|name| !name.is_empty());
    names.map(|&name| (name.to_owned(), mode)).collect()
}

impl TurnClaim {
    fn change(&self, change: impl FnOnce(&mut Claim)) {
        let mut state = self.session.all.state.lock();
        if let Some(claim) = state.claims.get_mut(&self.number) {
            change(claim);
        }
    }

    /// How long its session waits for locks, if it has said so.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        self.session.timeout()
    }

    /// The turn has come.
    pub(crate) fn grant(&self) {
        self.change(|claim| claim.granted = true);
    }

    /// A statement changes these tables, too.
    pub(crate) fn more(&self, what: &str, names: &[&str]) {
        self.change(|claim| {
            for table in tables(what, names) {
                if !claim.tables.contains(&table) {
                    claim.tables.push(table);
                }
            }
        });
    }
}

impl Drop for TurnClaim {
    fn drop(&mut self) {
        self.session.all.state.lock().claims.remove(&self.number);
    }
}
