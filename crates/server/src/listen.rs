//! The server: who listens, and how it stops.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use atoll::Database;
use rustls::ServerConfig;

use crate::accept;
use crate::admission::Admission;
use crate::client::conversation::Conversation;
use crate::client::startup;
use crate::error::{Error, Result};
use crate::files::Files;
use crate::flight::serve as flight;
use crate::guests::Guest;
use crate::http::serve as http;
use crate::metrics;
use crate::options::Options;
use crate::security::tls;
use crate::security::users::Users;
use crate::sessions::{Doing, Reason, Sessions};
use crate::shared::{Counts, Places, Shared, most_waiting};
use crate::wire::socket;

/// How long those that were asked to end have for it, once the time for statements is over.
const LAST: Duration = Duration::from_secs(5);

/// A server that runs. Dropping it leaves it running until the process ends; [`stop`](Server::stop) ends it.
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("reef.atoll");
/// let database = atoll::Database::create(&path, &atoll::Options::default())?;
/// let mut options = server::Options::default();
/// options.listen.set_port(0);
/// let server = server::Server::start(database.clone(), options)?;
/// assert_ne!(server.address().port(), 0);
/// server.stop();
/// database.close()?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    http: Option<SocketAddr>,
    flight: Option<SocketAddr>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Serves `database` to clients.
    ///
    /// # Errors
    ///
    /// If the address is taken, or is one that others can reach and there are no users; if a file that the options name
    /// cannot be used.
    pub fn start(database: Database, options: Options) -> Result<Server> {
        let wrong = |reason: String| Error::Listen {
            address: options.listen,
            reason,
        };
        let known = accept::knows_users(&database, &options)?;
        if !options.listen.ip().is_loopback() && !known {
            let reason = "others can reach this address, and would be let in without a password: name a file of users (--users)";
            return Err(wrong(reason.into()));
        }
        if options.max_connections == 0 {
            return Err(Error::Options(
                "no client may connect: raise --max-connections".into(),
            ));
        }
        let users = users(&options)?;
        let tls = options
            .tls
            .as_ref()
            .map(|(certificate, key)| tls::configuration(certificate, key))
            .transpose()?;
        let admission = Admission::new(&database, users).map_err(Error::System)?;
        let listener = TcpListener::bind(options.listen).map_err(|e| wrong(e.to_string()))?;
        let address = listener.local_addr().map_err(|e| wrong(e.to_string()))?;
        let metrics = options.metrics.map(metrics::listen).transpose()?;
        let http = options.http.map(|at| accept::listen(at, &options, known));
        let http = http.transpose()?;
        let flight = options.flight.map(|at| accept::listen(at, &options, known));
        let flight = flight.transpose()?;
        let shared = shared_by_all(database, options, (admission, tls));
        let of = Arc::downgrade(&shared.sessions);
        shared.database.observe_with(move || {
            of.upgrade()
                .map(|sessions| sessions.activity())
                .unwrap_or_default()
        });
        let mut server = Server {
            shared: Arc::clone(&shared),
            address,
            metrics: bound(metrics.as_ref()),
            http: bound(http.as_ref()),
            flight: bound(flight.as_ref()),
            threads: Vec::new(),
        };
        let of = Arc::clone(&shared);
        server.spawn("atoll-watch", move || {
            of.sessions.watch(&|| of.is_stopping())
        })?;
        if let Some(listener) = metrics {
            let of = Arc::clone(&shared);
            server.spawn("atoll-metrics", move || metrics::serve(&listener, &of))?;
        }
        if let Some(listener) = http {
            let of = Arc::clone(&shared);
            server.spawn("atoll-http", move || http::serve(&listener, &of))?;
        }
        if let Some(listener) = flight {
            let of = Arc::clone(&shared);
            server.spawn("atoll-flight", move || flight::serve(&listener, &of))?;
        }
        server.spawn("atoll-listen", move || accept(&listener, &shared))?;
        Ok(server)
    }

    fn spawn(&mut self, name: &str, work: impl FnOnce() + Send + 'static) -> Result<()> {
        let thread = thread::Builder::new().name(name.into()).spawn(work);
        self.threads
            .push(thread.map_err(|e| Error::System(format!("{name}: {e}")))?);
        Ok(())
    }

    /// Where clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where metrics are, if they are anywhere.
    pub fn metrics(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// Where HTTP is spoken, if it is anywhere.
    pub fn http(&self) -> Option<SocketAddr> {
        self.http
    }

    /// Where Arrow Flight SQL is spoken, if it is anywhere.
    pub fn flight(&self) -> Option<SocketAddr> {
        self.flight
    }

    /// Stops the server: nobody is let in any more, sessions that do nothing end at once, statements have as long as the
    /// options say, and are cancelled then. Transactions that are not committed are rolled back.
    pub fn stop(self) {
        let until = Instant::now() + self.shared.options.grace;
        self.shared.stopping.store(true, Ordering::Release);
        // Those who accept wait for a connection.
        let listening = [Some(self.address), self.metrics, self.http, self.flight];
        for address in listening.into_iter().flatten() {
            let _ = TcpStream::connect(reached(address));
        }
        loop {
            let sessions = self.shared.sessions.list();
            for client in &sessions {
                if client.activity().doing != Doing::Active {
                    client.ask(Reason::Stopping);
                }
            }
            let pause = Instant::now() + Duration::from_millis(20);
            if self.shared.sessions.wait_for_none(pause.min(until)) {
                break;
            }
            if Instant::now() >= until {
                break;
            }
        }
        for client in self.shared.sessions.list() {
            client.ask(Reason::Stopping);
        }
        let none = self.shared.sessions.wait_for_none(Instant::now() + LAST);
        self.shared.sessions.wake();
        // Who watches goes on as long as there is one left.
        for thread in self.threads.into_iter().skip(usize::from(!none)) {
            let _ = thread.join();
        }
    }
}

