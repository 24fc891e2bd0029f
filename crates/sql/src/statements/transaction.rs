//! Transactions of several statements.
//!
//! A transaction has a snapshot from its first statement on. When it writes for the first time it takes the turn to
//! write, and begins a transaction of the store, which may start from a later version than the snapshot is: it goes on
//! only if the tables that it changes are in both the same. What it sees is the snapshot with its own tables over it.
//!
//! Each savepoint is a transaction of the store nested in the one before, and each statement is one that is nested in
//! the last of them, so that what fails is undone alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use catalog::locks::SessionLocks;
use catalog::locks::calls::TransactionLocks;
use catalog::search_path::{Saved, SessionPath};
use chrono::{DateTime, Utc};
use memory::Traffic;
use store::Snapshot;
use syntax::modes::{Asked, Modes};
use table::Tables;

use crate::error::{Error, Result};
use crate::resources::turn::Turn;
use crate::run::arrays::{Arrays, Own};
use crate::run::clock::Clock;
use crate::run::context::StatementContext;
use crate::run::deferrals::Deferrals;
use crate::run::instance::Instance;
use crate::statements::deferred::{self, Pending};
use crate::statements::gathered::Gathered;
use crate::statements::temporary::Temporary;
use crate::statements::write::{self, Writing};

/// A transaction of several statements that has neither committed nor rolled back.
#[derive(Debug)]
pub(crate) struct OpenTransaction {
    /// No other of this process has it.
    number: u64,
    modes: Modes,
    /// What `now()` is in its statements.
    pub(super) began: DateTime<Utc>,
    /// A statement has failed, or one is running: if nobody says that it was done, it was not.
    failed: bool,
    /// From the first statement on.
    pub(super) seen: Option<Seen>,
    /// From the first statement on that writes.
    pub(super) writes: Option<Writes>,
    /// The transaction itself, and its savepoints. Never empty.
    pub(super) levels: Vec<Level>,
    /// Where its session looks names up, which goes back with it.
    path: Option<Arc<SessionPath>>,
    /// Rows of its last level that are not written yet. Whoever reads what was written, adds a level or takes one away
    /// writes them first, or drops them where the level is undone.
    pub(super) gathered: Vec<Gathered>,
    /// The locks of its session, and those that it has taken.
    pub(super) session: Arc<SessionLocks>,
    pub(super) locks: Arc<TransactionLocks>,
}

/// A statement that takes the turn to write before it is known what it changes.
const NOTHING: (&str, &[&str]) = ("", &[]);

/// What was committed when the transaction began.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) snapshot: Snapshot,
    pub(super) tables: Arc<Tables>,
}

/// What a transaction has that writes.
#[derive(Debug)]
pub(super) struct Writes {
    /// The tables of the version that it writes over.
    pub(super) base: Arc<Tables>,
    /// Decodes what it wrote.
    catalog: table::Catalog,
    // Last: the next writer begins when what was written is undone.
    turn: Turn,
}

/// The transaction, or a savepoint in it.
#[derive(Debug, Default)]
pub(super) struct Level {
    /// Of a savepoint.
    name: Option<String>,
    /// What the transaction was asked for when it was set.
    modes: Modes,
    /// What was changed up to here, and what was seen then; none as long as nothing was.
    pub(super) tx: Option<store::Transaction>,
    tables: Option<Arc<Tables>>,
    arrays: Option<Own>,
    /// What `set constraints` has said up to here.
    deferrals: Deferrals,
    /// What is looked at when the transaction ends.
    pub(super) pending: Vec<Pending>,
    /// What the path of the session was.
    path: Option<Saved>,
    /// How many locks were taken when it was set.
    locks: usize,
}

