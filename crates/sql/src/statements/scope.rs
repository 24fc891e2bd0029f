//! Where a statement runs: as a transaction of its own, or within the open transaction of its session.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use catalog::rights::{self, Rights, denied};
use catalog::search_path::{SearchPath, SessionPath, no_schema, text_of};
use catalog::settings::SessionSettings;
use store::Snapshot;
use syntax::names::{SCHEMA, check_new, known, of_schema, schema_of, session_of};
use syntax::system::is_of_catalog;
use table::{Acl, ROLES, Tables};

use crate::error::{Error, Result};
use crate::functions::sequences::relation;
use crate::functions::system;
use crate::functions::temporal::local::Local;
use crate::resources::sequences::SessionNumbers;
use crate::run::arrays::Arrays;
use crate::run::context::StatementContext;
use crate::run::frames::{Frames, Given};
use crate::run::instance::Instance;
use crate::run::watch::Watch;
use crate::statements::access;
use crate::statements::temporary::Temporary;
use crate::statements::transaction::OpenTransaction;
use crate::statements::write::Writing;

/// What a statement gets from whoever runs it.
pub(crate) struct Caller {
    /// Rows that it reads.
    pub frames: Frames,
    /// Who it is of, if that has a name.
    pub user: Option<Arc<str>>,
    /// Where its session looks names up, and the role that it has taken.
    pub path: Arc<SessionPath>,
    /// What a server has been told of the session.
    pub settings: Arc<SessionSettings>,
    /// Whether queries for the row of one key are planned as all others.
    pub plans: bool,
}

impl Caller {
    /// Who its session is of: a role in the place of its user, or that. None: who runs the program.
    fn session_user(&self) -> Option<Arc<str>> {
        self.path.authorization().or_else(|| self.user.clone())
    }

    /// The role whose rights its statements have; none: who runs the program.
    fn role(&self) -> Option<Arc<str>> {
        self.path.role().or_else(|| self.session_user())
    }

    /// That the role of the session's user is the one that it began with.
    fn check_user(&self, tables: &Tables) -> Result<()> {
        match self
            .user
            .as_ref()
            .and_then(|user| Some((user, tables.role(user)?)))
        {
            Some((user, role)) if !self.path.is_of(role.number) => Err(is_gone(user)),
            _ => Ok(()),
        }
    }

    /// Those rights.
    pub(crate) fn rights(&self, tables: &Tables) -> Result<Rights> {
        self.check_user(tables)?;
        let role = self.role();
        // Who connected may have lost the right to be another.
        if let (Some(other), Some(user)) = (self.path.authorization(), &self.user)
            && tables.has_roles()
            && !may_be_of(tables, user)
        {
            return Err(not_of(&other));
        }
        if let (Some(taken), Some(user)) = (self.path.role(), self.session_user())
            && tables.has_roles()
            && !may_be(tables, &user, &taken)
        {
            return Err(denied(format!("permission denied to set role \"{taken}\"")));
        }
        Rights::of(tables, role.as_deref())
    }
}

/// The error for a session whose user is a role that was dropped, whatever has its name now.
fn is_gone(user: &str) -> Error {
    denied(format!(
        "role \"{user}\" is not the one that this session began with, which was dropped: connect again"
    ))
}

/// Whether a session of this user may take that role.
pub(crate) fn may_be(tables: &Tables, user: &str, role: &str) -> bool {
    may_be_of(tables, user) || rights::reached(tables, user, false).contains(role)
}

/// Whether a session of this user may be of another.
pub(crate) fn may_be_of(tables: &Tables, user: &str) -> bool {
    tables.role(user).is_some_and(|own| own.superuser)
}

/// The error for a session that may not be of this role.
pub(crate) fn not_of(role: &str) -> Error {
    denied(format!(
        "permission denied to set session authorization \"{role}\""
    ))
}

/// Where a statement finds the tables that it reads.
pub(crate) enum Look {
    /// In what is committed.
    Snapshot(Snapshot),
    /// In its transaction.
    Tables(Arc<Tables>),
    /// In its transaction, which has to wait for the turn to write first.
    Wait,
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
    /// What is made, and what was said of it if it was there.
    makes: Vec<(String, Option<Acl>)>,
    /// The open transaction of the session; none where the statement is one itself.
    transaction: Option<&'t mut OpenTransaction>,
    /// Rows that parts of the statement have given.
    given: Given,
    /// What sees how the rows come that the statement writes, if it is analysed.
    pub watch: Option<Arc<Watch>>,
}

