//! Who calls, and the session in which a call runs its statements.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll::{Account, Session, TransactionStatus};
use bytes::Bytes;

use crate::client::control::{self, Command};
use crate::errors;
use crate::flight::call;
use crate::flight::status::{Ended, Status};
use crate::flight::transactions::{Held, Transactions};
use crate::http2::connection::Watch;
use crate::limits::{IDLE, Limits, STATEMENT};
use crate::outcome::Outcome;
use crate::security::identity::Identity;
use crate::sessions::{Client, Doing, Line, Newcomer, Seat, Sessions};
use crate::shared::{Counts, Shared};
use crate::weight;
use crate::wire::backend::Report;

/// Who calls.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub who: Identity,
    pub address: SocketAddr,
    /// What the client calls itself.
    pub agent: String,
    /// How long it waits.
    pub timeout: Option<Duration>,
    pub watch: Watch,
}

impl Line for Watch {
    fn is_gone(&self) -> bool {
        Watch::is_gone(self)
    }

    fn hang_up(&self) {}
}

/// A number that nobody guesses.
///
/// # Errors
/// If the system has no random numbers.
pub(crate) fn unguessable() -> Result<Bytes, Ended> {
    let mut bytes = [0; 16];
    scram::fill(&mut bytes).map_err(|reason| Report::error(errors::INTERNAL, reason))?;
    Ok(Bytes::copy_from_slice(&bytes))
}

impl Caller {
    /// What an administrator lets this caller have.
    ///
    /// # Errors
    /// If the catalog cannot be read.
    pub(crate) fn limits(&self, shared: &Shared) -> Result<Limits, Ended> {
        Ok(Limits::of(&shared.database, &self.who.user)?)
    }

    /// A new session of this caller.
    ///
    /// # Errors
    /// If its role has a path that is none.
    pub(crate) fn session(&self, shared: &Shared, limits: &Limits) -> Result<Session, Ended> {
        let Identity { user, role, .. } = &self.who;
        let session = shared.database.session().of_role(user, *role);
        let session = limits.session(session)?;
        Ok(if shared.options.files {
            session
        } else {
            session.without_files()
        })
    }

    /// A seat for a session, if there is one.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn seat(
        &self,
        shared: &Shared,
        (session, limits): (&Session, &Limits),
        line: Box<dyn Line>,
    ) -> Result<Seat, Ended> {
        let mut secret = [0; 4];
        scram::fill(&mut secret).map_err(|reason| Report::error(errors::INTERNAL, reason))?;
        let newcomer = Newcomer {
            user: self.who.user.clone(),
            role: self.who.role,
            application: self.agent.chars().take(64).collect(),
            address: self.address,
            secret,
            interrupter: session.interrupter(),
            line,
            most: limits.connections,
        };
        let most = shared.options.max_connections;
        let seat = shared.sessions.take_in(newcomer, most).map_err(|full| {
            shared.counts.refused.add(1);
            Report::error(errors::TOO_MANY, full.message())
        })?;
        let sessions: Arc<Sessions> = Arc::clone(&shared.sessions);
        let backend = sql::Backend::new(seat.client.process, sessions);
        // All clones of a session are of the same place.
        drop(session.clone().of_backend(backend));
        Ok(seat)
    }

    /// The session in which a call runs its statements: that of the transaction, or one of its own.
    ///
    /// # Errors
    /// If there is no such transaction, or it runs something else; if there are too many sessions.
    pub(crate) fn enter(
        &self,
        shared: &Arc<Shared>,
        transactions: &Arc<Transactions>,
        transaction: Option<&Bytes>,
    ) -> Result<Entered, Ended> {
        let limits = self.limits(shared)?;
        let options = &shared.options;
        let statement = limits.time(STATEMENT, None, options.statement_timeout);
        let idle = limits.time(IDLE, None, options.idle_in_transaction_timeout);
        let entered = |session, client, of, seat| Entered {
            session,
            client,
            of,
            _seat: seat,
            shared: Arc::clone(shared),
            timeout: match (statement, self.timeout) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            idle,
        };
        // No transaction has an empty handle; some clients send one that stands for none.
        if let Some(id) = transaction.filter(|id| !id.is_empty()) {
            let held = transactions.take(id, &self.who, &self.watch)?;
            let (session, client) = (held.session.clone(), Arc::clone(&held.seat.client));
            let of = Some((held, Arc::clone(transactions)));
            return Ok(entered(session, client, of, None));
        }
        let session = self.session(shared, &limits)?;
        let seat = self.seat(shared, (&session, &limits), Box::new(self.watch.clone()))?;
        let client = Arc::clone(&seat.client);
        Ok(entered(session, client, None, Some(seat)))
    }
}