impl OpenTransaction {
    /// A transaction that has run no statement, of the session with these locks. What its statements change of `path` goes back
    /// with it.
    pub(crate) fn new(
        modes: Modes,
        session: &Arc<SessionLocks>,
        path: Option<&Arc<SessionPath>>,
    ) -> OpenTransaction {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        OpenTransaction {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            modes,
            began: Utc::now(),
            failed: false,
            seen: None,
            writes: None,
            levels: vec![Level {
                path: path.map(|path| path.save()),
                ..Level::default()
            }],
            path: path.cloned(),
            gathered: Vec::new(),
            session: Arc::clone(session),
            locks: Arc::default(),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn modes(&self) -> Modes {
        self.modes
    }

    /// Changes what it is, up to the end of the last savepoint.
    ///
    /// # Errors
    /// If it is read only and shall write, or another isolation is asked for, once it has read something.
    pub(crate) fn ask(&mut self, asked: Asked) -> Result<()> {
        let (reads, nested) = (self.seen.is_some(), self.levels.len() > 1);
        let modes = self.modes.with(asked);
        let was_read_only = self
            .levels
            .last()
            .is_some_and(|level| level.modes.read_only);
        let refused = if self.modes.read_only && !modes.read_only && nested && was_read_only {
            "cannot set transaction read-write mode inside a read-only transaction"
        } else if self.modes.read_only && !modes.read_only && reads {
            "transaction read-write mode must be set before any query"
        } else if modes.isolation != self.modes.isolation && reads {
            "SET TRANSACTION ISOLATION LEVEL must be called before any query"
        } else if modes.isolation != self.modes.isolation && nested {
            "SET TRANSACTION ISOLATION LEVEL must not be called in a subtransaction"
        } else if asked.deferrable.is_some() && nested {
            "SET TRANSACTION [NOT] DEFERRABLE cannot be called within a subtransaction"
        } else if asked.deferrable.is_some() && reads {
            "SET TRANSACTION [NOT] DEFERRABLE must be called before any query"
        } else {
            self.modes = modes;
            return Ok(());
        };
        Err(Error::Transaction {
            code: "25001",
            message: refused.into(),
        })
    }

    /// Whether a statement has failed, so that it can only be rolled back, as a whole or to a savepoint.
    pub(crate) fn is_failed(&self) -> bool {
        self.failed
    }

    /// A statement begins. Unless it [succeeds](OpenTransaction::succeed) it has failed.
    ///
    /// # Errors
    /// If one has failed already.
    pub(crate) fn enter(&mut self) -> Result<()> {
        if self.failed {
            return Err(Error::Transaction {
code: "25P02",
                message: "current transaction is aborted, commands ignored until end of transaction block: `rollback` ends it, `rollback to` goes back to a savepoint".into(),
            });
        }
        self.failed = true;
        Ok(())
    }

    /// The statement that was entered has done what it was to do.
    pub(crate) fn succeed(&mut self) {
        self.failed = false;
    }

    /// A statement has failed, or its text was none.
    pub(crate) fn fail(&mut self) {
        self.failed = true;
    }

    fn top(&mut self) -> &mut Level {
        match self.levels.last_mut() {
            Some(level) => level,
            None => unreachable!("a transaction is a level itself"),
        }
    }

    /// What a statement that reads sees.
    ///
    /// # Errors
    /// As [`Scope::read`](crate::statements::scope::Scope::read).
    pub(crate) async fn read(
        &mut self,
        instance: &Arc<Instance>,
        started: Instant,
    ) -> Result<StatementContext> {
        if self.look(instance)?.is_none() {
            self.begin_writing(instance, NOTHING).await?;
        }
        self.context(instance, started)
    }

    /// What a statement would see that ran now, for one that is only looked at: the snapshot is taken by the first that runs,
    /// so that one which writes has the newest.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn peek(
        &mut self,
        instance: &Arc<Instance>,
        started: Instant,
    ) -> Result<StatementContext> {
        match self.seen {
            Some(_) => self.context(instance, started),
            None => StatementContext::new(instance, &instance.store.snapshot(), started),
        }
    }

    /// Takes the turn to write, and with it the newest snapshot, for a statement that reads before it writes, if it is the
    /// first of the transaction: nobody changes in between what it is about to change. One that is to read only writes to
    /// tables of its session, if at all, which nobody else changes.
    ///
    /// # Errors
    /// Those of waiting for the turn.
    pub(crate) async fn begin_with_turn(&mut self, instance: &Arc<Instance>) -> Result<()> {
        if self.seen.is_some() || self.modes.read_only {
            return Ok(());
        }
        self.begin_writing(instance, NOTHING).await
    }

    /// The tables that a statement sees; none if it has to wait for the turn to write first.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn look(&mut self, instance: &Instance) -> Result<Option<Arc<Tables>>> {
        if self.seen.is_none() {
            if self.modes.takes_turn() {
                return Ok(None);
            }
            self.see(instance, instance.store.snapshot())?;
        }
        Ok(self.tables())
    }

