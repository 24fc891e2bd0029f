//! Settings that whoever serves a session keeps, as its statements see them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use chrono::{DateTime, Utc};
use functions::settings::KnownSession;
use functions::temporal::local::Local;
use parking_lot::Mutex;
use syntax::modes::{Isolation, Modes};

use crate::locks::SessionLocks;
use crate::locks::calls::{LockCalls, TransactionLocks};
pub use functions::temporal::settings::DateSettings;
use messages::Result;

/// A setting of a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Its name, as it is shown.
    pub name: String,
    /// What it is.
    pub value: String,
    /// What it is when it is reset.
    pub first: String,
    /// The type of its values, as `pg_settings` calls it: `bool`, `enum`, `integer`, `real` or `string`.
    pub kind: &'static str,
    /// Whether it cannot be changed.
    pub fixed: bool,
}

/// A cursor that whoever serves a session keeps for it, as `pg_cursors` tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenCursor {
    /// What it is called.
    pub name: String,
    /// The statement that declared it.
    pub statement: String,
    /// Whether it outlives its transaction.
    pub hold: bool,
    /// Whether its rows are in binary.
    pub binary: bool,
    /// Whether it goes back to rows that it has passed.
    pub scroll: bool,
    /// When it was declared, in microseconds since 1970.
    pub declared: i64,
}

/// Whose a session of a server is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOwner {
    /// The name of its user.
    pub user: String,
    /// The number of the role that this was when the session began; none if it was none.
    pub role: Option<u64>,
}

/// The sessions of a server.
pub trait Peers: Send + Sync {
    /// Whose the session of this number is; none if there is none.
    fn owner(&self, process: u32) -> Option<SessionOwner>;

    /// Has the session of this number end, or only its statement; false if there is none.
    fn stop(&self, process: u32, ends: bool) -> bool;
}

/// A session among others of its server: its number, and those that there are.
#[derive(Clone)]
pub struct Backend {
    process: u32,
    peers: Arc<dyn Peers>,
}

impl Backend {
    /// The session of this number among `peers`.
    pub fn new(process: u32, peers: Arc<dyn Peers>) -> Backend {
        Backend { process, peers }
    }
}

/// Fails if a session of somebody may not be ended, or only its statement.
type Judge = dyn Fn(&SessionOwner, bool) -> Result<()> + Send + Sync;

/// Whether a statement may have a session of somebody end, or only its statement.
#[derive(Clone)]
pub struct MayStop(pub Arc<Judge>);

impl std::fmt::Debug for MayStop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MayStop").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for Backend {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Backend").field(&self.process).finish()
    }
}

/// What `default_transaction_isolation`, `default_transaction_read_only` and `default_transaction_deferrable` say.
fn modes(all: &[Setting]) -> Modes {
    let value = |name: &str| {
        let name = format!("default_transaction_{name}");
        let mut all = all.iter();
        all.find(|own| own.name == name)
            .map(|own| own.value.as_str())
    };
    let is_on = |name: &str| value(name).is_some_and(|value| value == "on");
    Modes {
        read_only: is_on("read_only"),
        isolation: value("isolation")
            .and_then(Isolation::named)
            .unwrap_or_default(),
        deferrable: is_on("deferrable"),
    }
}

/// What a server has told of a session, which changes, and the locks that the session has.
#[derive(Debug)]
pub struct SessionSettings {
    all: Mutex<Arc<[Setting]>>,
    cursors: Mutex<Arc<[OpenCursor]>>,
    backend: Mutex<Option<Backend>>,
    /// Whether it was told that an index is a name.
    told_of_indexes: AtomicBool,
    /// What transactions are that are asked for nothing else: what the settings say.
    modes: Mutex<Modes>,
    locks: Arc<SessionLocks>,
}

impl SessionSettings {
    /// Those of a session that was told nothing, and has these locks.
    pub fn new(locks: Arc<SessionLocks>) -> SessionSettings {
        SessionSettings {
            all: Mutex::default(),
            cursors: Mutex::default(),
            backend: Mutex::default(),
            told_of_indexes: AtomicBool::default(),
            modes: Mutex::default(),
            locks,
        }
    }

    /// The locks of the session.
    pub fn locks(&self) -> &Arc<SessionLocks> {
        &self.locks
    }

    /// Whether the session is still to be told that an index is a name; asked a second time, it is not: scripts make
    /// hundreds of them.
    pub fn is_new_to_indexes(&self) -> bool {
        !self.told_of_indexes.swap(true, Ordering::Relaxed)
    }

    /// Takes what the settings are now.
    pub fn set(&self, all: Vec<Setting>) {
        *self.modes.lock() = modes(&all);
        let mut own = all.iter();
        let timeout = own.find(|own| own.name == "lock_timeout");
        let millis = timeout.and_then(|own| own.value.parse().ok());
        self.locks.set_timeout(millis.unwrap_or_default());
        *self.all.lock() = all.into();
    }

    /// What a transaction is that is asked for nothing else.
    pub fn modes(&self) -> Modes {
        *self.modes.lock()
    }

