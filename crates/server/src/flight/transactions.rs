//! Transactions of several calls.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use atoll::Session;
use bytes::Bytes;
use parking_lot::Mutex;

use crate::flight::status::{Ended, Status};
use crate::http2::connection::Watch;
use crate::security::identity::Identity;
use crate::sessions::{Line, Seat};
use crate::wire::backend::Report;

/// A transaction between calls, and its session.
#[derive(Debug)]
pub(crate) struct Held {
    pub id: Bytes,
    pub session: Session,
    pub seat: Seat,
    who: Identity,
    line: Arc<Between>,
    busy: AtomicBool,
}

impl Held {
    /// The call has ended that had it.
    pub(crate) fn release(&self) {
        *self.line.watch.lock() = None;
        self.busy.store(false, Ordering::Release);
    }
}

/// What connects a transaction to its client: a call while one runs. Between calls there is only the wish to end.
#[derive(Debug)]
struct Between {
    id: Bytes,
    watch: Mutex<Option<Watch>>,
    all: Weak<Transactions>,
}

impl Line for Arc<Between> {
    fn is_gone(&self) -> bool {
        self.watch.lock().as_ref().is_some_and(Watch::is_gone)
    }

    fn hang_up(&self) {
        if let Some(all) = self.all.upgrade() {
            all.end(&self.id);
        }
    }
}

/// The transactions that there are, by their handles. Each has a seat among the sessions.
#[derive(Debug, Default)]
pub(crate) struct Transactions(Mutex<HashMap<Bytes, Arc<Held>>>);

impl Transactions {
    /// Keeps a transaction of `who` that has begun in this session; `seat` gets a seat for it.
    ///
    /// # Errors
    /// Those of `seat`.
    pub(crate) fn keep(
        self: &Arc<Transactions>,
        id: Bytes,
        who: &Identity,
        session: Session,
        seat: impl FnOnce(&Session, Box<dyn Line>) -> Result<Seat, Ended>,
    ) -> Result<(), Ended> {
        let line = Arc::new(Between {
            id: id.clone(),
            watch: Mutex::new(None),
            all: Arc::downgrade(self),
        });
        let seat = seat(&session, Box::new(Arc::clone(&line)))?;
        let held = Held {
            id: id.clone(),
            session,
            seat,
            who: who.clone(),
            line,
            busy: AtomicBool::new(false),
        };
        self.0.lock().insert(id, Arc::new(held));
        Ok(())
    }

    /// The transaction of this handle, for a call; it [releases](Held::release) it.
    ///
    /// # Errors
    /// If the user has none of this handle, or another call has it.
    pub(crate) fn take(
        &self,
        id: &Bytes,
        who: &Identity,
        watch: &Watch,
    ) -> Result<Arc<Held>, Ended> {
        let found = self.0.lock().get(id).cloned();
        let held = found.filter(|held| held.who.is(who));
        let held = held.ok_or_else(|| {
            Status::unknown("there is no such transaction: it has ended, or waited too long")
        })?;
        if held.busy.swap(true, Ordering::AcqRel) {
            let message = "the transaction runs another statement: wait for its last row";
            return Err(Report::error("55006", message).into());
        }
        *held.line.watch.lock() = Some(watch.clone());
        Ok(held)
    }

    /// Forgets a transaction. What it has not committed is undone.
    pub(crate) fn end(&self, id: &Bytes) {
        // It is dropped without the lock.
        let held = self.0.lock().remove(id);
        drop(held);
    }
}