    fn see(&mut self, instance: &Instance, snapshot: Snapshot) -> Result<()> {
        let tables = instance.catalog.tables(&snapshot)?;
        self.seen = Some(Seen { snapshot, tables });
        Ok(())
    }

    fn context(&mut self, instance: &Arc<Instance>, started: Instant) -> Result<StatementContext> {
        let top = self.top();
        let (own, arrays) = (top.tables.clone(), top.arrays.clone());
        let deferrals = Some(top.deferrals.clone());
        let seen = self.seen.as_ref().ok_or_else(no_snapshot)?;
        let tables = own.unwrap_or_else(|| Arc::clone(&seen.tables));
        let mut context = StatementContext::over(instance, &seen.snapshot, tables, started);
        (context.arrays.own, context.deferrals) = (arrays, deferrals);
        Ok(context)
    }

    /// The tables that its next statement sees; none before its first.
    pub(crate) fn tables(&self) -> Option<Arc<Tables>> {
        let own = self.levels.last().and_then(|level| level.tables.clone());
        own.or_else(|| self.seen.as_ref().map(|seen| Arc::clone(&seen.tables)))
    }

    /// The arrays that its next statement sees.
    pub(crate) fn arrays(&self, instance: &Instance) -> Arrays {
        let seen = self.seen.as_ref().map(|seen| seen.snapshot.clone());
        Arrays {
            snapshot: seen.unwrap_or_else(|| instance.store.snapshot()),
            own: self.levels.last().and_then(|level| level.arrays.clone()),
        }
    }

    /// The right to write to `names`, and what the statement sees.
    ///
    /// # Errors
    /// As [`Scope::write`](crate::statements::scope::Scope::write).
    pub(crate) async fn write(
        &mut self,
        instance: &Arc<Instance>,
        what: &str,
        names: &[&str],
        started: Instant,
    ) -> Result<(Writing, StatementContext)> {
        self.modes.permit(what, names)?;
        self.is_settled(what, names)?;
        match &self.writes {
            None => self.begin_writing(instance, (what, names)).await?,
            Some(writes) => {
                writes.turn.changes(what, names);
                let at = self.levels.first().and_then(|level| level.tx.as_ref());
                let at = at.ok_or_else(no_snapshot)?.base();
                self.unchanged(&writes.base, at, names)?;
            }
        }
        let context = self.context(instance, started)?;
        let tx = self.top().tx.as_ref().ok_or_else(no_snapshot)?.nested();
        Ok((Writing::within(tx, instance), context))
    }

    /// Whether it has the turn to write.
    pub(crate) fn has_turn(&self) -> bool {
        self.writes.is_some()
    }

    /// Takes the turn and begins a transaction of the store, unless somebody has changed one of `names` since the
    /// snapshot was taken.
    async fn begin_writing(
        &mut self,
        instance: &Arc<Instance>,
        (what, names): (&str, &[&str]),
    ) -> Result<()> {
        let claim = self.session.claim(what, names)?;
        let Writing { tx, turn, .. } = Writing::begin(instance, Some(claim)).await?;
        let turn = turn.ok_or_else(no_snapshot)?;
        if self.seen.is_none() {
            self.see(instance, tx.base().clone())?;
        }
        let base = instance.catalog.tables(tx.base())?;
        self.unchanged(&base, tx.base(), names)?;
        turn.lend();
        self.writes = Some(Writes {
            base,
            catalog: instance.catalog.fork(),
            turn,
        });
        let mut around = tx;
        for level in &mut self.levels {
            let nested = around.nested();
            level.tx = Some(std::mem::replace(&mut around, nested));
        }
        Ok(())
    }

