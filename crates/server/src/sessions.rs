//! The sessions that there are: what each does, and how it is asked to stop.

use std::collections::BTreeMap;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use std::time::{Duration, Instant, SystemTime};

use atoll::Interrupter;
use parking_lot::{Condvar, Mutex};
use sql::{Peers, SessionOwner};

use crate::security::identity::Identity;
use crate::wire::socket;

/// Between two looks at what runs.
const TICK: Duration = Duration::from_millis(50);

/// Why a statement or a session is to end. A later one of these takes the place of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Reason {
    /// The client asked for it.
    Cancelled = 1,
    /// It took too long.
    Timeout,
    /// The transaction waited for its client for too long.
    Idle,
    /// Another session ended this one.
    Terminated,
    /// The server stops.
    Stopping,
    /// The client has gone.
    Vanished,
}

impl Reason {
    fn of(number: u8) -> Option<Reason> {
        Some(match number {
            1 => Reason::Cancelled,
            2 => Reason::Timeout,
            3 => Reason::Idle,
            4 => Reason::Terminated,
            5 => Reason::Stopping,
            6 => Reason::Vanished,
            _ => return None,
        })
    }

    /// Whether only a statement ends, and the session goes on.
    pub(crate) fn spares_the_session(self) -> bool {
        matches!(self, Reason::Cancelled | Reason::Timeout)
    }
}

/// What a session does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    Idle,
    Active,
    IdleInTransaction,
    IdleInFailedTransaction,
}

impl Doing {
    /// What `pg_stat_activity` calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Doing::Idle => "idle",
            Doing::Active => "active",
            Doing::IdleInTransaction => "idle in transaction",
            Doing::IdleInFailedTransaction => "idle in transaction (aborted)",
        }
    }
}

/// What a session does at a moment.
#[derive(Clone, Debug)]
pub(crate) struct Activity {
    pub doing: Doing,
    /// The last statement.
    pub query: String,
    pub query_start: Option<SystemTime>,
    pub changed: SystemTime,
    /// When what it does is to end.
    deadline: Option<Instant>,
    /// What the statement wrote is committed: it is not cancelled any more.
    settled: bool,
}

/// What a session is connected to its client by.
pub(crate) trait Line: std::fmt::Debug + Send + Sync {
    /// Whether the client has gone.
    fn is_gone(&self) -> bool;

    /// Nothing more is taken from the client: a session that waits for it ends.
    fn hang_up(&self);
}

impl Line for TcpStream {
    fn is_gone(&self) -> bool {
        socket::is_gone(self)
    }

    fn hang_up(&self) {
        let _ = self.shutdown(Shutdown::Read);
    }
}

/// A session, as others see it.
#[derive(Debug)]
pub(crate) struct Client {
    pub process: u32,
    secret: [u8; 4],
    pub user: String,
    /// The number of the role that the user was when the session began.
    role: Option<u64>,
    pub address: SocketAddr,
    pub began: SystemTime,
    pub application: Mutex<String>,
    activity: Mutex<Activity>,
    reason: AtomicU8,
    interrupter: Interrupter,
    line: Box<dyn Line>,
}

impl Client {
    pub(crate) fn activity(&self) -> Activity {
        self.activity.lock().clone()
    }

    /// Whether it is of somebody who was let in.
    pub(crate) fn is_of(&self, who: &Identity) -> bool {
        // One that began before there were roles is of whoever has the name.
        self.user == who.user && (self.role.is_none() || self.role == who.role)
    }

    pub(crate) fn secret(&self) -> [u8; 4] {
        self.secret
    }

    /// Why the statement or the session is to end, if it is.
    pub(crate) fn reason(&self) -> Option<Reason> {
        Reason::of(self.reason.load(Ordering::Acquire))
    }

    /// A statement begins, and is to end before `deadline`.
    pub(crate) fn begin(&self, query: &str, deadline: Option<Instant>) {
        let now = SystemTime::now();
        let mut activity = self.activity.lock();
        activity.doing = Doing::Active;
        activity.query = query.chars().take(1024).collect();
        activity.query_start = Some(now);
        activity.changed = now;
        activity.deadline = deadline;
        activity.settled = false;
    }

