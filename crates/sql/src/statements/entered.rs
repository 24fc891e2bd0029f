//! A statement in its session: where it runs, and what becomes of the session's transaction if it fails.

use std::sync::Arc;
use std::time::Instant;

use catalog::rights::Rights;
use catalog::search_path::SessionPath;
use catalog::settings::SessionSettings;
use sqlparser::ast::{ObjectType, Statement as Sql};
use syntax::changes::only_types;
use syntax::modes::{Isolation, Modes};
use syntax::parse::{Statement, Step};
use syntax::schemas::SchemaStatement;
use syntax::steps::Touched;
use table::Tables;
use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard};

use crate::error::Result;
use crate::resources::sequences::SessionNumbers;
use crate::run::answer::Answer;
use crate::run::frames::Frames;
use crate::run::instance::Instance;
use crate::statements::control::Control;
use crate::statements::prepare::Names;
use crate::statements::scope::{Caller, Scope};
use crate::statements::steps::Done;
use crate::statements::temporary::Temporary;
use crate::statements::transaction::{OpenTransaction, clock};
use crate::statements::{dispatch, elements, schemas};

/// What the statements of a session share: the transaction, if one is in progress. Its statements hold it one after the other; those of a session
/// without one run at the same time.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    open: Arc<Mutex<Option<OpenTransaction>>>,
    /// The tables that go with the session.
    temporary: Arc<Temporary>,
    /// What the session has got of sequences.
    numbers: Arc<SessionNumbers>,
    /// Rows of the caller that the statements of this handle of the session read.
    frames: Frames,
    /// Who its statements are of, if they are of somebody with a name.
    user: Option<Arc<str>>,
    /// Where names are looked up.
    path: Arc<SessionPath>,
    /// What a server has been told of the session.
    settings: Arc<SessionSettings>,
    /// Whether queries for the row of one key are planned as all others.
    plans: bool,
}

impl Shared {
    /// What the statements of a new session share.
    pub(crate) fn new(instance: &Arc<Instance>) -> Shared {
        Shared {
            open: Arc::default(),
            temporary: Arc::new(Temporary::new(instance)),
            numbers: Arc::default(),
            frames: Frames::default(),
            user: None,
            path: Arc::default(),
            settings: Arc::new(SessionSettings::new(instance.locks.session())),
            plans: false,
        }
    }

    /// The same whose queries are all planned.
    pub(crate) fn planning(self) -> Shared {
        Shared {
            plans: true,
            ..self
        }
    }

    /// Whether its queries are all planned.
    pub(crate) fn always_plans(&self) -> bool {
        self.plans
    }

    /// The same of this user.
    pub(crate) fn of_user(self, user: Arc<str>) -> Shared {
        Shared {
            user: Some(user),
            ..self
        }
    }

    /// The tables that go with the session.
    pub(crate) fn temporary(&self) -> &Temporary {
        &self.temporary
    }

    /// The rights of its statements over these tables.
    ///
    /// # Errors
    /// If its role does not exist.
    pub(crate) fn rights(&self, tables: &Tables) -> Result<Rights> {
        let caller = Caller {
            frames: Frames::default(),
            user: self.user.clone(),
            path: Arc::clone(&self.path),
            settings: Arc::clone(&self.settings),
            plans: self.plans,
        };
        caller.rights(tables)
    }

    /// Where names are looked up.
    pub(crate) fn path(&self) -> &Arc<SessionPath> {
        &self.path
    }

    /// Who its statements are of.
    pub(crate) fn user(&self) -> Option<&Arc<str>> {
        self.user.as_ref()
    }

    /// What a server has been told of the session.
    pub(crate) fn settings(&self) -> &SessionSettings {
        &self.settings
    }

    /// The same with these frames.
    pub(crate) fn with_frames(self, frames: Frames) -> Shared {
        Shared { frames, ..self }
    }

