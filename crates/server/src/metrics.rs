//! Metrics for Prometheus, on an address of this machine alone.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::sessions::{Client, Doing};
use crate::shared::{Counts, Shared};

/// Timeout of a request.
const PATIENCE: Duration = Duration::from_secs(2);

/// Most bytes of a request that are looked at.
const MOST: usize = 8192;

/// Listens for requests.
///
/// # Errors
/// [`Error::Listen`] if others could reach the address, or it is taken.
pub(crate) fn listen(address: SocketAddr) -> Result<TcpListener> {
    let wrong = |reason: String| Error::Listen { address, reason };
    if !address.ip().is_loopback() {
        let reason = "metrics are for this machine alone: take an address such as 127.0.0.1:9187";
        return Err(wrong(reason.into()));
    }
    TcpListener::bind(address).map_err(|e| wrong(e.to_string()))
}

/// Answers requests until the server stops.
pub(crate) fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    for socket in listener.incoming() {
        if shared.is_stopping() {
            return;
        }
        if let Ok(socket) = socket {
            let _ = answer(socket, shared);
        }
    }
}

fn answer(mut socket: TcpStream, shared: &Shared) -> std::io::Result<()> {
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.set_write_timeout(Some(PATIENCE))?;
    let mut request = Vec::new();
    let mut piece = [0; 1024];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") && request.len() < MOST {
        match socket.read(&mut piece)? {
            0 => break,
            read => request.extend(&piece[..read]),
        }
    }
    let wanted = request.starts_with(b"GET /metrics ") || request.starts_with(b"GET / ");
    let (status, body) = if wanted {
        ("200 OK", text(shared))
    } else {
        ("404 Not Found", "ask for /metrics\n".into())
    };
    write!(
        socket,
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
}

/// A number that only grows: its name, what it counts, and where it is kept.
type Counter = (&'static str, &'static str, fn(&Counts) -> u64);

const COUNTERS: [Counter; 8] = [
    ("connections", "Connections that were accepted.", |of| {
        of.connections.get()
    }),
    ("refused", "Clients for whom there was no room.", |of| {
        of.refused.get()
    }),
    (
        "failed_logins",
        "Clients that did not know their password.",
        |of| of.failed_logins.get(),
    ),
    ("statements", "Statements that were begun.", |of| {
        of.statements.get()
    }),
    ("errors", "Errors that clients were told of.", |of| {
        of.errors.get()
    }),
    (
        "cancelled",
        "Statements that were cancelled or took too long.",
        |of| of.cancelled.get(),
    ),
    ("rows_sent", "Rows that were sent.", |of| of.rows.get()),
    ("bytes_sent", "Bytes of rows that were sent.", |of| {
        of.bytes.get()
    }),
];

/// All metrics.
pub(crate) fn text(shared: &Shared) -> String {
    let mut text = String::new();
    let mut put = |name: &str, kind: &str, help: &str, value: f64| {
        let _ = write!(
            text,
            "# HELP atoll_{name} {help}\n# TYPE atoll_{name} {kind}\natoll_{name} {value}\n"
        );
    };
    for (name, help, count) in COUNTERS {
        put(
            &format!("{name}_total"),
            "counter",
            help,
            count(&shared.counts) as f64,
        );
    }
    let seconds = shared.counts.microseconds.get() as f64 / 1e6;
    let help = "Time until the first rows of statements.";
    put("statement_seconds_total", "counter", help, seconds);
    let again = shared.database.plans_used_again();
    let help = "Statements that ran by the plan that was made when they were prepared.";
    put("plans_used_again_total", "counter", help, again as f64);
    let sessions = shared.sessions.list();
    let active = |client: &&Arc<Client>| client.activity().doing == Doing::Active;
    let active = sessions.iter().filter(active).count();
    let found = shared.database.statistics();
    for (name, help, value) in [
        (
            "sessions_active",
            "Sessions that run a statement.",
            active as u64,
        ),
        ("sessions", "Sessions.", sessions.len() as u64),
        (
            "connections_open",
            "Connections of all listeners that are served.",
            shared.open.load(Ordering::Acquire) as u64,
        ),
        (
            "sessions_max",
            "Most sessions.",
            shared.options.max_connections as u64,
        ),
        (
            "memory_used_bytes",
            "Memory that holds pages, and what statements have reserved.",
            found.memory_in_use(),
        ),
        (
            "memory_reserved_bytes",
            "The same with the frames of the pool that hold no page.",
            found.memory_used,
        ),
        (
            "memory_limit_bytes",
            "The limit of what is reserved.",
            found.memory_limit,
        ),
    ] {
        put(name, "gauge", help, value as f64);
    }
    of_users(&mut text, shared, &sessions);
    text
}

/// A value of a label, between quotes.
fn label(value: &str) -> String {
    let value = value.replace('\\', "\\\\").replace('"', "\\\"");
    value.replace('\n', "\\n")
}

/// What each user has, of those who are there and those whose memory has a limit.
fn of_users(text: &mut String, shared: &Shared, sessions: &[Arc<Client>]) {
    let mut put = |name: &str, help: &str, values: &mut dyn Iterator<Item = (&str, u64)>| {
        let mut values = values.peekable();
        if values.peek().is_none() {
            return;
        }
        let _ = write!(
            text,
            "# HELP atoll_{name} {help}\n# TYPE atoll_{name} gauge\n"
        );
        for (user, value) in values {
            let _ = writeln!(text, "atoll_{name}{{user=\"{}\"}} {value}", label(user));
        }
    };
    let mut counted: BTreeMap<&str, u64> = BTreeMap::new();
    for client in sessions {
        *counted.entry(&client.user).or_default() += 1;
    }
    let mut all = counted.into_iter();
    put("user_sessions", "Sessions of a user.", &mut all);
    let memory = shared.database.users_memory();
    let mut used = memory.iter().map(|own| (own.user.as_str(), own.used));
    let help = "Memory that the statements of a user with a limit have reserved.";
    put("user_memory_used_bytes", help, &mut used);
    let mut limits = memory.iter().map(|own| (own.user.as_str(), own.limit));
    put("user_memory_limit_bytes", "The limit of that.", &mut limits);
}

#[cfg(test)]
mod tests {
    use super::label;

    #[test]
    fn names_of_users_stay_within_their_quotes() {
        assert_eq!(label("ann"), "ann");
        assert_eq!(label("a\"b\\c\nd"), r#"a\"b\\c\nd"#);
    }
}
