//! The transactions of a connection.

use std::sync::atomic::{AtomicBool, Ordering};

use adbc_core::constants;
use adbc_core::error::Result;
use atoll::{Session, TransactionStatus};
use parking_lot::{Mutex, MutexGuard};

use crate::error::{invalid, missing, state, told};

/// How much transactions are kept apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// What the database does unless it is told otherwise: snapshots.
    #[default]
    Default,
    /// Each sees the tables as they were at its first statement. Weaker levels are this one, too.
    Snapshot,
    /// As if one ran after the other.
    Serializable,
}

impl Isolation {
    /// The level of an option's value.
    ///
    /// # Errors
    /// If there is no such level, or it is stronger than all that there are.
    pub(crate) fn of(value: &str) -> Result<Isolation> {
        match value {
            constants::ADBC_OPTION_ISOLATION_LEVEL_DEFAULT => Ok(Isolation::Default),
            constants::ADBC_OPTION_ISOLATION_LEVEL_READ_UNCOMMITTED
            | constants::ADBC_OPTION_ISOLATION_LEVEL_READ_COMMITTED
            | constants::ADBC_OPTION_ISOLATION_LEVEL_REPEATABLE_READ
            | constants::ADBC_OPTION_ISOLATION_LEVEL_SNAPSHOT => Ok(Isolation::Snapshot),
            constants::ADBC_OPTION_ISOLATION_LEVEL_SERIALIZABLE => Ok(Isolation::Serializable),
            constants::ADBC_OPTION_ISOLATION_LEVEL_LINEARIZABLE => Err(missing(
                "transactions are not linearizable: the strongest level is serializable",
            )),
            other => Err(invalid(format!("there is no isolation level {other:?}"))),
        }
    }

    /// The value of the option.
    pub(crate) fn value(self) -> &'static str {
        match self {
            Isolation::Default => constants::ADBC_OPTION_ISOLATION_LEVEL_DEFAULT,
            Isolation::Snapshot => constants::ADBC_OPTION_ISOLATION_LEVEL_SNAPSHOT,
            Isolation::Serializable => constants::ADBC_OPTION_ISOLATION_LEVEL_SERIALIZABLE,
        }
    }
}

/// The transactions of a connection, which its statements take part in.
#[derive(Debug)]
pub(crate) struct Transactions {
    /// A handle that no statement's cancelling reaches: what ends a transaction is not cancelled with what failed.
    session: Session,
    manual: AtomicBool,
    isolation: Mutex<Isolation>,
    /// Held while a statement begins to run: of one connection one at a time does.
    turn: Mutex<()>,
}

impl Transactions {
    pub(crate) fn new(session: &Session) -> Transactions {
        Transactions {
            session: session.with_own_interrupter(),
            manual: AtomicBool::new(false),
            isolation: Mutex::default(),
            turn: Mutex::default(),
        }
    }

    /// Waits until no other statement of the connection begins to run.
    pub(crate) fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock()
    }

    /// Whether each statement is a transaction of its own.
    pub(crate) fn autocommit(&self) -> bool {
        !self.manual.load(Ordering::SeqCst)
    }

    pub(crate) fn isolation(&self) -> Isolation {
        *self.isolation.lock()
    }

    /// Sets the level of the transactions that begin from now on.
    ///
    /// # Errors
    /// If one is in progress.
    pub(crate) fn set_isolation(&self, level: Isolation) -> Result<()> {
        if self.session.transaction() != TransactionStatus::Idle {
            return Err(state(
                "the isolation level is set before a transaction begins, and one is in progress: commit it first",
            ));
        }
        *self.isolation.lock() = level;
        Ok(())
    }

    /// Whether statements are transactions of their own from now on. What is in progress is committed.
    ///
    /// # Errors
    /// Those of the commit.
    pub(crate) fn set_autocommit(&self, autocommit: bool) -> Result<()> {
        let _turn = self.turn();
        if autocommit && !self.autocommit() {
            self.end("commit")?;
        }
        self.manual.store(!autocommit, Ordering::SeqCst);
        Ok(())
    }

    /// Begins a transaction before a statement, unless there is one or statements are their own.
    pub(crate) fn enter(&self) -> Result<()> {
        if self.autocommit() || self.session.transaction() != TransactionStatus::Idle {
            return Ok(());
        }
        self.begin()
    }

    fn begin(&self) -> Result<()> {
        let text = match self.isolation() {
            Isolation::Default => "begin",
            Isolation::Snapshot => "begin isolation level repeatable read",
            Isolation::Serializable => "begin isolation level serializable",
        };
        told(self.session.sql(text)).map(drop)
    }

    /// Does `work`, which is several statements, as a whole or not at all: within the transaction in progress, or in one of
    /// its own.
    pub(crate) fn whole<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.session.transaction() != TransactionStatus::Idle {
            return work();
        }
        self.begin()?;
        let guard = Undo(&self.session);
        let done = work()?;
        told(self.session.sql("commit"))?;
        drop(guard);
        Ok(done)
    }

    /// Asks the database something that may fail without ending the transaction in progress.
    pub(crate) fn tried<T>(&self, work: impl FnOnce() -> Result<T>) -> Result<T> {
        if self.session.transaction() != TransactionStatus::Open {
            return work();
        }
        told(self.session.sql("savepoint \"the question\""))?;
        let answer = work();
        let end = "rollback to \"the question\"; release \"the question\"";
        told(self.session.sql(end))?;
        answer
    }

    /// Commits, or rolls back, what connections that do so themselves have done.
    ///
    /// # Errors
    /// If each statement is committed by itself; those of the commit.
    pub(crate) fn finish(&self, how: &str) -> Result<()> {
        let _turn = self.turn();
        if self.autocommit() {
            return Err(state(format!(
                "{how}: each statement is committed by itself; set {} to \"false\" first",
                constants::ADBC_CONNECTION_OPTION_AUTOCOMMIT
            )));
        }
        self.end(how)
    }

    fn end(&self, how: &str) -> Result<()> {
        if self.session.transaction() == TransactionStatus::Idle {
            return Ok(());
        }
        told(self.session.sql(how)).map(drop)
    }
}

/// Rolls back what was not committed, also after a panic.
struct Undo<'s>(&'s Session);

impl Drop for Undo<'_> {
    fn drop(&mut self) {
        if self.0.transaction() != TransactionStatus::Idle {
            let _ = self.0.sql("rollback");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_those_that_there_are() {
        let of =
            |name: &str| Isolation::of(&format!("adbc.connection.transaction.isolation.{name}"));
        assert_eq!(of("read_committed"), Ok(Isolation::Snapshot));
        assert_eq!(
            of("serializable").unwrap().value(),
            "adbc.connection.transaction.isolation.serializable"
        );
        assert_eq!(of("default"), Ok(Isolation::Default));
        let error = of("linearizable").unwrap_err();
        assert_eq!(error.status, adbc_core::error::Status::NotImplemented);
        let error = of("chaos").unwrap_err();
        assert_eq!(error.status, adbc_core::error::Status::InvalidArguments);
    }
}
