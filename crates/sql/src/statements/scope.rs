//! Where a statement runs: as a transaction of its own, or within the open transaction of its session.

use std::sync::Arc;
use std::time::Instant;

use table::Tables;

use crate::error::Result;
use crate::names::seen;
use crate::resources::sequences::SessionNumbers;
use crate::run::arrays::Arrays;
use crate::run::context::StatementContext;
use crate::run::frames::Frames;
use crate::run::instance::Instance;
use crate::statements::temporary::Temporary;
use crate::statements::transaction::OpenTransaction;
use crate::statements::write::Writing;

/// What a statement gets from whoever runs it.
pub(crate) struct Caller {
    /// Rows that it reads.
    pub frames: Frames,
    /// Who it is of, if that has a name.
    pub user: Option<Arc<str>>,
}

/// What a statement sees and writes to.
pub(crate) struct Scope<'t> {
    pub instance: Arc<Instance>,
    /// What the session has got of sequences.
    numbers: Arc<SessionNumbers>,
    caller: Caller,
    /// The tables of the session.
    temporary: Arc<Temporary>,
    /// Whether it reads them.
    sees_temporary: bool,
    /// The open transaction of the session; none where the statement is one itself.
    transaction: Option<&'t mut OpenTransaction>,
}

impl<'t> Scope<'t> {
    /// The scope of a statement in `transaction`, or of one that is a transaction of its own.
    pub(crate) fn new(
        instance: Arc<Instance>,
        numbers: Arc<SessionNumbers>,
        caller: Caller,
        temporary: Arc<Temporary>,
        transaction: Option<&'t mut OpenTransaction>,
    ) -> Scope<'t> {
        Scope {
            instance,
            numbers,
            caller,
            temporary,
            sees_temporary: true,
            transaction,
        }
    }

    /// Whether the statement is a transaction of its own.
    pub(crate) fn is_alone(&self) -> bool {
        self.transaction.is_none()
    }

    /// The tables of the session.
    pub(crate) fn temporary(&self) -> &Temporary {
        &self.temporary
    }

    /// Has the statement see permanent tables only, for what outlives the session.
    pub(crate) fn without_temporary(&mut self) {
        self.sees_temporary = false;
    }

    /// The schema of the session's temporary tables, if it has made any.
    pub(crate) fn session_schema(&self) -> Option<&str> {
        let made = self.sees_temporary && self.temporary.is_made();
        made.then(|| self.temporary.schema())
    }

    /// The tables that the statement sees.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn tables(&self) -> Result<Arc<Tables>> {
        let open = self.transaction.as_ref().and_then(|open| open.tables());
        match open {
            Some(tables) => Ok(tables),
            None => {
                let snapshot = self.instance.store.snapshot();
                Ok(self.instance.catalog.tables(&snapshot)?)
            }
        }
    }

    /// The name in the catalog of the table that the session calls `name`.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn own(&self, name: String) -> Result<String> {
        match self.session_schema() {
            None => Ok(name),
            schema => Ok(seen(schema, &*self.tables()?, &name)),
        }
    }

    /// What a statement that only reads sees.
    ///
    /// # Errors
    /// Those of reading the catalog, and of waiting for the turn, which a serializable transaction needs.
    pub(crate) async fn read(&mut self, started: Instant) -> Result<StatementContext> {
        let context = match &mut self.transaction {
            None => {
                let snapshot = self.instance.store.snapshot();
                StatementContext::new(&self.instance, &snapshot, started)?
            }
            Some(transaction) => transaction.read(&self.instance, started).await?,
        };
        self.of_caller(context)
    }

    /// Gives a statement what is its caller's: the functions over sequences, the name of the user, and frames.
    fn of_caller(&self, context: StatementContext) -> Result<StatementContext> {
        let transaction = self.transaction.as_ref();
        let read_only = transaction.is_some_and(|transaction| transaction.modes().read_only);
        context
            .with_numbers(&self.numbers, read_only)
            .of_user(self.caller.user.as_ref())?
            .with_temporary(self.session_schema())
            .with_frames(&self.caller.frames)
    }

    /// The right to write, and what the statement sees. `what` is the statement for messages, `names` are the tables
    /// that it changes.
    ///
    /// # Errors
    /// [`Error::Conflict`] if another has the turn for too long, or has changed one of `names` since the transaction
    /// began; [`Error::Transaction`] if that is to read only; those of the store.
    pub(crate) async fn write(
        &mut self,
        what: &str,
        names: &[&str],
        started: Instant,
    ) -> Result<(Writing, StatementContext)> {
        let (writing, context) = match &mut self.transaction {
            None => {
                let writing = Writing::begin(&self.instance).await?;
                let context = StatementContext::new(&self.instance, writing.tx.base(), started)?;
                (writing, context)
            }
            Some(transaction) => {
                transaction
                    .write(&self.instance, what, names, started)
                    .await?
            }
        };
        Ok((writing, self.of_caller(context)?))
    }

    /// The right to write to these tables, too.
    ///
    /// # Errors
    /// As [`write`](Scope::write).
    pub(crate) fn claim(&self, names: &[String]) -> Result<()> {
        match &self.transaction {
            None => Ok(()),
            Some(transaction) => transaction.claim(names),
        }
    }

    /// Whether a statement sees an array of that name.
    ///
    /// # Errors
    /// Those of reading its definition.
    pub(crate) fn has_array(&self, name: &str) -> Result<bool> {
        let arrays = match &self.transaction {
            Some(transaction) => transaction.arrays(&self.instance),
            None => Arrays {
                snapshot: self.instance.store.snapshot(),
                own: None,
            },
        };
        Ok(arrays.find(name)?.is_some())
    }

    /// As [`keep`](Scope::keep), of a statement that has changed these arrays.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn keep_arrays(&mut self, writing: Writing, names: &[&str]) -> Result<()> {
        match &mut self.transaction {
            None => writing.commit().await,
            Some(transaction) => transaction.keep_arrays(writing, names),
        }
    }

    /// Keeps what was written: makes it durable and visible where the statement is a transaction of its own.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn keep(&mut self, writing: Writing) -> Result<()> {
        match &mut self.transaction {
            None => writing.commit().await,
            Some(transaction) => transaction.keep(writing),
        }
    }
}
