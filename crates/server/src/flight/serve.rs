//! Connections: taking them, and the threads of their calls.

use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustls::ServerConfig;

use crate::accept::accept;
use crate::errors;
use crate::flight::call::Call;
use crate::flight::service;
use crate::flight::shelf::Shelf;
use crate::flight::status::{Ended, Status};
use crate::flight::threads::Threads;
use crate::guests::Guest;
use crate::http2::connection::{Connection, Duplex, Header, Stream};
use crate::shared::Shared;
use crate::wire::backend::Report;
use crate::wire::socket;

/// The first byte of a client that speaks TLS.
const TLS: u8 = 0x16;

/// How long a client may take to say anything, and to agree on TLS.
const FIRST: Duration = Duration::from_secs(15);

/// Calls beyond the sessions that there may be: some ask about the catalog, some cancel others.
const BESIDE: usize = 64;

/// What all connections share.
struct Flight {
    shelf: Shelf,
    tls: Option<Arc<ServerConfig>>,
    /// Calls that run.
    calls: AtomicUsize,
    threads: Arc<Threads>,
}

/// Takes connections, each of which gets a thread, until the server stops.
pub(crate) fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    let tls = shared.tls.as_ref().map(|config| {
        let mut config = ServerConfig::clone(config);
        config.alpn_protocols = vec![b"h2".to_vec()];
        Arc::new(config)
    });
    let threads = Arc::new(Threads::default());
    let flight = Arc::new(Flight {
        shelf: Shelf::new(shared),
        tls,
        calls: AtomicUsize::new(0),
        threads: Arc::clone(&threads),
    });
    let serve = move |socket: TcpStream, guest: &Guest| connection(&flight, socket, guest);
    accept(listener, shared, "atoll-flight", drop, serve);
    threads.close();
}

fn connection(flight: &Arc<Flight>, socket: TcpStream, guest: &Guest) {
    let until = Instant::now() + FIRST;
    let Ok(address) = socket.peer_addr() else {
        return;
    };
    let _ = socket.set_nodelay(true);
    let _ = socket::keep_alive(&socket);
    let shared = &flight.shelf.shared;
    let Some(first) = first_byte(&socket, until, shared) else {
        return;
    };
    let here = address.ip().to_canonical().is_loopback();
    let config = match (&flight.tls, first) {
        (Some(config), TLS) => Some(config),
        // Passwords are not sent in the clear by those who come from elsewhere.
        (None, TLS) => return,
        (Some(_), _) if !here => return,
        _ => None,
    };
    let Ok(line) = Duplex::new(socket, config, until) else {
        return;
    };
    let of = Arc::clone(flight);
    let open = move |headers, stream| {
        // Who it is of is found out by its own thread: whoever calls is no silent connection.
        guest.is_known();
        begin(&of, headers, stream, address);
    };
    Connection::serve(line, &|| shared.is_stopping(), &open);
}

/// The first byte that a client says, which stays to be read.
fn first_byte(socket: &TcpStream, until: Instant, shared: &Shared) -> Option<u8> {
    socket
        .set_read_timeout(Some(Duration::from_millis(100)))
        .ok()?;
    loop {
        let mut first = [0];
        match socket.peek(&mut first) {
            Ok(0) => return None,
            Ok(_) => return Some(first[0]),
            Err(_) if socket::is_gone(socket) || shared.is_stopping() => return None,
            Err(_) if Instant::now() >= until => return None,
            Err(_) => {}
        }
    }
}

/// A call that is counted until it ends.
struct Counted(Arc<Flight>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.calls.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Begins a call, which a thread of its own answers.
fn begin(flight: &Arc<Flight>, headers: Vec<Header>, stream: Stream, address: SocketAddr) {
    let call = Call::new(headers, stream);
    let most = flight.shelf.shared.options.max_connections;
    let running = flight.calls.fetch_add(1, Ordering::AcqRel);
    let counted = Counted(Arc::clone(flight));
    if running >= most.saturating_add(BESIDE) {
        flight.shelf.shared.counts.refused.add(1);
        let report = Report::error(errors::TOO_MANY, "sorry, too many calls already");
        return call.end(Err(Ended::from(Status::from(report))));
    }
    // Where the system gives no thread the stream is dropped, and the client is told that the call failed.
    let _ = flight.threads.run(move || {
        let counted = counted;
        service::answer(&counted.0.shelf, call, address);
    });
}