    /// What the statement wrote is committed, and its client is told so: who wants only the statement to end comes too late.
    pub(crate) fn settle(&self) {
        let mut activity = self.activity.lock();
        activity.settled = true;
        if self.reason().is_some_and(Reason::spares_the_session) {
            self.reason.store(0, Ordering::Release);
        }
    }

    /// The statement has ended, and the session does this until `deadline`. Who wanted the statement to end comes too
    /// late.
    pub(crate) fn rest(&self, doing: Doing, deadline: Option<Instant>) {
        let mut activity = self.activity.lock();
        activity.doing = doing;
        activity.changed = SystemTime::now();
        activity.deadline = deadline;
        if self.reason().is_some_and(Reason::spares_the_session) {
            self.reason.store(0, Ordering::Release);
        }
    }

    /// Asks the session or its statement to end.
    pub(crate) fn ask(&self, reason: Reason) {
        let activity = self.activity.lock();
        let active = activity.doing == Doing::Active;
        if reason.spares_the_session() && (!active || activity.settled) {
            return;
        }
        self.reason.fetch_max(reason as u8, Ordering::AcqRel);
        if active {
            self.interrupter.interrupt();
        } else {
            // It waits for its client, and finds that nothing will come.
            self.line.hang_up();
        }
    }

    /// Looks whether what it does is to end, and asks again if it was asked to.
    fn look(&self, now: Instant) {
        let (doing, deadline) = {
            let activity = self.activity.lock();
            (activity.doing, activity.deadline)
        };
        let late = deadline.is_some_and(|deadline| deadline <= now);
        match (doing, self.reason()) {
            (Doing::Active, Some(reason)) => self.ask(reason),
            (Doing::Active, None) if self.line.is_gone() => self.ask(Reason::Vanished),
            (Doing::Active, None) if late => self.ask(Reason::Timeout),
            (Doing::Active, None) => {}
            (_, Some(reason)) => self.ask(reason),
            (_, None) if late => self.ask(Reason::Idle),
            (_, None) => {}
        }
    }
}

/// All sessions.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Mutex<BTreeMap<u32, Arc<Client>>>,
    /// Told when one comes or goes.
    changed: Condvar,
    next: AtomicU32,
}

/// What a new session is.
pub(crate) struct Newcomer {
    pub user: String,
    /// The number of the role that the user is.
    pub role: Option<u64>,
    pub application: String,
    pub address: SocketAddr,
    pub secret: [u8; 4],
    pub interrupter: Interrupter,
    pub line: Box<dyn Line>,
    /// Most sessions of this user; none for as many as there is room for.
    pub most: Option<usize>,
}

/// Why there is no place for a session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// There are as many as the server may have.
    All,
    /// This user has as many as it may have.
    OfUser(String),
}

impl Full {
    /// What the client is told.
    pub(crate) fn message(&self) -> String {
        match self {
            Full::All => "sorry, too many clients already".into(),
            Full::OfUser(user) => format!("too many connections for role \"{user}\""),
        }
    }
}

/// For the statements of a session that stop others. Whether they may is for the engine to say, which knows their rights.
impl Peers for Sessions {
    fn owner(&self, process: u32) -> Option<SessionOwner> {
        self.get(process).map(|client| SessionOwner {
            user: client.user.clone(),
            role: client.role,
        })
    }

    fn stop(&self, process: u32, ends: bool) -> bool {
        let reason = if ends {
            Reason::Terminated
        } else {
            Reason::Cancelled
        };
        let client = self.get(process);
        client.is_some_and(|client| {
            client.ask(reason);
            true
        })
    }
}

/// A session's place, which is given back when this is dropped.
#[derive(Debug)]
pub(crate) struct Seat {
    pub client: Arc<Client>,
    sessions: Arc<Sessions>,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.sessions.all.lock().remove(&self.client.process);
        self.sessions.changed.notify_all();
    }
}

