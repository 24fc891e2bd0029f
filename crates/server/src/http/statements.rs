//! `POST /query`: statements, and their rows while they come.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll::{Session, TransactionStatus, script};
use serde_json::{Value, json};

use crate::client::control::{self, Command};
use crate::errors;
use crate::http::answer::{self, Stream};
use crate::http::json::{self, Batch, Prepared};
use crate::http::refusal::Refusal;
use crate::http::request::Request;
use crate::limits::{IDLE, Limits, STATEMENT};
use crate::security::identity::Identity;
use crate::sessions::{Client, Doing, Newcomer, Reason, Seat, Sessions};
use crate::shared::Shared;
use crate::weight;
use crate::wire::backend::Report;
use crate::wire::channel::{Broken, Channel};

/// Most values of a request: a statement has no more parameters.
const MOST: usize = 1 << 16;

/// What a client asks.
#[derive(Debug, Default)]
struct Asked {
    sql: String,
    /// Values of `$1`, `$2`, ...
    parameters: Option<Vec<Option<String>>>,
    /// Most rows of each statement.
    limit: Option<u64>,
    timeout: Option<Duration>,
}

fn wrong(message: impl Into<String>) -> Refusal {
    Refusal::new("400 Bad Request", errors::BAD_VALUE, message)
}

impl Asked {
    fn read(body: &[u8]) -> Result<Asked, Refusal> {
        if parts(body) > MOST {
            let message = format!("the body has more than {MOST} values; bind fewer parameters");
            return Err(wrong(message));
        }
        let value: Value =
            serde_json::from_slice(body).map_err(|e| wrong(format!("the body is no JSON: {e}")))?;
        let Value::Object(fields) = value else {
            return Err(wrong(
                "the body is an object such as {\"sql\": \"select 1\"}",
            ));
        };
        let mut asked = Asked::default();
        for (name, value) in fields {
            match (name.as_str(), value) {
                ("sql", Value::String(text)) => asked.sql = text,
                ("parameters", Value::Array(values)) => {
                    let values = values.iter().map(parameter).collect::<Result<_, _>>()?;
                    asked.parameters = Some(values);
                }
                ("limit", value) if value.as_u64().is_some() => asked.limit = value.as_u64(),
                ("timeout", value) => {
                    let seconds = value.as_f64().unwrap_or(-1.0);
                    let time = Duration::try_from_secs_f64(seconds);
                    asked.timeout = Some(time.map_err(|_| wrong("\"timeout\" is seconds"))?);
                }
                (name @ ("sql" | "parameters" | "limit"), value) => {
                    return Err(wrong(format!("{name:?} cannot be {value}")));
                }
                (name, _) => {
                    let known = "sql, parameters, limit and timeout";
                    return Err(wrong(format!("there is no {name:?}: there are {known}")));
                }
            }
        }
        Ok(asked)
    }
}

/// How many values JSON has, about: each takes many times the memory of its text.
fn parts(body: &[u8]) -> usize {
    let (mut count, mut quoted, mut escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b',' | b'[' | b'{' if !quoted => count += 1,
            _ => {}
        }
    }
    count
}

/// A parameter as a text.
fn parameter(value: &Value) -> Result<Option<String>, Refusal> {
    match value {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        Value::Number(_) | Value::Bool(_) => Ok(Some(value.to_string())),
        _ => Err(wrong("parameters are texts, numbers, true, false or null")),
    }
}

/// A request whose statements run.
struct Running<'c> {
    shared: &'c Shared,
    channel: &'c mut Channel,
    request: &'c Request,
    seat: Seat,
    session: Session,
    limits: Limits,
    asked: Asked,
    several: bool,
    /// None until the first statement has columns, or has failed.
    stream: Option<Stream>,
    /// An error was told at the end of the rows that it ended.
    told: bool,
}

/// Why statements end.
enum Ended {
    /// The client is told.
    Told(Refusal),
    /// It cannot be told anything any more.
    Broken(Broken),
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Ended {
        Ended::Broken(broken)
    }
}

impl From<Report> for Ended {
    fn from(report: Report) -> Ended {
        Ended::Told(report.into())
    }
}