/// The name of a user, or of who runs the program.
fn named(user: Option<&Arc<str>>) -> String {
    user.map_or_else(system::user, |user| user.to_string())
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
            makes: Vec::new(),
            transaction,
            given: Given::default(),
            watch: None,
        }
    }

    /// The same with rows that parts of the statement have given.
    pub(crate) fn with_given(self, given: Given) -> Scope<'t> {
        Scope { given, ..self }
    }

    /// Whether the session is still to be told that an index is a name.
    pub(crate) fn is_new_to_indexes(&self) -> bool {
        self.caller.settings.is_new_to_indexes()
    }

    /// Whether the caller or parts of the statement have given rows, which the statement may mean by a name.
    pub(crate) fn has_given(&self) -> bool {
        !self.given.is_empty() || !self.caller.frames.is_empty()
    }

    /// Whether all queries are planned.
    pub(crate) fn always_plans(&self) -> bool {
        self.caller.plans
    }

    /// Where the statement finds the tables that it reads.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn look(&mut self) -> Result<Look> {
        let Some(transaction) = &mut self.transaction else {
            return Ok(Look::Snapshot(self.instance.store.snapshot()));
        };
        Ok(match transaction.look(&self.instance)? {
            Some(tables) => Look::Tables(tables),
            None => Look::Wait,
        })
    }

    /// Whether the statement may do everything, without looking at whom things belong to.
    pub(crate) fn may_everything(&self, snapshot: &Snapshot) -> bool {
        self.caller.role().is_none() || !table::has_roles(snapshot)
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

    /// The user who has connected; none: who runs the program.
    pub(crate) fn user(&self) -> Option<&Arc<str>> {
        self.caller.user.as_ref()
    }

    /// Who the session is of, as `session_user` gives it; none: who runs the program.
    pub(crate) fn session_user(&self) -> Option<Arc<str>> {
        self.caller.session_user()
    }

    /// The role whose rights the statement has; none: who runs the program.
    pub(crate) fn role(&self) -> Option<Arc<str>> {
        self.caller.role()
    }

    /// The rights of the statement over these tables.
    ///
    /// # Errors
    /// If its role does not exist.
    pub(crate) fn rights(&self, tables: &Tables) -> Result<Rights> {
        let rights = self.caller.rights(tables)?;
        if self.is_alone()
            && let Some(user) = &self.caller.user
            && let Some(role) = tables.role(user)
        {
            self.caller.path.begin_as(role.number);
        }
        let Some(role) = self
            .caller
            .role()
            .filter(|_| !self.is_alone() && rights.is_all())
        else {
            return Ok(rights);
        };
        // Who was a superuser when the transaction began need not be one any more.
        let latest = self.instance.store.snapshot();
        let latest = self.instance.catalog.tables(&latest)?;
        self.caller.check_user(&latest)?;
        match (latest.role(&role), tables.role(&role)) {
            (Some(_), _) => Rights::of(&latest, Some(&role)),
            (None, None) => Rights::of(&latest, Some(&role)),
            // The transaction has made it.
            (None, Some(_)) => Ok(rights),
        }
    }

    /// Where the session looks names up.
    pub(crate) fn session_path(&self) -> &SessionPath {
        &self.caller.path
    }

    /// Where the statement looks names up.
    pub(crate) fn path(&self) -> SearchPath {
        let made = self.sees_temporary && self.temporary.is_made();
        let temporary = made.then(|| self.temporary.schema());
        let setting = self.caller.path.setting();
        SearchPath::new(&setting, &self.role_name(), temporary)
    }

    /// How the session reads and writes dates and times.
    pub(crate) fn local(&self) -> Local {
        let dates = self.caller.path.dates();
        self.caller.settings.now(String::new(), dates).local()
    }

    /// Who the statement is of.
    pub(crate) fn user_name(&self) -> String {
        named(self.session_user().as_ref())
    }

    /// The name of the role whose rights the statement has, as `current_user` gives it.
    pub(crate) fn role_name(&self) -> String {
        named(self.role().as_ref())
    }

    /// Whether a name without a schema cannot be in another than `public`: the store has none, and the session has no
    /// temporary tables and has set no path.
    pub(crate) fn sees_one_schema(&self) -> bool {
        !self.temporary.is_made()
            && self.caller.path.setting().is_none()
            && !self.instance.schemas.load(Ordering::Acquire)
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

    /// The name in the catalog of the table that the session [writes](syntax::names::written) so.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn own(&self, written: &str) -> Result<String> {
        if self.sees_one_schema() && !is_of_catalog(written) {
            return Ok(known(written));
        }
        Ok(self.path().resolve(&*self.tables()?, written))
    }

    /// The name in the catalog of the table that a caller calls `name`, which is no part of a statement: its name as it is,
    /// or, if no table has that, with its schema and a point before it, as statements write it.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn called(&self, name: &str) -> Result<String> {
        let (own, tables) = (self.own(name)?, self.tables()?);
        if tables.get(&own).is_none()
            && let Ok(written) = relation(name)
            && table::schema_of(&written).is_some()
        {
            return Ok(self.path().resolve(&tables, &written));
        }
        Ok(own)
    }

    /// The name in the catalog of what is to be created and is [written](syntax::names::written) so.
    ///
    /// # Errors
    /// If it cannot be a name; if its schema does not exist; those of reading the catalog.
    pub(crate) fn new_name(&self, written: &str) -> Result<String> {
        check_new(written)?;
        self.path().creates(&*self.tables()?, written)
    }

    /// That the schema of `name`, which is created, is there, and stays.
    ///
    /// # Errors
    /// If it is not; [`Error::Conflict`](crate::error::Error::Conflict) if somebody has dropped it since the transaction began.
    pub(crate) fn schema_stays(&self, context: &StatementContext, name: &str) -> Result<()> {
        let schema = schema_of(name);
        if schema == SCHEMA || session_of(name).is_some() {
            return Ok(());
        }
        self.claim(&[of_schema(schema)])?;
        if context.tables.has_schema(schema) {
            Ok(())
        } else {
            Err(no_schema(schema))
        }
    }

    /// The right to change all that is in a schema.
    ///
    /// # Errors
    /// As [`write`](Scope::write).
    pub(crate) fn claim_schema(&self, schema: &str) -> Result<()> {
        match &self.transaction {
            None => Ok(()),
            Some(transaction) => transaction.claim_schema(schema),
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

    /// What a statement would see that ran now, for one that is only looked at, or whose words are: it fixes no snapshot.
    ///
    /// # Errors
    /// Those of reading the catalog.
    pub(crate) fn peek(&mut self, started: Instant) -> Result<StatementContext> {
        let context = match &mut self.transaction {
            None => {
                let snapshot = self.instance.store.snapshot();
                StatementContext::new(&self.instance, &snapshot, started)?
            }
            Some(transaction) => transaction.peek(&self.instance, started)?,
        };
        self.of_caller(context)
    }

    /// What a query sees that locks rows of the tables `names`: in a transaction of several statements it takes the turn to write.
    ///
    /// # Errors
    /// As [`write`](Scope::write).
    pub(crate) async fn lock(
        &mut self,
        what: &str,
        names: &[&str],
        started: Instant,
    ) -> Result<StatementContext> {
        let Some(transaction) = &mut self.transaction else {
            return self.read(started).await;
        };
        let writing = transaction.write(&self.instance, what, names, started);
        let (_, context) = writing.await?;
        self.of_caller(context)
    }

    /// Whether its transaction has the turn to write.
    pub(crate) fn has_turn(&self) -> bool {
        let transaction = self.transaction.as_ref();
        transaction.is_some_and(|transaction| transaction.has_turn())
    }

    /// Gives a statement what is its caller's: the functions over sequences, the name of the user, and frames.
    fn of_caller(&self, mut context: StatementContext) -> Result<StatementContext> {
        let transaction = self.transaction.as_ref();
        let read_only = transaction.map_or_else(
            || self.caller.settings.modes().read_only,
            |transaction| transaction.modes().read_only,
        );
        let rights = self.rights(&context.tables)?;
        context.given = Arc::clone(&self.given);
        if let Some(transaction) = transaction {
            context = context.of_transaction(transaction.began);
        }
        let settings = self.caller.settings.now(
            text_of(&self.caller.path.setting()),
            self.caller.path.dates(),
        );
        let taken = transaction.map(|transaction| transaction.locks());
        let locks = self.caller.settings.locks();
        context
            .with_path(self.path())
            .with_settings(settings.locking(locks, taken.unwrap_or_default()))
            .with_rights(rights, self.caller.role())
            .with_numbers(&self.numbers, read_only)
            .within_limits(self.caller.user.as_ref())
            .of_user(
                self.caller.session_user().as_ref(),
                self.caller.path.role().as_ref(),
            )
            .with_frames(&self.caller.frames)
    }

    /// The right to write, and what the statement sees. `what` is the statement for messages, `names` are the tables
    /// that it changes.
    ///
    /// # Errors
    /// [`Error::Conflict`](crate::error::Error::Conflict) if another has the turn for too long, or has changed one of
    /// `names` since the transaction began; [`Error::Transaction`](crate::error::Error::Transaction) if that is to read
    /// only; [`Error::Denied`](crate::error::Error::Denied) if whose statement it is may not do that; those of the store.
    pub(crate) async fn write(
        &mut self,
        what: &str,
        names: &[&str],
        started: Instant,
    ) -> Result<(Writing, StatementContext)> {
        let (mut writing, context) = match &mut self.transaction {
            None => {
                self.caller.settings.modes().permit(what, names)?;
                let claim = self.caller.settings.locks().claim(what, names)?;
                let writing = Writing::begin(&self.instance, Some(claim)).await?;
                let context = StatementContext::new(&self.instance, writing.tx.base(), started)?;
                (writing, context)
            }
            Some(transaction) => {
                transaction
                    .write(&self.instance, what, names, started)
                    .await?
            }
        };
        let mut context = self.of_caller(context)?;
        context.watch.clone_from(&self.watch);
        writing.charge(context.budget());
        access::check(&context, what, names)?;
        if access::makes(what) {
            let names = names.iter().filter(|name| **name != ROLES);
            self.makes.extend(names.map(|&name| {
                let before = context.tables.acl(name).cloned();
                let there = access::is_there(&context, name);
                (
                    name.to_owned(),
                    before
                        .filter(|_| there)
                        .or_else(|| there.then(Acl::default)),
                )
            }));
        }
        Ok((writing, context))
    }

    /// Says whom what was made belongs to.
    fn own_made(&mut self, writing: &mut Writing) -> Result<()> {
        let owner = self.caller.role();
        for (name, before) in std::mem::take(&mut self.makes) {
            if table::acl(&writing.tx, &name)?.is_some() {
                continue;
            }
            let acl = match (before, &owner) {
                // It took the place of another.
                (Some(before), _) if before != Acl::default() => before,
                (None, Some(owner)) if self.tables()?.has_roles() => {
                    let mut acl = rights::first(&name);
                    acl.owner = Some(owner.to_string());
                    acl
                }
                _ => continue,
            };
            table::put_acl(&mut writing.tx, &name, &acl)?;
        }
        Ok(())
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
    pub(crate) async fn keep_arrays(&mut self, mut writing: Writing, names: &[&str]) -> Result<()> {
        self.own_made(&mut writing)?;
        match &mut self.transaction {
            None => writing.commit().await,
            Some(transaction) => transaction.keep_arrays(writing, names),
        }
    }

    /// Keeps what was written: makes it durable and visible where the statement is a transaction of its own.
    ///
    /// # Errors
    /// Those of the store.
    pub(crate) async fn keep(&mut self, mut writing: Writing) -> Result<()> {
        self.own_made(&mut writing)?;
        match &mut self.transaction {
            None => {
                if self.temporary.has_ends() {
                    let tables = self.instance.catalog.fork().tables(&writing.tx.view())?;
                    self.temporary.end(&tables, &mut writing.tx)?;
                }
                writing.commit().await
            }
            Some(transaction) => transaction.keep(writing),
        }
    }
}
