//! From the first byte of a connection to the first statement: TLS, parameters, the password.

use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::admission::Stranger;
use crate::client::control::PATH;
use crate::client::known::FIRST_PATH;
use crate::client::settings::Settings;
use crate::errors;
use crate::limits::Limits;
use crate::sessions::{Full, Newcomer, Seat};
use crate::shared::Shared;
use crate::wire::backend::{self, Report};
use crate::wire::channel::{Broken, Channel, Received, until_then};
use crate::wire::frontend::{self, Fields, First, Message};
use scram::{Login, MECHANISM, Refused, Verifier};

/// How long a client may take until it is let in.
const PATIENCE: Duration = Duration::from_secs(15);

/// Most bytes of a message of a client that is not let in yet.
const MOST: usize = 10_000;

/// A client that is let in.
pub(crate) struct Opened {
    pub channel: Channel,
    pub seat: Seat,
    pub session: atoll::Session,
    pub settings: Settings,
}

/// Why there is no session.
enum Ended {
    /// The client is told why.
    Told(Report),
    /// There is nobody to tell, or nothing to say.
    Silent,
}

impl From<Broken> for Ended {
    fn from(broken: Broken) -> Ended {
        match broken {
            Broken::Malformed(e) => Ended::Told(Report::fatal(errors::PROTOCOL, e.to_string())),
            Broken::Late => Ended::Told(Report::fatal("08006", "the login took too long")),
            Broken::Full(why) => Ended::Told(Report::fatal(errors::MEMORY, why)),
            Broken::Closed | Broken::Stopped => Ended::Silent,
        }
    }
}

/// Talks to a client until it is let in; none if it is not, or came to stop a statement.
pub(crate) fn open(shared: &Arc<Shared>, socket: TcpStream, address: SocketAddr) -> Option<Opened> {
    let until = Instant::now() + PATIENCE;
    let mut channel = Channel::new(socket.try_clone().ok()?);
    channel.patient(false).ok()?;
    let let_in = begin(shared, &mut channel, address, until).and_then(|(parameters, minor)| {
        let place = (socket, address);
        let entered = enter(shared, &mut channel, &parameters, place, until)?;
        Ok((parameters, minor, entered))
    });
    match let_in {
        Ok((parameters, minor, (seat, session, settings))) => {
            let mut opened = Opened {
                channel,
                seat,
                session,
                settings,
            };
            opened.session.show_settings(opened.settings.all());
            greet(&mut opened, &parameters, minor);
            opened.channel.patient(true).ok()?;
            opened.channel.count(opened.session.account().ok()?);
            Some(opened)
        }
        Err(ended) => {
            end(channel, ended);
            None
        }
    }
}

fn end(mut channel: Channel, ended: Ended) {
    if let Ended::Told(report) = ended {
        report.write(&mut channel.out);
        channel.close();
    }
}

type Parameters = Vec<(String, String)>;

/// The parameters of a client that wants a session, and its minor version.
fn begin(
    shared: &Arc<Shared>,
    channel: &mut Channel,
    address: SocketAddr,
    until: Instant,
) -> Result<(Parameters, u16), Ended> {
    // It may ask for each kind of encryption once.
    for _ in 0..3 {
        match frontend::first(&channel.first(until)?).map_err(Broken::from)? {
            First::Gss => answer(channel, b'N', until)?,
            First::Tls => match &shared.tls {
                Some(config) if !channel.is_tls() => {
                    answer(channel, b'S', until)?;
                    channel.encrypt(config)?;
                }
                _ => answer(channel, b'N', until)?,
            },
            First::Cancel { process, secret } => {
                shared.sessions.cancel(process, &secret);
                return Err(Ended::Silent);
            }
            First::Startup { parameters, minor } => {
                if shared.tls.is_some() && !channel.is_tls() && !address.ip().is_loopback() {
                    let message = "clients on other machines must use TLS: sslmode=require";
                    return Err(Ended::Told(Report::fatal("28000", message)));
                }
                return Ok((parameters, minor));
            }
        }
    }
    Err(Ended::Told(Report::fatal(
        errors::PROTOCOL,
        "no startup packet",
    )))
}

fn answer(channel: &mut Channel, letter: u8, until: Instant) -> Result<(), Broken> {
    channel.out.push(letter);
    channel.flush(&mut |_| until_then(until))
}

