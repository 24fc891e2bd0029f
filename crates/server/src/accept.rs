//! Listening, and taking connections: a thread for each, as many as there may be.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use atoll::Database;

use crate::error::{Error, Result};
use crate::guests::{Guest, Guests};
use crate::options::Options;
use crate::shared::Shared;

/// Connections beyond the statements that may run: some cancel others, and browsers keep some that do nothing.
const BESIDE: usize = 64;

/// The stack of a connection's thread. What is deep runs on the workers.
const STACK: usize = 2 << 20;

/// How long to wait where the system has no descriptors left, or the like.
const PAUSE: Duration = Duration::from_millis(10);

/// Whether there are users: in a file that the options name, or as roles of the database.
///
/// # Errors
/// If the catalog cannot be read.
pub(crate) fn knows_users(database: &Database, options: &Options) -> Result<bool> {
    let logins = database.logins();
    let logins = logins.map_err(|e| Error::System(e.to_string()))?;
    Ok(options.users.is_some() || logins.has_roles())
}

/// Listens for connections of clients that send passwords as they are; `known` says whether [there are
/// users](knows_users).
///
/// # Errors
/// [`Error::Listen`] if the address is taken, or is one that others can reach and there are no users, or no TLS, without
/// which their passwords could be read on their way.
pub(crate) fn listen(address: SocketAddr, options: &Options, known: bool) -> Result<TcpListener> {
    let wrong = |reason: String| Error::Listen { address, reason };
    if !address.ip().is_loopback() && !known {
        let reason = "others can reach this address, and would be let in without a password: name a file of users (--users)";
        return Err(wrong(reason.into()));
    }
    if !address.ip().is_loopback() && options.tls.is_none() {
        let reason = "others can reach this address, and their passwords could be read on their way: name a certificate (--tls), or listen on 127.0.0.1 behind a proxy that has one";
        return Err(wrong(reason.into()));
    }
    TcpListener::bind(address).map_err(|e| wrong(e.to_string()))
}

/// Takes connections until the server stops, and has each `serve`d by a thread called `name`; one too many is
/// `refuse`d, in this thread, unless there is one by which nobody was let in yet.
pub(crate) fn accept(
    listener: &TcpListener,
    shared: &Shared,
    name: &str,
    refuse: impl Fn(TcpStream),
    serve: impl Fn(TcpStream, &Guest) + Send + Sync + 'static,
) {
    let serve = Arc::new(serve);
    let guests = Guests::new(Arc::clone(&shared.open));
    let most = shared.options.max_connections.saturating_add(BESIDE);
    for socket in listener.incoming() {
        if shared.is_stopping() {
            return;
        }
        let Ok(socket) = socket else {
            thread::sleep(PAUSE);
            continue;
        };
        shared.counts.connections.add(1);
        let Some(guest) = guests.take_in(&socket, most) else {
            shared.counts.refused.add(1);
            refuse(socket);
            continue;
        };
        let serve = Arc::clone(&serve);
        let thread = thread::Builder::new().name(name.into()).stack_size(STACK);
        let spawned = thread.spawn(move || {
            serve(socket, &guest);
        });
        if spawned.is_err() {
            shared.counts.refused.add(1);
        }
    }
}