/// Runs the statements that `request` asks for.
///
/// # Errors
/// If the connection is of no use any more.
pub(crate) fn query(
    shared: &Arc<Shared>,
    channel: &mut Channel,
    request: &Request,
    who: &Identity,
    (socket, address): (&TcpStream, SocketAddr),
) -> Result<(), Broken> {
    let mut asked = match Asked::read(&request.body) {
        Ok(asked) => asked,
        Err(refusal) => return answer::refusal(channel, Some(request), &refusal),
    };
    // They are found one by one, when each is to run: a text has no copy beside it, however many there are.
    let text = std::mem::take(&mut asked.sql);
    let count = script::statements(&text).take(2).count();
    let several = count > 1;
    if count == 0 || several && asked.parameters.is_some() {
        let message = "\"sql\" is one statement, or several without parameters";
        return answer::refusal(channel, Some(request), &wrong(message));
    }
    let limits = Limits::of(&shared.database, &who.user);
    let limits = match limits {
        Ok(limits) => limits,
        Err(report) => return answer::refusal(channel, Some(request), &report.into()),
    };
    let session = limits.session(shared.database.session().of_role(&who.user, who.role));
    let session = match session {
        Ok(session) => session,
        Err(report) => return answer::refusal(channel, Some(request), &report.into()),
    };
    let session = if shared.options.files {
        session
    } else {
        session.without_files()
    };
    let of_user = (who, &session, limits.connections);
    let seat = match take_seat(shared, request, of_user, (socket, address)) {
        Ok(seat) => seat,
        Err(refusal) => return answer::refusal(channel, Some(request), &refusal),
    };
    let sessions: Arc<Sessions> = Arc::clone(&shared.sessions);
    let session = session.of_backend(sql::Backend::new(seat.client.process, sessions));
    let mut running = Running {
        shared,
        channel,
        request,
        seat,
        session,
        limits,
        asked,
        several,
        stream: None,
        told: false,
    };
    let done = running.all(&text);
    running.end(done)
}

fn take_seat(
    shared: &Arc<Shared>,
    request: &Request,
    (who, session, most): (&Identity, &Session, Option<usize>),
    (socket, address): (&TcpStream, SocketAddr),
) -> Result<Seat, Refusal> {
    let failed = |reason: String| Refusal::from(Report::error(errors::INTERNAL, reason));
    let mut secret = [0; 4];
    scram::fill(&mut secret).map_err(failed)?;
    let application = request.header("user-agent").unwrap_or("http");
    let newcomer = Newcomer {
        user: who.user.clone(),
        role: who.role,
        application: application.chars().take(64).collect(),
        address,
        secret,
        interrupter: session.interrupter(),
        line: Box::new(socket.try_clone().map_err(|e| failed(e.to_string()))?),
        most,
    };
    let most = shared.options.max_connections;
    shared.sessions.take_in(newcomer, most).map_err(|full| {
        shared.counts.refused.add(1);
        Report::error(errors::TOO_MANY, full.message()).into()
    })
}

