//! Connections: taking them, and what is done with the requests that come by them.

use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::accept::accept;
use crate::errors;
use crate::guests::Guest;
use crate::http::answer;
use crate::http::machine::Machine;
use crate::http::page::Page;
use crate::http::refusal::Refusal;
use crate::http::request::{Request, Unread};
use crate::http::{catalog, gate, machine, statements};
use crate::security::identity::Identity;
use crate::shared::Shared;
use crate::wire::channel::{Broken, Channel};
use crate::wire::socket;

/// The first byte of a client that speaks TLS.
const TLS: u8 = 0x16;

/// How long a client may take to say anything at all.
const FIRST: Duration = Duration::from_secs(60);

/// What all connections share.
struct Http {
    shared: Arc<Shared>,
    page: Page,
    machine: Machine,
}

/// Takes connections, each of which gets a thread, until the server stops.
pub(crate) fn serve(listener: &TcpListener, shared: &Arc<Shared>) {
    let http = Http {
        machine: Machine::new(&shared.database),
        shared: Arc::clone(shared),
        page: Page::new(),
    };
    let serve = move |socket: TcpStream, guest: &Guest| {
        // A connection that breaks is over, whatever broke it.
        let _ = connection(&http, &socket, guest);
    };
    accept(listener, shared, "atoll-http", drop, serve);
}

/// Answers the requests of a connection, one after the other.
fn connection(http: &Http, stream: &TcpStream, guest: &Guest) -> Result<(), Broken> {
    let address = stream.peer_addr().map_err(|_| Broken::Closed)?;
    let _ = stream.set_nodelay(true);
    let _ = socket::keep_alive(stream);
    let mut channel = Channel::new(stream.try_clone().map_err(|_| Broken::Closed)?);
    channel.patient(false)?;
    if speaks_tls(http, stream)? {
        match &http.shared.tls {
            Some(config) => channel.encrypt(config)?,
            None => return Err(Broken::Closed),
        }
    } else if http.shared.tls.is_some() && !is_here(address.ip()) {
        let message = "clients on other machines must use TLS: https://";
        let refusal = Refusal::new("403 Forbidden", "28000", message);
        answer::refusal(&mut channel, None, &refusal)?;
        channel.close();
        return Ok(());
    }
    let ended = loop {
        match exchange(http, &mut channel, (stream, address), guest) {
            Ok(true) if !http.shared.is_stopping() => {}
            Ok(_) => break Ok(()),
            Err(Unread::Broken(broken)) => break Err(broken),
            Err(Unread::Refused(refusal)) => break answer::refusal(&mut channel, None, &refusal),
        }
    };
    channel.close();
    ended
}

/// Answers the next request; true if another may follow.
fn exchange(
    http: &Http,
    channel: &mut Channel,
    place: (&TcpStream, SocketAddr),
    guest: &Guest,
) -> Result<bool, Unread> {
    let stopping = || http.shared.is_stopping();
    let mut request = Request::read(channel, &stopping)?;
    let who = match gate::admit(&http.shared, &request) {
        Ok(who) => who,
        // Whoever may not ask gets no memory for a body.
        Err(refusal) if request.is_unread() => return Err(Unread::Refused(refusal)),
        Err(refusal) => {
            answer::refusal(channel, Some(&request), &refusal)?;
            return Ok(request.keeps());
        }
    };
    guest.is_known();
    if request.is_unread() {
        let session = http.shared.database.session();
        let account = session.of_role(&who.user, who.role).account();
        channel.count(account.map_err(|e| Unread::Refused(errors::report(&e, "").into()))?);
    }
    request.take_body(channel, &stopping)?;
    let done = route(http, channel, &request, &who, place);
    channel.count_no_more();
    done?;
    Ok(request.keeps())
}

fn is_here(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// Whether the client begins with TLS; the byte stays to be read.
fn speaks_tls(http: &Http, stream: &TcpStream) -> Result<bool, Broken> {
    let until = Instant::now() + FIRST;
    loop {
        let mut first = [0];
        match stream.peek(&mut first) {
            Ok(0) => return Err(Broken::Closed),
            Ok(_) => return Ok(first[0] == TLS),
            // It is asked again every now and then.
            Err(_) if socket::is_gone(stream) => return Err(Broken::Closed),
            Err(_) if http.shared.is_stopping() => return Err(Broken::Stopped),
            Err(_) if Instant::now() >= until => return Err(Broken::Late),
            Err(_) => {}
        }
    }
}

/// Does what a request asks.
fn route(
    http: &Http,
    channel: &mut Channel,
    request: &Request,
    who: &Identity,
    place: (&TcpStream, SocketAddr),
) -> Result<(), Broken> {
    let shared = &http.shared;
    let found = match (request.method.as_str(), request.path.as_str()) {
        ("GET" | "HEAD", "/") => {
            let Page { headers, text } = &http.page;
            return answer::whole(channel, Some(request), "200 OK", headers, text.as_bytes());
        }
        ("POST", "/query") => return statements::query(shared, channel, request, who, place),
        ("GET" | "HEAD", "/catalog") => catalog::told(shared, who),
        ("GET" | "HEAD", "/machine") => Ok(http.machine.told(shared, who)),
        ("GET" | "HEAD", "/memory") => machine::memory(shared, who),
        ("POST", "/cancel") => machine::cancel(shared, who, &request.body),
        (_, "/" | "/query" | "/catalog" | "/machine" | "/memory" | "/cancel") => {
            let message = format!("{} is not for {}", request.path, request.method);
            Err(Refusal::new(
                "405 Method Not Allowed",
                errors::PROTOCOL,
                message,
            ))
        }
        (_, path) => {
            let message = format!(
                "there is no {path}: there are /, /query, /catalog, /machine, /memory and /cancel"
            );
            Err(Refusal::new("404 Not Found", errors::PROTOCOL, message))
        }
    };
    match found {
        Ok(value) => answer::value(channel, Some(request), "200 OK", "", &value),
        Err(refusal) => answer::refusal(channel, Some(request), &refusal),
    }
}
