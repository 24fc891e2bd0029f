//! A statement in its session: where it runs, and what becomes of the session's transaction if it fails.

use std::sync::Arc;
use std::time::Instant;

use tokio::sync::{Mutex, MutexGuard, OwnedMutexGuard};

use crate::error::Result;
use crate::frontend::parse::Statement;
use crate::resources::sequences::SessionNumbers;
use crate::run::answer::Answer;
use crate::run::frames::Frames;
use crate::run::instance::Instance;
use crate::statements::control::Control;
use crate::statements::dispatch;
use crate::statements::prepare::Names;
use crate::statements::scope::{Caller, Scope};
use crate::statements::transaction::{OpenTransaction, clock};

/// What the statements of a session share: the transaction, if one is in progress. Its statements hold it one after the other; those of a session
/// without one run at the same time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    open: Arc<Mutex<Option<OpenTransaction>>>,
    /// What the session has got of sequences.
    numbers: Arc<SessionNumbers>,
    /// Rows of the caller that the statements of this handle of the session read.
    frames: Frames,
    /// Who its statements are of, if they are of somebody with a name.
    user: Option<Arc<str>>,
}

impl Shared {
    /// The same of this user.
    pub(crate) fn of_user(self, user: Arc<str>) -> Shared {
        Shared {
            user: Some(user),
            ..self
        }
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
}

impl Entered {
    /// Waits for the statement of the same transaction that runs, if one does.
    ///
    /// # Errors
    /// If one has failed before.
    pub(crate) async fn new(instance: Arc<Instance>, shared: Shared) -> Result<Entered> {
        let Shared {
            open,
            numbers,
            frames,
            user,
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
        })
    }

    /// Where the statement reads and writes.
    pub(crate) fn scope(&mut self) -> Scope<'_> {
        let instance = Arc::clone(&self.instance);
        let numbers = Arc::clone(&self.numbers);
        let transaction = self.open.as_mut().and_then(|open| open.as_mut());
        let caller = Caller {
            frames: self.frames.clone(),
            user: self.user.clone(),
        };
        Scope::new(instance, numbers, caller, transaction)
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
        return control.run(&instance, &mut open, started).await;
    }
    let mut entered = Entered::new(Arc::clone(&instance), shared).await?;
    let done = || Answer::changed(None, &clock(&instance, started));
    let answer = match statement {
        Statement::Prepare { name, prepared } => names.prepare(name, prepared).map(|()| done())?,
        Statement::Deallocate(name) => names.deallocate(name.as_deref()).map(|()| done())?,
        Statement::Execute { name, arguments } => {
            let bound = names.execute(&name, &arguments)?;
            dispatch::run(&mut entered.scope(), bound, started).await?
        }
        other => dispatch::run(&mut entered.scope(), other, started).await?,
    };
    entered.succeed();
    Ok(answer)
}