/// What the clients of a server share that begins to serve `database`.
fn shared_by_all(
    database: Database,
    options: Options,
    (admission, tls): (Admission, Option<Arc<ServerConfig>>),
) -> Arc<Shared> {
    Arc::new(Shared {
        files: Files::of(database.path()),
        database,
        options,
        admission,
        tls,
        sessions: Arc::new(Sessions::default()),
        counts: Counts::default(),
        stopping: AtomicBool::new(false),
        open: Arc::default(),
        waiting: Places::new(most_waiting()),
    })
}

/// The users whom the options name; none if everybody is let in.
fn users(options: &Options) -> Result<Option<Users>> {
    let users = options.users.as_deref().map(Users::read).transpose()?;
    if let Some(users) = &users
        && users.names().next().is_none()
    {
        let message = "the file of users has none: --add-user adds one";
        return Err(Error::Options(message.into()));
    }
    Ok(users)
}

/// Where a listener listens.
fn bound(listener: Option<&TcpListener>) -> Option<SocketAddr> {
    listener.and_then(|listener| listener.local_addr().ok())
}

/// An address by which this machine reaches itself.
fn reached(mut address: SocketAddr) -> SocketAddr {
    if address.ip().is_unspecified() {
        let home = match address {
            SocketAddr::V4(_) => std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST),
            SocketAddr::V6(_) => std::net::IpAddr::V6(std::net::Ipv6Addr::LOCALHOST),
        };
        address.set_ip(home);
    }
    address
}

/// Takes connections, each of which gets a thread, until the server stops.
fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    let of = Arc::clone(shared);
    let serve = move |socket, guest: &Guest| serve(&of, socket, guest);
    accept::accept(listener, shared, "atoll-client", refuse, serve);
}

/// Tells a client that there is no room, without waiting for it.
fn refuse(mut socket: TcpStream) {
    use std::io::Write;
    let mut out = Vec::new();
    startup::too_many().write(&mut out);
    let _ = socket.set_nonblocking(true);
    let _ = socket.write(&out);
    let _ = socket.shutdown(std::net::Shutdown::Write);
}

fn serve(shared: &Arc<Shared>, stream: TcpStream, guest: &Guest) {
    let Ok(address) = stream.peer_addr() else {
        return;
    };
    let _ = stream.set_nodelay(true);
    let _ = socket::keep_alive(&stream);
    if let Some(opened) = startup::open(shared, stream, address) {
        guest.is_known();
        Conversation::new(Arc::clone(shared), opened).hold();
    }
}
