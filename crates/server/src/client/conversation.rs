//! The statements of a client, one after the other.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use atoll::TransactionStatus;

use crate::client::cursors::Cursors;
use crate::client::portal::{Portal, Prepared};
use crate::client::settings::Settings;
use crate::client::startup::Opened;
use crate::errors;
use crate::outcome::Outcome;
use crate::sessions::{Client, Doing, Reason, Seat, Sessions};
use crate::shared::{Place, Shared};
use crate::wire::backend::{self, Report};
use crate::wire::channel::{Broken, Channel, Received};
use crate::wire::frontend::{self, Message};

/// Most bytes of a message: a statement with its parameters, or a piece of a copy.
const MOST: usize = 256 << 20;

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The client is told, and the session goes on, unless the report is fatal.
    Told(Box<Report>),
    /// The client cannot be talked to any more, or is not to be.
    Broken(Broken),
}

impl From<Report> for Failed {
    fn from(report: Report) -> Failed {
        Failed::Told(Box::new(report))
    }
}

impl From<Broken> for Failed {
    fn from(broken: Broken) -> Failed {
        Failed::Broken(broken)
    }
}

/// A session and its client.
pub(crate) struct Conversation {
    pub shared: Arc<Shared>,
    pub channel: Channel,
    pub session: atoll::Session,
    pub settings: Settings,
    pub prepared: HashMap<String, Rc<Prepared>>,
    pub portals: HashMap<String, Portal>,
    pub cursors: Cursors,
    /// A transaction that the protocol began, not the client: it ends at the next `Sync`, or with the query.
    pub implicit: bool,
    /// A message has failed: those up to the next `Sync` are not looked at.
    skipping: bool,
    /// The statement is one of a transaction: others that write may wait for it.
    in_transaction: bool,
    /// Answers wait for `Sync` or `Flush`, as PostgreSQL has it: a client that sends many statements is woken once.
    holds_back: bool,
    seat: Seat,
}

/// Whether the conversation goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Goes,
    Ends,
}

impl Conversation {
    pub(crate) fn new(shared: Arc<Shared>, opened: Opened) -> Conversation {
        let process = opened.seat.client.process;
        let sessions: Arc<Sessions> = Arc::clone(&shared.sessions);
        let backend = sql::Backend::new(process, sessions);
        Conversation {
            shared,
            channel: opened.channel,
            session: opened.session.of_backend(backend),
            settings: opened.settings,
            prepared: HashMap::new(),
            portals: HashMap::new(),
            cursors: Cursors::default(),
            implicit: false,
            skipping: false,
            in_transaction: false,
            holds_back: false,
            seat: opened.seat,
        }
    }

    pub(crate) fn client(&self) -> &Arc<Client> {
        &self.seat.client
    }

    /// Talks until the client or the server ends it. A transaction in progress is rolled back then.
    pub(crate) fn hold(mut self) {
        let ended = loop {
            match self.step() {
                Ok(Next::Goes) => {}
                Ok(Next::Ends) => return,
                Err(broken) => break broken,
            }
        };
        self.portals.clear();
        self.cursors.clear();
        let report = match (ended, self.client().reason()) {
            (Broken::Malformed(e), _) => Report::fatal(errors::PROTOCOL, e.to_string()),
            (_, Some(Reason::Vanished) | None) => return,
            (_, Some(reason)) => errors::of_reason(reason),
        };
        let report = Report {
            severity: "FATAL",
            ..report
        };
        report.write(&mut self.channel.out);
        self.channel.close();
    }