impl Sessions {
    /// Takes a session in, if there are not `most` already, and its user may have another.
    ///
    /// # Errors
    /// If there are too many.
    pub(crate) fn take_in(
        self: &Arc<Sessions>,
        newcomer: Newcomer,
        most: usize,
    ) -> Result<Seat, Full> {
        let mut all = self.all.lock();
        if all.len() >= most {
            return Err(Full::All);
        }
        if let Some(most) = newcomer.most {
            let own = all.values().filter(|client| client.user == newcomer.user);
            if own.count() >= most {
                return Err(Full::OfUser(newcomer.user));
            }
        }
        let mut process = 0;
        while process == 0 || all.contains_key(&process) {
            process = self.next.fetch_add(1, Ordering::Relaxed) & (u32::MAX >> 1);
        }
        let now = SystemTime::now();
        let client = Arc::new(Client {
            process,
            secret: newcomer.secret,
            user: newcomer.user,
            role: newcomer.role,
            address: newcomer.address,
            began: now,
            application: Mutex::new(newcomer.application),
            activity: Mutex::new(Activity {
                doing: Doing::Idle,
                query: String::new(),
                query_start: None,
                changed: now,
                deadline: None,
                settled: false,
            }),
            reason: AtomicU8::new(0),
            interrupter: newcomer.interrupter,
            line: newcomer.line,
        });
        all.insert(process, Arc::clone(&client));
        self.changed.notify_all();
        Ok(Seat {
            client,
            sessions: Arc::clone(self),
        })
    }

    pub(crate) fn list(&self) -> Vec<Arc<Client>> {
        self.all.lock().values().cloned().collect()
    }

    /// What all do, for `pg_stat_activity`.
    pub(crate) fn activity(&self) -> Vec<atoll::Activity> {
        let micros = |time: SystemTime| {
            let since = time
                .duration_since(SystemTime::UNIX_EPOCH)
                .unwrap_or_default();
            i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
        };
        let all = self.list();
        let told = all.iter().map(|client| {
            let activity = client.activity();
            atoll::Activity {
                process: client.process,
                user: client.user.clone(),
                application: client.application.lock().clone(),
                address: client.address.ip().to_string(),
                port: Some(client.address.port()),
                began: micros(client.began),
                query_began: activity.query_start.map(micros),
                changed: micros(activity.changed),
                state: activity.doing.name(),
                query: activity.query,
            }
        });
        told.collect()
    }

    pub(crate) fn get(&self, process: u32) -> Option<Arc<Client>> {
        self.all.lock().get(&process).cloned()
    }

    /// Stops the statement of a session for who knows its secret.
    pub(crate) fn cancel(&self, process: u32, secret: &[u8]) {
        if let Some(client) = self.get(process)
            && scram::same(&client.secret, secret)
        {
            client.ask(Reason::Cancelled);
        }
    }

    /// Looks at all sessions every now and then until `ended`; while there are none it sleeps.
    pub(crate) fn watch(&self, ended: &dyn Fn() -> bool) {
        loop {
            let all: Vec<Arc<Client>> = {
                let mut all = self.all.lock();
                while all.is_empty() && !ended() {
                    self.changed.wait(&mut all);
                }
                all.values().cloned().collect()
            };
            if ended() && all.is_empty() {
                return;
            }
            let now = Instant::now();
            for client in &all {
                client.look(now);
            }
            std::thread::sleep(TICK);
        }
    }

    /// Wakes whoever watches.
    pub(crate) fn wake(&self) {
        let _all = self.all.lock();
        self.changed.notify_all();
    }

    /// Waits until there are no sessions, or until a moment; false if there are some left.
    pub(crate) fn wait_for_none(&self, until: Instant) -> bool {
        let mut all = self.all.lock();
        while !all.is_empty() {
            if self.changed.wait_until(&mut all, until).timed_out() {
                return all.is_empty();
            }
        }
        true
    }
}