    /// Takes what a statement has written into the transaction.
    ///
    /// # Errors
    /// Those of reading the catalog back.
    pub(crate) fn keep(&mut self, writing: Writing) -> Result<()> {
        let view = writing.tx.view();
        let (Some(seen), Some(writes)) = (&self.seen, &self.writes) else {
            return Err(no_snapshot());
        };
        let own = writes.catalog.tables(&view)?;
        let tables = if seen.tables.version() == writes.base.version() {
            own
        } else {
            Arc::new(seen.tables.overlaid(&writes.base, &own))
        };
        let level = self.top();
        level.tx.as_mut().ok_or_else(no_snapshot)?.adopt(writing.tx);
        level.tables = Some(tables);
        level.pending.extend(writing.pending);
        Ok(())
    }

    /// `set constraints`: `named` are tables and names of foreign keys; none: all.
    ///
    /// # Errors
    /// If they are to be looked at now, and rows refer to what is not there.
    pub(crate) async fn set_constraints(
        &mut self,
        named: Option<Vec<(String, String)>>,
        deferred: bool,
    ) -> Result<()> {
        if !deferred {
            let ours = |own: &Pending| match &named {
                None => true,
                Some(named) => named
                    .iter()
                    .any(|(table, name)| own.child == *table && own.rule == *name),
            };
            let (now, later): (Vec<Pending>, Vec<Pending>) =
                std::mem::take(&mut self.top().pending)
                    .into_iter()
                    .partition(ours);
            self.top().pending = later;
            self.check(&now).await?;
        }
        let deferrals = &mut self.top().deferrals;
        match named {
            None => deferrals.set_all(deferred),
            Some(named) => named
                .iter()
                .for_each(|(table, name)| deferrals.set(table, name, deferred)),
        }
        Ok(())
    }

    /// That no row refers to what is `pending` and not there in what was written.
    async fn check(&mut self, pending: &[Pending]) -> Result<()> {
        if pending.is_empty() {
            return Ok(());
        }
        let view = self.top().tx.as_ref().ok_or_else(no_snapshot)?.view();
        let writes = self.writes.as_ref().ok_or_else(no_snapshot)?;
        let tables = writes.catalog.tables(&view)?;
        deferred::check(&tables, pending).await
    }

    /// The tables that a statement sees, which may have to wait for the turn to write first.
    ///
    /// # Errors
    /// Those of reading the catalog, and of waiting.
    pub(crate) async fn looked(&mut self, instance: &Arc<Instance>) -> Result<Arc<Tables>> {
        if let Some(tables) = self.look(instance)? {
            return Ok(tables);
        }
        self.begin_writing(instance, NOTHING).await?;
        self.tables().ok_or_else(no_snapshot)
    }

    /// The same of a statement that has changed these arrays.
    ///
    /// # Errors
    /// As [`keep`](OpenTransaction::keep).
    pub(crate) fn keep_arrays(&mut self, writing: Writing, names: &[&str]) -> Result<()> {
        self.keep(writing)?;
        let level = self.top();
        let view = level.tx.as_ref().ok_or_else(no_snapshot)?.view();
        let mut all = level.arrays.take().map(|own| own.names).unwrap_or_default();
        all.extend(names.iter().map(|&name| name.to_owned()));
        level.arrays = Some(Own { view, names: all });
        Ok(())
    }