    /// Takes the next message and does what it asks.
    fn step(&mut self) -> Result<Next, Broken> {
        let client = Arc::clone(self.client());
        let mut going = |_| match client.reason() {
            None => Ok(()),
            Some(_) => Err(Broken::Stopped),
        };
        let waits = self.holds_back && !self.channel.is_full();
        if self.channel.next_kind().is_none() && !waits {
            self.channel.flush(&mut going)?;
        }
        let received = self.channel.message(MOST, &mut going)?;
        let (kind, message) = match received {
            Received::Message(kind, body) => match frontend::message(kind, body) {
                // The message has its length: what comes behind it is read as ever.
                Err(e) if e.is_of_encoding() => {
                    (kind, Err(Report::error(errors::BAD_TEXT, e.to_string())))
                }
                message => (kind, Ok(message?)),
            },
            Received::Refused(kind, why) => (kind, Err(Report::error(errors::MEMORY, why))),
        };
        if self
            .client()
            .reason()
            .is_some_and(|reason| !reason.spares_the_session())
        {
            return Err(Broken::Stopped);
        }
        let message = match message {
            Ok(message) => message,
            Err(report) => {
                self.refuse(kind, &report);
                return Ok(Next::Goes);
            }
        };
        self.holds_back = message.is_followed();
        let done = match message {
            Message::Terminate => return Ok(Next::Ends),
            Message::Sync => self.sync(),
            Message::Query(text) => {
                self.skipping = false;
                self.query(&text)
            }
            // Of a copy that has ended already.
            Message::CopyData(_) | Message::CopyDone | Message::CopyFail(_) => Ok(()),
            Message::Password(_) => {
                let message = format!("invalid frontend message type {kind}");
                return Err(frontend::Malformed(message).into());
            }
            _ if self.skipping => Ok(()),
            Message::Flush => self.channel.flush(&mut going).map_err(Failed::from),
            Message::Parse { name, text, types } => self.parse(name, text, &types),
            Message::Bind(bind) => self.bind(bind),
            Message::Describe(target, name) => self.describe(target, &name),
            Message::Execute { portal, limit } => self.execute(&portal, limit),
            Message::Close(target, name) => self.close(target, &name),
        };
        match done {
            Ok(()) => Ok(Next::Goes),
            Err(Failed::Broken(broken)) => Err(broken),
            Err(Failed::Told(report)) => {
                self.fail(&report);
                self.skipping = true;
                self.holds_back = false;
                Ok(Next::Goes)
            }
        }
    }

    /// Tells that there was no memory for a message of this kind, which has not been read.
    fn refuse(&mut self, kind: u8, report: &Report) {
        match kind {
            b'Q' => {
                self.skipping = false;
                self.fail(report);
                if let Err(report) = self.end_implicit() {
                    self.fail(&report);
                }
                self.ready();
            }
            // Of a copy that has ended already.
            b'd' => {}
            _ if self.skipping => {}
            _ => {
                self.fail(report);
                self.skipping = true;
            }
        }
        self.holds_back = false;
    }

    /// Tells of an error; the transaction in progress has failed.
    pub(crate) fn fail(&mut self, report: &Report) {
        self.session.fail();
        self.shared.counts.errors.add(1);
        if report.code == errors::CANCELLED {
            self.shared.counts.cancelled.add(1);
        }
        report.write(&mut self.channel.out);
        self.rest();
    }

    /// The end of messages that belong together.
    fn sync(&mut self) -> Result<(), Failed> {
        self.skipping = false;
        // Without a transaction, what was bound ends here.
        if self.implicit || self.session.transaction() == TransactionStatus::Idle {
            self.portals.clear();
        }
        if let Err(report) = self.end_implicit() {
            self.fail(&report);
        }
        self.ready();
        Ok(())
    }

    /// Begins a transaction in the client's place.
    pub(crate) fn begin_implicit(&mut self) -> Result<(), Failed> {
        if !self.implicit && self.session.transaction() == TransactionStatus::Idle {
            self.session
                .sql("begin")
                .map_err(|e| self.reported(&e, "begin"))?;
            self.implicit = true;
        }
        Ok(())
    }

    /// Ends the transaction that was begun in the client's place: keeps what was done, unless something failed.
    pub(crate) fn end_implicit(&mut self) -> Result<(), Report> {
        if !std::mem::take(&mut self.implicit) {
            return Ok(());
        }
        let failed = self.session.transaction() == TransactionStatus::Failed;
        let text = if failed { "rollback" } else { "commit" };
        let ended = self.timed(text, |it| it.session.sql(text).map(drop));
        self.end_settings(!failed && ended.is_ok());
        ended.map_err(|failed| match failed {
            Failed::Told(report) => *report,
            Failed::Broken(_) => errors::of_reason(Reason::Stopping),
        })
    }

    /// Says that the next statement may come.
    pub(crate) fn ready(&mut self) {
        let status = match self.session.transaction() {
            TransactionStatus::Failed => b'E',
            TransactionStatus::Open => b'T',
            _ => {
                self.end_settings(true);
                self.portals.clear();
                b'I'
            }
        };
        self.rest();
        backend::ready(&mut self.channel.out, status);
    }

    /// The transaction has ended, and with it its cursors, and what it has set unless it is kept.
    pub(crate) fn end_settings(&mut self, kept: bool) {
        self.end_cursors(kept);
        if !kept {
            self.settings.roll_back();
        }
        let changed = self.settings.end_transaction();
        if !changed.is_empty() {
            self.tell(changed);
        }
    }