/// Lets a client in that may be: it knows the password, and there is room.
fn enter(
    shared: &Arc<Shared>,
    channel: &mut Channel,
    parameters: &Parameters,
    (socket, address): (TcpStream, SocketAddr),
    until: Instant,
) -> Result<(Seat, atoll::Session, Settings), Ended> {
    let of = |name: &str| {
        let mut all = parameters.iter();
        all.find(|(given, _)| given == name)
            .map(|(_, value)| value.clone())
    };
    let told = |code, message: &str| Ended::Told(Report::fatal(code, message));
    let user = of("user").filter(|user| !user.is_empty());
    let user = user.ok_or_else(|| {
        told(
            "28000",
            "no PostgreSQL user name specified in startup packet",
        )
    })?;
    if of("replication").is_some_and(|wanted| !matches!(wanted.as_str(), "false" | "off" | "0")) {
        return Err(told(errors::NOT_SUPPORTED, "there is no replication"));
    }
    let (admission, database) = (&shared.admission, &shared.database);
    let asks = admission.asks(database).map_err(Ended::Told)?;
    let stranger = admission.stranger(database, &user);
    let Stranger { verifier, identity } = stranger.map_err(Ended::Told)?;
    if asks {
        let proved = authenticate(channel, verifier, &user, until);
        proved.inspect_err(|_| shared.counts.failed_logins.add(1))?;
    }
    admission.check(database, &identity).map_err(Ended::Told)?;
    let mut secret = [0; 4];
    scram::fill(&mut secret).map_err(|reason| told(errors::INTERNAL, &reason))?;
    let session = shared.database.session().of_role(&user, identity.role);
    let session = if shared.options.files {
        session
    } else {
        session.without_files()
    };
    let limits = Limits::of(database, &user).map_err(Ended::Told)?;
    let settings = Settings::new(&shared.options, &limits, parameters);
    let session = match settings.get(PATH).filter(|path| *path != FIRST_PATH) {
        Some(path) => session
            .with_search_path(path)
            .map_err(|e| told(errors::BAD_SETTING, &e.to_string()))?,
        None => session,
    };
    let newcomer = Newcomer {
        user,
        role: identity.role,
        application: of("application_name").unwrap_or_default(),
        address,
        secret,
        interrupter: session.interrupter(),
        line: Box::new(socket),
        most: limits.connections,
    };
    let seat = shared
        .sessions
        .take_in(newcomer, shared.options.max_connections);
    let seat = seat.map_err(|full| {
        shared.counts.refused.add(1);
        Ended::Told(Report::fatal(errors::TOO_MANY, full.message()))
    })?;
    Ok((seat, session, settings))
}

/// What a client is told for whom there is no room.
pub(crate) fn too_many() -> Report {
    Report::fatal(errors::TOO_MANY, Full::All.message())
}

/// Has the client prove that it knows its password.
fn authenticate(
    channel: &mut Channel,
    verifier: Verifier,
    user: &str,
    until: Instant,
) -> Result<(), Ended> {
    let refused = |refused: Refused| match refused {
        Refused::Password => {
            let message = format!("password authentication failed for user \"{user}\"");
            Ended::Told(Report::fatal(errors::NOT_LET_IN, message))
        }
        Refused::Protocol(message) => Ended::Told(Report::fatal(errors::PROTOCOL, message)),
    };
    let malformed = || refused(Refused::Protocol("malformed SASL message"));
    backend::authentication(&mut channel.out, 10, format!("{MECHANISM}\0\0").as_bytes());
    channel.flush(&mut |_| until_then(until))?;
    let body = password(channel, until)?;
    let mut fields = Fields(&body);
    let mechanism = fields.text("the mechanism").map_err(|_| malformed())?;
    if mechanism != MECHANISM {
        return Err(refused(Refused::Protocol(
            "the only mechanism is SCRAM-SHA-256",
        )));
    }
    let length = fields.number("the length").map_err(|_| malformed())?;
    let length = u32::from_be_bytes(length) as usize;
    let first = fields
        .bytes(length, "the message")
        .map_err(|_| malformed())?;
    let first = std::str::from_utf8(first).map_err(|_| malformed())?;
    let (login, answer) = Login::begin(verifier, first).map_err(refused)?;
    backend::authentication(&mut channel.out, 11, answer.as_bytes());
    channel.flush(&mut |_| until_then(until))?;
    let last = password(channel, until)?;
    let last = std::str::from_utf8(&last).map_err(|_| malformed())?;
    let answer = login.finish(last).map_err(refused)?;
    backend::authentication(&mut channel.out, 12, answer.as_bytes());
    Ok(())
}

/// The next message of a login.
fn password(channel: &mut Channel, until: Instant) -> Result<Vec<u8>, Ended> {
    let (kind, body) = match channel.message(MOST, &mut |_| until_then(until))? {
        Received::Message(kind, body) => (kind, body),
        Received::Refused(_, why) => {
            return Err(Ended::Told(Report::fatal(errors::MEMORY, why)));
        }
    };
    match frontend::message(kind, body).map_err(Broken::from)? {
        Message::Password(body) => Ok(body),
        Message::Terminate => Err(Ended::Silent),
        _ => {
            let message = format!("expected SASL response, got message type {kind}");
            Err(Ended::Told(Report::fatal(errors::PROTOCOL, message)))
        }
    }
}

/// Tells a client that it is let in, and what it wants to know first.
fn greet(opened: &mut Opened, parameters: &Parameters, minor: u16) {
    let out = &mut opened.channel.out;
    let unknown: Vec<&str> = parameters
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| name.starts_with("_pq_."))
        .collect();
    if minor > 0 || !unknown.is_empty() {
        backend::negotiate(out, &unknown);
    }
    let client = &opened.seat.client;
    backend::authentication(out, 0, &[]);
    for (name, value) in opened.settings.reported(&client.user) {
        backend::parameter(out, name, &value);
    }
    backend::key(out, client.process, &client.secret());
    backend::ready(out, b'I');
}