/// A session in which a call runs its statements.
#[derive(Debug)]
pub(crate) struct Entered {
    pub session: Session,
    pub client: Arc<Client>,
    /// The transaction of several calls that it is of, if it is of one.
    of: Option<(Arc<Held>, Arc<Transactions>)>,
    /// Its own seat, if it is of none.
    _seat: Option<Seat>,
    shared: Arc<Shared>,
    /// How long a statement may take.
    timeout: Option<Duration>,
    /// How long its transaction may wait for the next call.
    idle: Option<Duration>,
}

impl Entered {
    /// Whether the transaction of the session is of this call alone.
    pub(crate) fn is_alone(&self) -> bool {
        self.of.is_none()
    }

    /// How long its transaction may wait for its client.
    pub(crate) fn patience(&self) -> Duration {
        self.idle.unwrap_or(Duration::MAX)
    }

    /// What has happened since the server started.
    pub(crate) fn counts(&self) -> &Counts {
        &self.shared.counts
    }

    /// A statement begins, which ends when it takes too long or is not wanted any more.
    pub(crate) fn begin(&self, text: &str) {
        self.shared.counts.statements.add(1);
        let deadline = self
            .timeout
            .and_then(|time| Instant::now().checked_add(time));
        self.client.begin(text, deadline);
    }

    /// Does `work` for the statement `text` until its first rows.
    ///
    /// # Errors
    /// Those of the work, as the client is told them.
    pub(crate) fn timed<T: Outcome>(
        &self,
        text: &str,
        work: impl FnOnce(&Session) -> atoll::Result<T>,
    ) -> Result<T, Ended> {
        let began = Instant::now();
        self.shared.files.check(text)?;
        let _memory = self.kept(text)?;
        let done = work(&self.session);
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.counts.microseconds.add(took);
        // What is committed nobody cancels any more.
        if let Ok(outcome) = &done
            && outcome.is_over()
            && self.session.transaction() == TransactionStatus::Idle
        {
            self.client.settle();
        }
        done.map_err(|e| self.failed(&e, text))
    }

    /// The memory of a statement while it is planned, if it is long.
    fn kept(&self, text: &str) -> Result<Option<Account>, Ended> {
        let weight = weight::of(text);
        if weight == 0 {
            return Ok(None);
        }
        let account = self.session.account();
        let account = account.map_err(|e| errors::report(&e, text))?;
        let taken = account.take(weight as u64);
        taken.map_err(|e| Report::error(errors::MEMORY, e.to_string()))?;
        Ok(Some(account))
    }

    /// What becomes of an error of the statement `text`.
    pub(crate) fn failed(&self, error: &atoll::Error, text: &str) -> Ended {
        if let atoll::Error::Interrupted = error
            && let Err(ended) = call::wanted(&self.client)
        {
            return ended;
        }
        errors::report(error, text).into()
    }

    /// Runs a statement that has no rows.
    ///
    /// # Errors
    /// Those of the statement.
    pub(crate) fn run_quietly(&self, text: &str) -> Result<(), Ended> {
        self.timed(text, |session| session.sql(text).map(drop))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        let doing = match (&self.of, self.session.transaction()) {
            (None, _) | (_, TransactionStatus::Idle) => Doing::Idle,
            (_, TransactionStatus::Failed) => Doing::IdleInFailedTransaction,
            _ => Doing::IdleInTransaction,
        };
        let idle = match doing {
            Doing::Idle => None,
            _ => self.idle,
        };
        let deadline = idle.and_then(|time| Instant::now().checked_add(time));
        self.client.rest(doing, deadline);
        if let Some((held, transactions)) = &self.of {
            // Who asked it to end did so while it ran something.
            let ended = self.client.reason().is_some() || doing == Doing::Idle;
            held.release();
            if ended {
                transactions.end(&held.id);
            }
        }
    }
}

/// Refuses a text that is about the session, which ends with the call.
///
/// # Errors
/// If it is one, in words that say what to do.
pub(crate) fn check(text: &str) -> Result<(), Ended> {
    let message = match control::read(text) {
        None => return Ok(()),
        Some(Command::Transaction(_)) => {
            "transactions begin and end by the actions BeginTransaction and EndTransaction, which drivers send (autocommit off)"
        }
        Some(_) => {
            "a call has a session of its own, which ends with it: there are no settings to show or to change"
        }
    };
    Err(Status::unsupported(message).into())
}