    /// The transaction, once no statement holds it.
    pub(crate) async fn lock(&self) -> MutexGuard<'_, Option<OpenTransaction>> {
        self.open.lock().await
    }

    /// The transaction, unless a statement holds it.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, Option<OpenTransaction>>> {
        self.open.try_lock().ok()
    }
}

/// A statement that runs in a session. If it is dropped before it [succeeds](Entered::succeed) it has failed, and the
/// transaction in progress with it.
pub(crate) struct Entered {
    instance: Arc<Instance>,
    /// None if no transaction is in progress.
    open: Option<OwnedMutexGuard<Option<OpenTransaction>>>,
    numbers: Arc<SessionNumbers>,
    frames: Frames,
    user: Option<Arc<str>>,
    temporary: Arc<Temporary>,
    path: Arc<SessionPath>,
    settings: Arc<SessionSettings>,
    plans: bool,
}

impl Entered {
    /// Waits for the statement of the same transaction that runs, if one does; writes the rows that it has
    /// [gathered](crate::statements::gathered).
    ///
    /// # Errors
    /// If one has failed before; those of writing these rows.
    pub(crate) async fn new(instance: Arc<Instance>, shared: Shared) -> Result<Entered> {
        let mut entered = Entered::beside_gathered(instance, shared).await?;
        match entered.transaction() {
            Some(open) if !open.gathered.is_empty() => entered.write_gathered().await,
            _ => Ok(entered),
        }
    }

    /// The same for a statement that does not see the rows that were gathered.
    ///
    /// # Errors
    /// If one has failed before.
    pub(super) async fn beside_gathered(
        instance: Arc<Instance>,
        shared: Shared,
    ) -> Result<Entered> {
        let Shared {
            open,
            temporary,
            numbers,
            frames,
            user,
            path,
            settings,
            plans,
        } = shared;
        let mut guard = open.lock_owned().await;
        let open = match guard.as_mut() {
            None => None,
            Some(open) => {
                open.enter()?;
                Some(guard)
            }
        };
        Ok(Entered {
            instance,
            open,
            numbers,
            frames,
            user,
            temporary,
            path,
            settings,
            plans,
        })
    }