    /// `savepoint name`.
    pub(crate) fn savepoint(&mut self, name: String) {
        let modes = self.modes;
        let top = self.top();
        let level = Level {
            name: Some(name),
            modes,
            tx: top.tx.as_ref().map(store::Transaction::nested),
            tables: top.tables.clone(),
            arrays: top.arrays.clone(),
            deferrals: top.deferrals.clone(),
            pending: top.pending.clone(),
            path: None,
            locks: self.locks.count(),
        };
        let path = self.path.as_ref().map(|path| path.save());
        self.levels.push(Level { path, ..level });
    }

    /// The last savepoint of that name. Those of the same name before it come to light when it is released.
    fn find(&self, name: &str) -> Result<usize> {
        let named = |level: &Level| level.name.as_deref() == Some(name);
        self.levels
            .iter()
            .rposition(named)
            .ok_or_else(|| Error::Transaction {
                code: "3B001",
                message: format!("savepoint \"{name}\" does not exist"),
            })
    }

    /// `rollback to savepoint name`: what came after it is undone, and it stays.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn rollback_to(&mut self, name: &str) -> Result<()> {
        let at = self.find(name)?;
        self.gathered.clear();
        // From the last: each is nested in the one before.
        while self.levels.len() > at {
            let Some(level) = self.levels.pop() else {
                break;
            };
            self.modes = level.modes;
            self.locks.give_back_after(level.locks);
            if let (Some(path), Some(saved)) = (&self.path, level.path) {
                path.restore(saved);
            }
        }
        self.savepoint(name.to_string());
        self.failed = false;
        Ok(())
    }

    /// `release savepoint name`: it and those after it are forgotten, what was done stays.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn release(&mut self, name: &str) -> Result<()> {
        let at = self.find(name)?;
        self.fold(at);
        Ok(())
    }

    /// Makes one of the levels from the one before `at` on.
    fn fold(&mut self, at: usize) {
        while self.levels.len() > at.max(1) {
            let Some(inner) = self.levels.pop() else {
                return;
            };
            self.modes = inner.modes;
            let outer = self.top();
            if let (Some(around), Some(tx)) = (&mut outer.tx, inner.tx) {
                around.adopt(tx);
            }
            outer.tables = inner.tables;
            outer.arrays = inner.arrays;
            outer.deferrals = inner.deferrals;
            outer.pending = inner.pending;
        }
    }

    /// Makes everything durable and visible.
    ///
    /// # Errors
    /// [`Error::Transaction`] if a statement has failed, [`Error::Constraint`] if rows refer to what is not there: nothing is
    /// committed then; those of the store.
    pub(crate) async fn commit(mut self, temporary: &Temporary) -> Result<()> {
        if self.failed {
            return Err(Error::Transaction {
                code: "25P02",
                message: "a statement of the transaction had failed: it was rolled back".into(),
            });
        }
        self.fold(1);
        let pending = std::mem::take(&mut self.top().pending);
        self.check(&pending).await?;
        if let (Some(mut tx), Some(writes)) = (self.top().tx.take(), self.writes.take()) {
            if temporary.has_ends() {
                temporary.end(&*writes.catalog.tables(&tx.view())?, &mut tx)?;
            }
            write::commit(tx, Some(writes.turn)).await?;
        }
        if let Some(path) = self.path.take() {
            path.end_local();
        }
        Ok(())
    }
}

impl Drop for OpenTransaction {
    fn drop(&mut self) {
        while let Some(level) = self.levels.pop() {
            if let (Some(path), Some(saved)) = (&self.path, level.path) {
                path.restore(saved);
            }
        }
        // Whoever gets a lock sees what was written, or that it was undone.
        self.writes = None;
        self.locks.give_back_after(0);
    }
}

/// The clock of a statement that reads nothing.
pub(crate) fn clock(instance: &Instance, started: Instant) -> Clock {
    let traffic = Arc::new(Traffic::new(instance.workers().nodes()));
    Clock::new(started, traffic)
}

pub(super) fn no_snapshot() -> Error {
    Error::Defect {
        message: "a transaction writes without having begun to".into(),
    }
}