impl Running<'_> {
    fn client(&self) -> &Arc<Client> {
        &self.seat.client
    }

    /// Runs all statements of `text`. Several are one transaction, unless one of them begins or ends one.
    fn all(&mut self, text: &str) -> Result<(), Ended> {
        let mut implicit = self.several;
        if self.several {
            self.look(text);
            for one in script::statements(text) {
                implicit = !matches!(control::read(one.text), Some(Command::Transaction(_)));
                if !implicit {
                    break;
                }
                if let Some(reason) = self.client().reason() {
                    return Err(of_reason(reason));
                }
            }
        }
        if implicit {
            self.run_quietly("begin")?;
        }
        for one in script::statements(text) {
            self.statement(one.text).map_err(|ended| match ended {
                // The place is one in the whole text.
                Ended::Told(mut refusal) if self.several => {
                    let before = text[..one.offset].chars().count();
                    let position = &mut refusal.report.position;
                    *position = position.map(|at| at + before);
                    Ended::Told(refusal)
                }
                ended => ended,
            })?;
        }
        if implicit {
            return self.run_quietly("commit");
        }
        if self.session.transaction() != TransactionStatus::Idle {
            let message = "the transaction is rolled back: one ends with its request, so send `begin`, its statements and `commit` in one";
            return Err(Report::error("25000", message).into());
        }
        Ok(())
    }

    /// Runs a statement that has no rows.
    fn run_quietly(&mut self, text: &str) -> Result<(), Ended> {
        self.begin(text);
        self.shared.files.check(text)?;
        let done = self.session.sql(text);
        done.map(drop).map_err(|e| self.failed(&e, text))
    }

    fn begin(&self, text: &str) {
        self.shared.counts.statements.add(1);
        self.look(text);
    }

    /// A text is looked at, of which statements are to run: it can be stopped from here on.
    fn look(&self, text: &str) {
        let otherwise = self.shared.options.statement_timeout;
        let timeout = self.limits.time(STATEMENT, self.asked.timeout, otherwise);
        let deadline = timeout.and_then(|time| Instant::now().checked_add(time));
        self.client().begin(text, deadline);
    }

    /// What becomes of an error of the statement `text`.
    fn failed(&self, error: &atoll::Error, text: &str) -> Ended {
        match (error, self.client().reason()) {
            (atoll::Error::Interrupted, Some(reason)) => of_reason(reason),
            (error, _) => errors::report(error, text).into(),
        }
    }

    /// Runs one statement and sends what it returns.
    fn statement(&mut self, text: &str) -> Result<(), Ended> {
        self.begin(text);
        self.shared.files.check(text)?;
        let memory = self.channel.keep(weight::of(text));
        let _memory = memory.map_err(|why| Report::error(errors::MEMORY, why))?;
        let began = Instant::now();
        let rows = match &self.asked.parameters {
            None => self.session.query(text),
            Some(values) => self.session.prepare(text, &[]).and_then(|prepared| {
                let values: Vec<Option<&str>> = values.iter().map(Option::as_deref).collect();
                match prepared {
                    Some(prepared) => self.session.run(&prepared, &values),
                    None => self.session.query(text),
                }
            }),
        };
        // What is committed nobody cancels any more.
        if rows.as_ref().is_ok_and(atoll::Rows::is_over) {
            self.client().settle();
        }
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.shared.counts.microseconds.add(took);
        let rows = rows.map_err(|e| self.failed(&e, text))?;
        self.rows(rows, text)
    }

    /// Sends the rows of a statement, and what it did.
    fn rows(&mut self, mut rows: atoll::Rows, text: &str) -> Result<(), Ended> {
        let columns = json::columns(rows.schema());
        let head = format!(
            "{{\"statement\":{},\"columns\":{columns},\"rows\":[",
            json!(rows.verb())
        );
        self.say(head.as_bytes());
        let most = self.asked.limit.unwrap_or(u64::MAX);
        let (mut sent, mut more) = (0, false);
        let reads = matches!(rows.verb(), "SELECT" | "EXPLAIN" | "SHOW");
        let has_columns = !rows.schema().fields().is_empty();
        // A statement without columns may have no rows to take, and must be followed to its end all the same.
        for batch in rows.by_ref() {
            let batch = batch.map_err(|e| self.cut(self.failed(&e, text)))?;
            if !has_columns {
                continue;
            }
            let left = usize::try_from(most - sent).unwrap_or(usize::MAX);
            more = more || batch.num_rows() > left;
            let count = batch.num_rows().min(left);
            let batch = batch.slice(0, count);
            self.batch(&batch, sent == 0)
                .map_err(|ended| self.cut(ended))?;
            sent += count as u64;
            self.shared.counts.rows.add(count as u64);
            // One that changes something is not cut short: its rows are its own affair, what it does is not.
            if more && reads {
                break;
            }
        }
        let statistics = rows.statistics();
        let mut told = json!({
            "seconds": statistics.seconds,
            "planning_seconds": statistics.planning_seconds,
            "bytes": statistics.bytes,
            "ran_on": statistics.ran_on,
        });
        if let Some(changed) = rows.changed() {
            told["changed"] = changed.into();
        }
        if more {
            told["more"] = true.into();
        }
        drop(rows);
        let told = told.to_string();
        self.say(b"],");
        self.say(&told.as_bytes()[1..]);
        self.say(b"\n");
        self.client().rest(Doing::Idle, None);
        Ok(())
    }

    fn batch(&mut self, batch: &arrow::array::RecordBatch, first: bool) -> Result<(), Ended> {
        let unwritten =
            |e: arrow::error::ArrowError| Report::error(errors::INTERNAL, e.to_string());
        let prepared = Prepared::new(batch.columns()).map_err(unwritten)?;
        let writers = Batch::new(&prepared).map_err(unwritten)?;
        for at in 0..batch.num_rows() {
            if at > 0 || !first {
                self.say(b",");
            }
            if let Some(stream) = &mut self.stream {
                writers.row(at, &mut stream.text);
            }
            self.send()?;
        }
        Ok(())
    }

    /// An error in the middle of rows, whose array it ends.
    fn cut(&mut self, ended: Ended) -> Ended {
        if let (Ended::Told(refusal), Some(stream)) = (&ended, &mut self.stream) {
            let error = answer::error(&refusal.report);
            let rest = format!("],\"error\":{error}}}\n");
            stream.text.extend(rest.bytes());
            self.told = true;
        }
        ended
    }

    /// Appends to the answer, which begins with this if it has not.
    fn say(&mut self, bytes: &[u8]) {
        let kind = if self.several {
            "application/x-ndjson"
        } else {
            "application/json"
        };
        let (channel, request) = (&mut *self.channel, self.request);
        let stream = self
            .stream
            .get_or_insert_with(|| Stream::begin(channel, request, kind));
        stream.text.extend(bytes);
    }

    /// Sends what there is to send if it is much. The statement waits for a client that reads slowly.
    fn send(&mut self) -> Result<(), Ended> {
        if let Some(stream) = &mut self.stream {
            stream.frame(self.channel, false);
        }
        if !self.channel.is_full() {
            return Ok(());
        }
        let client = Arc::clone(&self.seat.client);
        let before = self.channel.out.len();
        let otherwise = self.shared.options.idle_in_transaction_timeout;
        self.channel.patience = self.limits.time(IDLE, None, otherwise);
        let sent = self.channel.flush(&mut |_| match client.reason() {
            None => Ok(()),
            Some(_) => Err(Broken::Stopped),
        });
        self.channel.patience = None;
        if let Err(Broken::Late) = sent {
            client.ask(Reason::Idle);
            return Err(Ended::Broken(Broken::Late));
        }
        let left = self.channel.out.len();
        self.shared
            .counts
            .bytes
            .add(before.saturating_sub(left) as u64);
        match (sent, client.reason()) {
            (Err(Broken::Stopped), Some(reason)) => Err(of_reason(reason)),
            (sent, _) => Ok(sent?),
        }
    }

    /// Ends the answer.
    fn end(self, done: Result<(), Ended>) -> Result<(), Broken> {
        // It is told how it ended whatever is asked of it now.
        self.client().rest(Doing::Idle, None);
        let refusal = match done {
            Ok(()) => None,
            Err(Ended::Told(refusal)) => Some(refusal),
            Err(Ended::Broken(broken)) => return Err(broken),
        };
        if let Some(refusal) = &refusal {
            self.shared.counts.errors.add(1);
            if refusal.report.code == errors::CANCELLED {
                self.shared.counts.cancelled.add(1);
            }
        }
        match (self.stream, refusal) {
            (None, None) => Ok(()),
            (None, Some(refusal)) => answer::refusal(self.channel, Some(self.request), &refusal),
            (Some(stream), None) => stream.end(self.channel),
            (Some(mut stream), Some(refusal)) => {
                if !self.told {
                    let error = json!({ "error": answer::error(&refusal.report) });
                    stream.text.extend(format!("{error}\n").bytes());
                }
                stream.end(self.channel)
            }
        }
    }
}

/// What a statement ends with that is asked to end.
fn of_reason(reason: Reason) -> Ended {
    match reason {
        Reason::Vanished => Ended::Broken(Broken::Closed),
        reason => errors::of_reason(reason).into(),
    }
}