    /// Writes the rows that were gathered, on a worker.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn write_gathered(mut self) -> Result<Entered> {
        let instance = Arc::clone(&self.instance);
        let work = async move {
            let instance = Arc::clone(&self.instance);
            if let Some(open) = self.transaction() {
                open.write_gathered(&instance).await?;
            }
            Ok(self)
        };
        instance.on_workers(work).await
    }

    pub(super) fn instance(&self) -> &Arc<Instance> {
        &self.instance
    }

    /// The transaction in progress, if there is one.
    pub(super) fn transaction(&mut self) -> Option<&mut OpenTransaction> {
        self.open.as_mut().and_then(|open| open.as_mut())
    }

    /// Whether the statement is in a transaction of several.
    pub(super) fn is_within(&self) -> bool {
        self.open.is_some()
    }

    /// Where the statement reads and writes.
    pub(crate) fn scope(&mut self) -> Scope<'_> {
        let instance = Arc::clone(&self.instance);
        let numbers = Arc::clone(&self.numbers);
        let temporary = Arc::clone(&self.temporary);
        let caller = self.caller();
        let transaction = self.open.as_mut().and_then(|open| open.as_mut());
        Scope::new(instance, numbers, caller, temporary, transaction)
    }

    fn caller(&self) -> Caller {
        Caller {
            frames: self.frames.clone(),
            user: self.user.clone(),
            path: Arc::clone(&self.path),
            settings: Arc::clone(&self.settings),
            plans: self.plans,
        }
    }

    /// A transaction for what the statement does in several steps.
    fn own_transaction(&self, modes: Modes) -> OpenTransaction {
        OpenTransaction::new(modes, self.settings.locks(), None)
    }

    /// Runs these statements as one: all of them, or none. Returns the answer of the last.
    ///
    /// # Errors
    /// The first of any of them, and that of the commit where no transaction is in progress.
    async fn all(&mut self, statements: Vec<Statement>, started: Instant) -> Result<Answer> {
        let mut own = match &self.open {
            Some(_) => None,
            None => Some(self.own_transaction(self.settings.modes())),
        };
        let mut answer = Answer::changed(None, &clock(&self.instance, started));
        for statement in statements {
            let caller = self.caller();
            let mut scope = self.scope_of(own.as_mut(), caller);
            let before = std::mem::take(&mut answer.notices);
            answer = dispatch::run(&mut scope, statement, started).await?;
            answer.notices.splice(0..0, before);
        }
        if let Some(own) = own {
            own.commit(&self.temporary).await?;
        }
        Ok(answer)
    }

    /// Runs the parts of a statement one after the other, each with the rows of those before it, as one.
    ///
    /// # Errors
    /// The first of any of them, and that of the commit where no transaction is in progress; if one would read what another
    /// has changed.
    async fn steps(
        &mut self,
        before: Vec<Step>,
        (last, touched): (Statement, Touched),
        started: Instant,
    ) -> Result<Answer> {
        let mut own = match &self.open {
            Some(_) => None,
            None => {
                // The turn comes before the snapshot, so that nobody changes in between what is to be changed.
                let modes = Modes {
                    isolation: Isolation::Serializable,
                    ..self.settings.modes()
                };
                Some(self.own_transaction(modes))
            }
        };
        let open = self.open.as_mut().and_then(|open| open.as_mut());
        if let Some(open) = open {
            open.begin_with_turn(&self.instance).await?;
        }
        let mut done = Done::new(&self.instance.budget);
        for step in before {
            let mut scope = self.scope_in(own.as_mut(), &done);
            let context = scope.read(started).await?;
            done.check(&context, &step.touched)?;
            let answer = dispatch::run(&mut scope, step.statement, started).await?;
            done.take(&context, &step.touched, (&step.name, &step.columns), answer)?;
        }
        let mut scope = self.scope_in(own.as_mut(), &done);
        let context = scope.read(started).await?;
        done.check(&context, &touched)?;
        let answer = dispatch::run(&mut scope, last, started).await?;
        if let Some(own) = own {
            own.commit(&self.temporary).await?;
        }
        Ok(answer)
    }

    /// Makes a schema and what is in it, all of it or nothing: as who it is made for, who looks names up in it first.
    ///
    /// # Errors
    /// The first of any of the statements, and that of the commit where no transaction is in progress.
    async fn schema(
        &mut self,
        create: SchemaStatement,
        elements: Vec<Statement>,
        started: Instant,
    ) -> Result<Answer> {
        let mut own = match &self.open {
            Some(_) => None,
            None => Some(self.own_transaction(self.settings.modes())),
        };
        let caller = self.caller();
        let mut scope = self.scope_of(own.as_mut(), caller);
        let statement = Statement::Schema(create.clone());
        let mut answer = dispatch::run(&mut scope, statement, started).await?;
        let (name, owner) = schemas::made(&scope, create)?;
        drop(scope);
        for element in elements::within_schema(elements, &name)? {
            let mut caller = self.caller();
            caller.path = Arc::new(self.path.within(&name, owner.is_none()));
            if let Some(owner) = &owner {
                caller.user = Some(Arc::from(owner.as_str()));
            }
            let mut scope = self.scope_of(own.as_mut(), caller);
            let made = dispatch::run(&mut scope, element, started).await?;
            answer.notices.extend(made.notices);
        }
        if let Some(own) = own {
            own.commit(&self.temporary).await?;
        }
        Ok(answer)
    }

    /// Where a part of a statement reads and writes: in the transaction in progress, or in its `own`.
    fn scope_in<'s>(&'s mut self, own: Option<&'s mut OpenTransaction>, done: &Done) -> Scope<'s> {
        let caller = self.caller();
        self.scope_of(own, caller)
            .with_given(Arc::clone(&done.given))
    }

    /// Where a part of a statement reads and writes for `caller`: in the transaction in progress, or in its `own`.
    fn scope_of<'s>(
        &'s mut self,
        own: Option<&'s mut OpenTransaction>,
        caller: Caller,
    ) -> Scope<'s> {
        let (instance, numbers) = (Arc::clone(&self.instance), Arc::clone(&self.numbers));
        let temporary = Arc::clone(&self.temporary);
        let transaction = match &mut self.open {
            Some(open) => open.as_mut(),
            None => own,
        };
        Scope::new(instance, numbers, caller, temporary, transaction)
    }

    /// The statement is done. Returns the number of the transaction that it belongs to.
    pub(crate) fn succeed(mut self) -> Option<u64> {
        let open = self.open.as_mut().and_then(|open| open.as_mut())?;
        open.succeed();
        Some(open.number())
    }
}

