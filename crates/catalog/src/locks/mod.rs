//! Who holds which lock, and who waits for one: advisory locks of sessions, and the turn to write as locks of the tables that
//! are written.
//!
//! A session that would wait for itself, by way of others that wait, is told so at once instead of waiting.

pub mod calls;
mod deadlock;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::sync::Notify;

pub(crate) use functions::advisory::Key;
use functions::advisory::{Until, Wanted};
use messages::{Error, Result};

/// How often a session holds a lock.
#[derive(Clone, Copy, Debug, Default)]
struct Held {
    of_session: usize,
    of_transactions: usize,
}

impl Held {
    fn count(&mut self, until: Until) -> &mut usize {
        match until {
            Until::Session => &mut self.of_session,
            Until::Transaction => &mut self.of_transactions,
        }
    }
}

/// A session that waits.
#[derive(Debug)]
struct Waiting {
    session: u64,
    process: u32,
    wanted: Wanted,
    since: SystemTime,
}

#[derive(Debug, Default)]
struct State {
    /// By lock and session.
    held: BTreeMap<(Wanted, u64), (Held, u32)>,
    /// By the order in which they came.
    waiting: BTreeMap<u64, Waiting>,
    /// Who has the turn to write, and who waits for it, by the order in which they came.
    claims: BTreeMap<u64, Claim>,
    /// The next number of one who waits.
    next: u64,
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Whether a session, which came at `place` if it waits, may have the lock now.
    fn grants(&self, session: u64, wanted: Wanted, place: u64) -> bool {
        self.blockers(session, wanted, place).is_empty()
    }

    /// The sessions for which one waits that wants this lock: those who hold it, and those who came before, unless it holds it
    /// already in another mode.
    fn blockers(&self, session: u64, wanted: Wanted, place: u64) -> Vec<u64> {
        let of_key = |shared| Wanted { shared, ..wanted };
        let all = [of_key(false), of_key(true)];
        let holds = |mode: &Wanted| self.held.contains_key(&(*mode, session));
        let holders = all
            .into_iter()
            .filter(|mode| mode.conflicts(wanted))
            .flat_map(|mode| self.held.range((mode, 0)..=(mode, u64::MAX)))
            .map(|((_, holder), _)| *holder);
        let mut found: Vec<u64> = holders.filter(|holder| *holder != session).collect();
        if !all.iter().any(holds) {
            let before = self.waiting.range(..place).map(|(_, waiting)| waiting);
            let before = before.filter(|own| own.session != session);
            let before = before.filter(|own| own.wanted.conflicts(wanted));
            found.extend(before.map(|own| own.session));
        }
        found
    }

    fn take(&mut self, (session, process): (u64, u32), wanted: Wanted, until: Until) {
        let (held, known) = self.held.entry((wanted, session)).or_default();
        *held.count(until) += 1;
        *known = process;
    }

    /// Gives it back once; false if it is not held so.
    fn give_back(&mut self, session: u64, wanted: Wanted, until: Until) -> bool {
        let Some((held, _)) = self.held.get_mut(&(wanted, session)) else {
            return false;
        };
        let count = held.count(until);
        if *count == 0 {
            return false;
        }
        *count -= 1;
        if held.of_session == 0 && held.of_transactions == 0 {
            self.held.remove(&(wanted, session));
        }
        true
    }
}

/// All locks of an instance.
#[derive(Debug, Default)]
pub struct Locks {
    state: Mutex<State>,
    /// Told when one is given back, or somebody waits no longer.
    changed: Notify,
    sessions: AtomicU64,
}

/// A lock as `pg_locks` shows it.
#[derive(Clone, Debug)]
pub struct Shown {
    /// What is locked.
    pub(crate) what: Subject,
    /// Of the session; none if nobody serves it.
    pub process: u32,
    /// What stands for its transaction.
    pub session: u64,
    /// Its mode, as `pg_locks` calls it.
    pub mode: &'static str,
    /// Since when it is waited for; none if it is held.
    pub waits_since: Option<SystemTime>,
}

/// What a lock is of.
#[derive(Clone, Debug)]
pub(crate) enum Subject {
    /// Numbers that people chose.
    Advisory(Key),
    /// A table, by its name in the catalog.
    Table(String),
}

impl Locks {
    /// The locks of a new session.
    pub fn session(self: &Arc<Locks>) -> Arc<SessionLocks> {
        Arc::new(SessionLocks {
            number: self.sessions.fetch_add(1, Ordering::Relaxed) + 1,
            process: AtomicU32::new(0),
            timeout: AtomicU64::new(0),
            all: Arc::clone(self),
        })
    }

    /// All that are held or waited for.
    pub fn list(&self) -> Vec<Shown> {
        let state = self.state.lock();
        let held = state.held.iter().map(|((wanted, session), (_, process))| {
            let what = Subject::Advisory(wanted.key);
            (what, *process, *session, wanted.mode(), None)
        });
        let waiting = state.waiting.values().map(|own| {
            let what = Subject::Advisory(own.wanted.key);
            let (process, session) = (own.process, own.session);
            (what, process, session, own.wanted.mode(), Some(own.since))
        });
        let claims = state.claims.values().flat_map(|claim| claim.shown());
        let all = held.chain(waiting).chain(claims);
        let all = all.map(|(what, process, session, mode, waits_since)| Shown {
            what,
            process,
            session,
            mode,
            waits_since,
        });
        all.collect()
    }
}

/// The locks of a session, which are given back when it ends.
#[derive(Debug)]
pub struct SessionLocks {
    number: u64,
    /// Its number among those of a server; 0 if nobody serves it.
    process: AtomicU32,
    /// `lock_timeout` in milliseconds; 0: none.
    timeout: AtomicU64,
    all: Arc<Locks>,
}