    /// Takes which cursors are open now.
    pub fn set_cursors(&self, all: Vec<OpenCursor>) {
        *self.cursors.lock() = all.into();
    }

    /// Takes who serves the session.
    pub fn set_backend(&self, backend: Backend) {
        self.locks.set_process(backend.process);
        *self.backend.lock() = Some(backend);
    }

    /// Those of a statement that begins now, which looks names up in this `path`. `dates` are those that nobody else keeps.
    pub fn now(&self, path: String, dates: Arc<DateSettings>) -> StatementSettings {
        StatementSettings {
            all: Arc::clone(&self.all.lock()),
            cursors: Arc::clone(&self.cursors.lock()),
            backend: self.backend.lock().clone(),
            may_stop: None,
            path,
            dates,
            began: Some(Utc::now()),
            locks: None,
        }
    }
}

/// The settings of a statement.
#[derive(Clone, Debug, Default)]
pub struct StatementSettings {
    all: Arc<[Setting]>,
    cursors: Arc<[OpenCursor]>,
    backend: Option<Backend>,
    /// Which sessions it may stop; none: any.
    may_stop: Option<MayStop>,
    /// What `search_path` is, which the session keeps itself.
    path: String,
    /// How dates are read and written, unless `all` says it.
    dates: Arc<DateSettings>,
    /// When the statement began, if a session runs it.
    began: Option<DateTime<Utc>>,
    /// What it asks of locks, if a session runs it.
    locks: Option<Arc<LockCalls>>,
}

impl StatementSettings {
    /// The same of a statement of a session with these locks, in a transaction.
    pub fn locking(
        self,
        session: &Arc<SessionLocks>,
        transaction: Arc<TransactionLocks>,
    ) -> StatementSettings {
        StatementSettings {
            locks: Some(LockCalls::new(Arc::clone(session), transaction)),
            ..self
        }
    }

    /// What the statement asks of locks, if a session runs it.
    pub fn locks(&self) -> Option<&Arc<LockCalls>> {
        self.locks.as_ref()
    }

    /// When the statement began, if a session runs it: its transaction may have done so before.
    pub fn began(&self) -> Option<DateTime<Utc>> {
        self.began
    }

    /// All that there are.
    pub(crate) fn all(&self) -> impl Iterator<Item = Setting> + '_ {
        self.all.iter().map(|own| match own.name.as_str() {
            "search_path" => Setting {
                value: self.path.clone(),
                ..own.clone()
            },
            _ => own.clone(),
        })
    }

    /// Whether they are the same, but for who stops other sessions, for cursors, and for when the statement began.
    pub fn is(&self, other: &StatementSettings) -> bool {
        self.path == other.path
            && (Arc::ptr_eq(&self.all, &other.all) || self.all == other.all)
            && self.dates == other.dates
    }

    /// The cursors that there are.
    pub(crate) fn cursors(&self) -> &[OpenCursor] {
        &self.cursors
    }

    /// Whether a server serves the session: then its client takes the rows as it likes.
    pub fn is_served(&self) -> bool {
        self.backend.is_some()
    }

    /// The number of the session, or that of the process if nobody serves it.
    pub(crate) fn process(&self) -> u32 {
        let own = self.backend.as_ref();
        own.map_or_else(std::process::id, |backend| backend.process)
    }

    /// Says which sessions the statement may stop.
    pub fn stops(&mut self, may: MayStop) {
        self.may_stop = Some(may);
    }

    /// Asks the session of that number to end, or its statement; false if there is none.
    ///
    /// # Errors
    /// [`Error::Denied`](messages::Error::Denied) if the statement may not do that.
    pub fn stop(&self, process: i32, ends: bool) -> Result<bool> {
        let (Some(backend), Ok(process)) = (&self.backend, u32::try_from(process)) else {
            return Ok(false);
        };
        let Some(owner) = backend.peers.owner(process) else {
            return Ok(false);
        };
        if let Some(MayStop(may)) = &self.may_stop {
            may(&owner, ends)?;
        }
        Ok(backend.peers.stop(process, ends))
    }

    /// What one is, whatever the case of its name.
    pub fn get(&self, name: &str) -> Option<String> {
        if name.eq_ignore_ascii_case("search_path") {
            return Some(self.path.clone());
        }
        let mut all = self.all.iter();
        let found = all.find(|own| own.name.eq_ignore_ascii_case(name));
        let own = || self.dates.get(name).map(str::to_owned);
        found.map(|own| own.value.clone()).or_else(own)
    }

    /// How dates and times are read and written.
    pub fn local(&self) -> Local {
        let get = |name| self.get(name).unwrap_or_default();
        Local::new(&get("timezone"), &get("datestyle"), &get("intervalstyle"))
    }
}

impl KnownSession for StatementSettings {
    fn setting(&self, name: &str) -> Option<String> {
        self.get(name)
    }

    fn process(&self) -> u32 {
        StatementSettings::process(self)
    }

    fn stop(&self, process: i32, ends: bool) -> Result<bool> {
        StatementSettings::stop(self, process, ends)
    }
}