/// Runs one statement in a session.
///
/// # Errors
/// Those of the statement; a transaction in progress has failed then.
pub(crate) async fn within(
    instance: Arc<Instance>,
    shared: Shared,
    names: Names,
    statement: Statement,
    started: Instant,
) -> Result<Answer> {
    if let Some(control) = Control::of(&statement)? {
        let mut open = shared.lock().await;
        return control
            .run(
                &instance,
                (shared.path(), shared.temporary(), shared.settings()),
                &mut open,
                started,
            )
            .await;
    }
    let mut entered = Entered::new(Arc::clone(&instance), shared).await?;
    let done = || Answer::changed(None, &clock(&instance, started));
    let statement = match statement {
        Statement::Execute { name, arguments } => names.execute(&name, &arguments)?,
        other => other,
    };
    let answer = match statement {
        Statement::Steps {
            before,
            last,
            touched,
        } => entered.steps(before, (*last, touched), started).await?,
        Statement::Prepare { name, prepared } => names.prepare(name, prepared).map(|()| done())?,
        Statement::Deallocate(name) => names.deallocate(name.as_deref()).map(|()| done())?,
        Statement::Changes(changes) => entered.all(changes, started).await?,
        Statement::NewSchema { create, elements } => {
            entered.schema(create, elements, started).await?
        }
        other => match changes(other) {
            Ok(changes) => entered.all(changes, started).await?,
            Err(other) => dispatch::run(&mut entered.scope(), *other, started).await?,
        },
    };
    entered.succeed();
    Ok(answer)
}

/// The changes of an `alter table` that makes several, each as a statement; any other statement comes back.
fn changes(statement: Statement) -> std::result::Result<Vec<Statement>, Box<Statement>> {
    let Statement::Sql(sql) = statement else {
        return Err(Box::new(statement));
    };
    match *sql {
        Sql::Drop {
            object_type: ObjectType::Index,
            if_exists,
            names,
            cascade,
            restrict,
            purge,
            temporary,
            table,
        } if names.len() > 1 => {
            let each = names.into_iter().map(|name| {
                Statement::Sql(Box::new(Sql::Drop {
                    object_type: ObjectType::Index,
                    if_exists,
                    names: vec![name],
                    cascade,
                    restrict,
                    purge,
                    temporary,
                    table: table.clone(),
                }))
            });
            Ok(each.collect())
        }
        Sql::AlterTable(mut alter)
            if alter.operations.len() > 1 && !only_types(&alter.operations) =>
        {
            let operations = std::mem::take(&mut alter.operations);
            let each = operations.into_iter().map(|operation| {
                let mut one = alter.clone();
                one.operations = vec![operation];
                Statement::Sql(Box::new(Sql::AlterTable(one)))
            });
            Ok(each.collect())
        }
        other => Err(Box::new(Statement::Sql(Box::new(other)))),
    }
}