impl SessionLocks {
    /// The session has this number among those of a server.
    pub(crate) fn set_process(&self, process: u32) {
        self.process.store(process, Ordering::Relaxed);
    }

    /// Its statements wait for a lock for so many milliseconds; 0: as long as it takes.
    pub(crate) fn set_timeout(&self, millis: u64) {
        self.timeout.store(millis, Ordering::Relaxed);
    }

    /// How long its statements wait for a lock, if it has said so.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let millis = self.timeout.load(Ordering::Relaxed);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    fn process(&self) -> u32 {
        self.process.load(Ordering::Relaxed)
    }

    /// Takes a lock unless that would have to wait for somebody.
    fn try_take(&self, wanted: Wanted, until: Until) -> bool {
        let mut state = self.all.state.lock();
        let grants = state.grants(self.number, wanted, u64::MAX);
        if grants {
            state.take((self.number, self.process()), wanted, until);
        }
        grants
    }

    /// Gives a lock back once; false if it is not held so.
    fn give_back(&self, wanted: Wanted, until: Until) -> bool {
        let given = self.all.state.lock().give_back(self.number, wanted, until);
        if given {
            self.all.changed.notify_waiters();
        }
        given
    }

    /// Gives back all that the session has taken for itself, however often.
    pub(crate) fn give_back_all(&self) {
        let own = self.number;
        self.all
            .state
            .lock()
            .held
            .retain(|(_, session), (held, _)| {
                if *session == own {
                    held.of_session = 0;
                }
                held.of_session + held.of_transactions > 0
            });
        self.all.changed.notify_waiters();
    }

    /// Waits for a lock without holding a worker, and takes it.
    ///
    /// # Errors
    /// [`Error::Conflict`] if all would wait for each other, or it took longer than the session waits for locks.
    async fn wait(self: &Arc<Self>, wanted: Wanted, until: Until) -> Result<()> {
        let (place, checked) = {
            let mut state = self.all.state.lock();
            let place = state.number();
            let waiting = Waiting {
                session: self.number,
                process: self.process(),
                wanted,
                since: SystemTime::now(),
            };
            state.waiting.insert(place, waiting);
            (place, state.check(self.number))
        };
        let place = Place {
            number: place,
            locks: &self.all,
        };
        checked?;
        let granted = async {
            loop {
                let changed = self.all.changed.notified();
                tokio::pin!(changed);
                // From here on nothing that changes is missed.
                changed.as_mut().enable();
                {
                    let mut state = self.all.state.lock();
                    if state.grants(self.number, wanted, place.number) {
                        state.take((self.number, self.process()), wanted, until);
                        return;
                    }
                }
                changed.await;
            }
        };
        match self.timeout() {
            None => granted.await,
            Some(limit) => {
                let late = tokio::time::timeout(limit, granted).await.is_err();
                if late {
                    return Err(timed_out());
                }
            }
        }
        Ok(())
    }
}

impl Drop for SessionLocks {
    fn drop(&mut self) {
        let mut state = self.all.state.lock();
        let before = state.held.len();
        state.held.retain(|(_, session), _| *session != self.number);
        let changed = state.held.len() != before;
        drop(state);
        if changed {
            self.all.changed.notify_waiters();
        }
    }
}

/// A place among those who wait, which is left when this is dropped.
struct Place<'l> {
    number: u64,
    locks: &'l Locks,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.locks.state.lock().waiting.remove(&self.number);
        self.locks.changed.notify_waiters();
    }
}

/// The error for who has waited for a lock for as long as it wanted to.
pub fn timed_out() -> Error {
    Error::Conflict {
        code: "55P03",
        message: "canceling statement due to lock timeout".into(),
    }
}

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
pub struct TurnClaim {
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
    /// [`Error::Conflict`](messages::Error::Conflict) if it would wait for itself.
    pub fn claim(self: &Arc<Self>, what: &str, names: &[&str]) -> Result<TurnClaim> {
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
    pub fn timeout(&self) -> Option<Duration> {
        self.session.timeout()
    }

    /// The turn has come.
    pub fn grant(&self) {
        self.change(|claim| claim.granted = true);
    }

    /// A statement changes these tables, too.
    pub fn more(&self, what: &str, names: &[&str]) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Wanted = Wanted {
        key: Key::One(1),
        shared: false,
    };

    const SHARED: Wanted = Wanted {
        shared: true,
        ..FIRST
    };

    #[test]
    fn a_lock_is_given_back_as_often_as_it_was_taken() {
        let locks: Arc<Locks> = Arc::default();
        let (a, b) = (locks.session(), locks.session());
        assert!(a.try_take(FIRST, Until::Session) && a.try_take(FIRST, Until::Session));
        assert!(a.try_take(SHARED, Until::Transaction));
        assert!(!b.try_take(SHARED, Until::Session));
        assert!(!b.give_back(FIRST, Until::Session));
        assert!(a.give_back(FIRST, Until::Session) && a.give_back(FIRST, Until::Session));
        assert!(!a.give_back(FIRST, Until::Session));
        assert!(b.try_take(SHARED, Until::Session) && !b.try_take(FIRST, Until::Session));
        assert!(a.give_back(SHARED, Until::Transaction));
        assert!(b.try_take(FIRST, Until::Session));
        drop(b);
        assert!(locks.list().is_empty());
    }

    #[test]
    fn two_numbers_are_another_lock_than_one() {
        let locks: Arc<Locks> = Arc::default();
        let (a, b) = (locks.session(), locks.session());
        let two = Wanted {
            key: Key::Two(0, 1),
            shared: false,
        };
        assert!(a.try_take(FIRST, Until::Session) && b.try_take(two, Until::Session));
        assert_eq!(locks.list().len(), 2);
    }
}