    /// A statement of this text begins. It ends with [`rest`](Conversation::rest).
    pub(crate) fn begin(&mut self, text: &str) {
        self.shared.counts.statements.add(1);
        self.look(text);
    }

    /// A text is looked at, of which statements are to run: it can be stopped from here on.
    pub(crate) fn look(&mut self, text: &str) {
        self.in_transaction = self.session.transaction() != TransactionStatus::Idle;
        let timeout = self.settings.statement_timeout();
        let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
        self.client().begin(text, deadline);
    }

    /// No statement runs.
    pub(crate) fn rest(&mut self) {
        let doing = match self.session.transaction() {
            TransactionStatus::Open => Doing::IdleInTransaction,
            TransactionStatus::Failed => Doing::IdleInFailedTransaction,
            _ => Doing::Idle,
        };
        let timeout = match doing {
            Doing::Idle | Doing::Active => None,
            _ => self.settings.idle_timeout(),
        };
        let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
        self.client().rest(doing, deadline);
    }

    /// Does `work` for the statement `text`, which is to end when it takes too long or is not wanted any more.
    pub(crate) fn timed<T: Outcome>(
        &mut self,
        text: &str,
        work: impl FnOnce(&mut Conversation) -> atoll::Result<T>,
    ) -> Result<T, Failed> {
        let began = Instant::now();
        self.begin(text);
        self.shared.files.check(text)?;
        let done = work(self);
        let took = began.elapsed().as_micros();
        self.shared
            .counts
            .microseconds
            .add(u64::try_from(took).unwrap_or(u64::MAX));
        if let Ok(outcome) = &done {
            self.settle(outcome);
        }
        done.map_err(|e| self.reported(&e, text))
    }

    /// The statement has come so far: if it is over and its transaction with it, nobody cancels it any more.
    pub(crate) fn settle(&self, outcome: &impl Outcome) {
        if outcome.is_over() && self.session.transaction() == TransactionStatus::Idle {
            self.client().settle();
        }
    }

    /// What becomes of an error of the statement `text`.
    pub(crate) fn reported(&self, error: &atoll::Error, text: &str) -> Failed {
        match (error, self.client().reason()) {
            (atoll::Error::Interrupted, Some(reason)) if reason.spares_the_session() => {
                errors::of_reason(reason).into()
            }
            (atoll::Error::Interrupted, Some(_)) => Failed::Broken(Broken::Stopped),
            (error, _) => errors::told(error, text).into(),
        }
    }

    /// A place among the queries that wait in the middle of their rows.
    ///
    /// # Errors
    /// If there are as many as there may be.
    pub(crate) fn waiting(&self) -> Result<Place, Report> {
        self.shared.waiting.take().ok_or_else(|| {
            let message = "too many portals and cursors wait in the middle of their rows, which may keep files open: close some";
            Report::error("53400", message)
        })
    }

    /// Whether the statement that runs goes on; asked while the client takes its rows.
    pub(crate) fn wanted(&self) -> Result<(), Failed> {
        match self.client().reason() {
            None => Ok(()),
            Some(reason) if reason.spares_the_session() => Err(errors::of_reason(reason).into()),
            Some(_) => Err(Failed::Broken(Broken::Stopped)),
        }
    }

    /// Sends what there is to send if it is much, or in any case; ends when the statement is not wanted any more.
    pub(crate) fn send(&mut self, all: bool) -> Result<(), Failed> {
        if !all && !self.channel.is_full() {
            return Ok(());
        }
        let client = Arc::clone(self.client());
        let mut going = |_| match client.reason() {
            None => Ok(()),
            Some(_) => Err(Broken::Stopped),
        };
        let before = self.channel.out.len();
        if self.in_transaction {
            self.channel.patience = self.settings.idle_timeout();
        }
        let sent = self.channel.flush(&mut going);
        self.channel.patience = None;
        let left = self.channel.out.len();
        self.shared
            .counts
            .bytes
            .add(before.saturating_sub(left) as u64);
        match sent {
            Err(Broken::Stopped) => self.wanted(),
            Err(Broken::Late) => Err(self.waited()),
            sent => Ok(sent?),
        }
    }

    /// The client has neither sent nor taken anything for too long, while others wait: the session ends.
    pub(crate) fn waited(&self) -> Failed {
        self.client().ask(Reason::Idle);
        Failed::Broken(Broken::Stopped)
    }
}
