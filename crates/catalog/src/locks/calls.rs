//! The calls of functions over advisory locks in a statement.
//!
//! A function must not wait: it would hold a worker, and who gives the lock back needs one. So a call that would have to wait
//! fails. Who runs the statement waits for the lock then and runs it again, and the calls that were done say again what they
//! said.

use std::sync::Arc;

use functions::advisory::{AdvisoryCalls, Deed, Until, Wanted};
use messages::{Error, Result};
use parking_lot::Mutex;

use crate::locks::SessionLocks;

/// The locks that a transaction has taken, which are given back when it ends.
#[derive(Debug, Default)]
pub struct TransactionLocks(Mutex<Vec<(Arc<SessionLocks>, Wanted)>>);

impl TransactionLocks {
    /// How many there are.
    pub fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// Gives back those that came after the first `count`.
    pub fn give_back_after(&self, count: usize) {
        let mut all = self.0.lock();
        while all.len() > count {
            if let Some((session, wanted)) = all.pop() {
                session.give_back(wanted, Until::Transaction);
            }
        }
    }
}

impl Drop for TransactionLocks {
    fn drop(&mut self) {
        self.give_back_after(0);
    }
}

/// What one statement asks of locks.
#[derive(Debug)]
pub struct LockCalls {
    session: Arc<SessionLocks>,
    transaction: Arc<TransactionLocks>,
    attempt: Mutex<Attempt>,
}

#[derive(Debug, Default)]
struct Attempt {
    /// Whether the statement has calls that may wait.
    may_wait: bool,
    /// What was done, and what it said.
    done: Vec<(Deed, bool)>,
    /// What was done when the statement ran before.
    before: Vec<(Deed, bool)>,
    /// What has to wait.
    blocked: Option<(Wanted, Until)>,
}

impl LockCalls {
    /// The calls of a statement in this transaction of the session.
    pub(crate) fn new(
        session: Arc<SessionLocks>,
        transaction: Arc<TransactionLocks>,
    ) -> Arc<LockCalls> {
        Arc::new(LockCalls {
            session,
            transaction,
            attempt: Mutex::default(),
        })
    }

    /// Whether the statement has a call that may wait.
    pub fn waits(&self) -> bool {
        self.attempt.lock().may_wait
    }

    fn perform(&self, attempt: &mut Attempt, deed: Deed) -> Result<bool> {
        match deed {
            Deed::Lock(wanted, until) => {
                if !self.take(wanted, until) {
                    attempt.blocked = Some((wanted, until));
                    return Err(Error::Conflict {
                        code: "55P03",
                        message: "could not obtain an advisory lock".into(),
                    });
                }
                Ok(true)
            }
            Deed::Try(wanted, until) => Ok(self.take(wanted, until)),
            Deed::Unlock(wanted) => Ok(self.session.give_back(wanted, Until::Session)),
            Deed::UnlockAll => {
                self.session.give_back_all();
                Ok(true)
            }
        }
    }

    fn take(&self, wanted: Wanted, until: Until) -> bool {
        let taken = self.session.try_take(wanted, until);
        if taken {
            self.keep(wanted, until);
        }
        taken
    }

    fn keep(&self, wanted: Wanted, until: Until) {
        if until == Until::Transaction {
            let own = (Arc::clone(&self.session), wanted);
            self.transaction.0.lock().push(own);
        }
    }

    /// Waits for what a call has to wait for, and takes it. False if none has to: then the statement has failed for another
    /// reason.
    ///
    /// # Errors
    /// [`Error::Conflict`] if sessions would wait for each other, or it took too long.
    pub async fn wait(&self) -> Result<bool> {
        let Some((wanted, until)) = self.attempt.lock().blocked.take() else {
            return Ok(false);
        };
        self.session.wait(wanted, until).await?;
        self.keep(wanted, until);
        let mut attempt = self.attempt.lock();
        let done = std::mem::take(&mut attempt.done);
        attempt.before.extend(done);
        attempt.before.push((Deed::Lock(wanted, until), true));
        Ok(true)
    }
}

impl AdvisoryCalls for LockCalls {
    fn may_wait(&self) {
        self.attempt.lock().may_wait = true;
    }

    /// Does it, unless it was done when the statement ran before. If it has to wait, whoever runs the statement
    /// [waits](LockCalls::wait) and runs it again.
    fn call(&self, deed: Deed) -> Result<bool> {
        let mut attempt = self.attempt.lock();
        let known = attempt.before.iter().position(|(own, _)| *own == deed);
        let said = match known {
            Some(at) => attempt.before.remove(at).1,
            None => self.perform(&mut attempt, deed)?,
        };
        attempt.done.push((deed, said));
        Ok(said)
    }
}
