//! Requests, as they come from a connection.

use std::time::{Duration, Instant};

use crate::errors;
use crate::http::refusal::Refusal;
use crate::wire::channel::{Broken, Channel};

/// How long a connection may wait for its next request.
const IDLE: Duration = Duration::from_secs(60);

/// How long the head of a request may take from its first byte.
const HEAD: Duration = Duration::from_secs(15);

/// How long its body may take.
const BODY: Duration = Duration::from_secs(60);

/// Most bytes of a head.
const MOST_HEAD: usize = 16 << 10;

/// Most lines of a head.
const MOST_HEADERS: usize = 64;

/// Most bytes of a body: a text of statements with its parameters.
const MOST_BODY: usize = 16 << 20;

/// A request.
#[derive(Debug)]
pub(crate) struct Request {
    pub method: String,
    /// Without what follows a question mark.
    pub path: String,
    /// Names in lower case.
    headers: Vec<(String, String)>,
    /// Empty until it is [taken](Request::take_body).
    pub body: Vec<u8>,
    /// Bytes of the body.
    length: usize,
    /// Whether it is of version 1.1, whose answers may come in chunks.
    pub chunks: bool,
}

/// Why there is no request.
#[derive(Debug)]
pub(crate) enum Unread {
    /// The connection has ended, or is not wanted any more.
    Broken(Broken),
    /// The client is told, and the connection ends.
    Refused(Refusal),
}

impl From<Broken> for Unread {
    fn from(broken: Broken) -> Unread {
        Unread::Broken(broken)
    }
}

fn refused(status: &'static str, message: impl Into<String>) -> Unread {
    Unread::Refused(Refusal::new(status, "08P01", message))
}

impl Request {
    /// The value of a header; the first one if there are several.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| value.as_str())
    }

    /// How many headers have this name.
    pub(crate) fn count(&self, name: &str) -> usize {
        self.headers
            .iter()
            .filter(|(known, _)| known == name)
            .count()
    }

    /// Whether the connection may serve another request.
    pub(crate) fn keeps(&self) -> bool {
        let asked = |word: &str| {
            self.header("connection")
                .is_some_and(|value| value.to_ascii_lowercase().contains(word))
        };
        self.chunks && !asked("close")
    }

    /// Whether a body follows that is not taken yet.
    pub(crate) fn is_unread(&self) -> bool {
        self.body.len() < self.length
    }

    /// Reads the next request, without its body. `stopping` says whether nobody waits for one any more.
    pub(crate) fn read(
        channel: &mut Channel,
        stopping: &dyn Fn() -> bool,
    ) -> Result<Request, Unread> {
        let until = Instant::now() + IDLE;
        channel.peek(1, &mut |_| until_or(until, stopping))?;
        head(channel, stopping)
    }

    /// Reads the body, for which memory is taken as it comes: who may not ask is refused before that.
    pub(crate) fn take_body(
        &mut self,
        channel: &mut Channel,
        stopping: &dyn Fn() -> bool,
    ) -> Result<(), Unread> {
        if self.length == 0 {
            return Ok(());
        }
        let until = Instant::now() + BODY;
        let waits = self
            .header("expect")
            .is_some_and(|value| value.eq_ignore_ascii_case("100-continue"));
        if waits {
            channel.out.extend(b"HTTP/1.1 100 Continue\r\n\r\n");
            channel.flush(&mut |_| until_or(until, stopping))?;
        }
        let come = channel.peek(self.length, &mut |_| until_or(until, stopping));
        late(come.map(drop), "the body")?;
        self.body = channel.consume(self.length);
        Ok(())
    }
}

/// Waits until a moment, or until nobody does.
fn until_or(until: Instant, stopping: &dyn Fn() -> bool) -> Result<(), Broken> {
    if stopping() {
        Err(Broken::Stopped)
    } else if Instant::now() >= until {
        Err(Broken::Late)
    } else {
        Ok(())
    }
}

/// What did not come in time is refused.
fn late<T>(read: Result<T, Broken>, what: &str) -> Result<T, Unread> {
    read.map_err(|broken| match broken {
        Broken::Late => refused(
            "408 Request Timeout",
            format!("{what} of the request did not come in time"),
        ),
        Broken::Full(why) => {
            Unread::Refused(Refusal::new("503 Service Unavailable", errors::MEMORY, why))
        }
        broken => broken.into(),
    })
}

/// The head of a request.
fn head(channel: &mut Channel, stopping: &dyn Fn() -> bool) -> Result<Request, Unread> {
    let until = Instant::now() + HEAD;
    let mut wanted = 1;
    loop {
        let come = channel.peek(wanted, &mut |_| until_or(until, stopping));
        let come = late(come, "the head")?;
        let mut lines = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Request::new(&mut lines);
        match parsed.parse(&come[..come.len().min(MOST_HEAD)]) {
            Ok(httparse::Status::Complete(length)) => {
                let read = understood(&parsed)?;
                channel.consume(length);
                return Ok(read);
            }
            Ok(httparse::Status::Partial) if come.len() < MOST_HEAD => wanted = come.len() + 1,
            Ok(httparse::Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
                let message = format!(
                    "the head of the request has more than {MOST_HEAD} bytes or {MOST_HEADERS} lines"
                );
                return Err(refused("431 Request Header Fields Too Large", message));
            }
            Err(e) => {
                let message = format!("this is no request of HTTP/1.1: {e}");
                return Err(refused("400 Bad Request", message));
            }
        }
    }
}

fn understood(parsed: &httparse::Request<'_, '_>) -> Result<Request, Unread> {
    let mut headers = Vec::new();
    for line in parsed.headers.iter() {
        let value = std::str::from_utf8(line.value).map_err(|_| {
            let message = format!("the header {} is no text", line.name);
            refused("400 Bad Request", message)
        })?;
        headers.push((line.name.to_ascii_lowercase(), value.trim().to_string()));
    }
    let target = parsed.path.unwrap_or("/");
    let mut request = Request {
        method: parsed.method.unwrap_or_default().to_string(),
        path: target.split('?').next().unwrap_or(target).to_string(),
        headers,
        body: Vec::new(),
        length: 0,
        chunks: parsed.version == Some(1),
    };
    if request.header("transfer-encoding").is_some() {
        let message = "send the body at once, with its Content-Length: chunks are not taken";
        return Err(refused("501 Not Implemented", message));
    }
    if request.count("content-length") > 1 {
        return Err(refused("400 Bad Request", "there are two Content-Lengths"));
    }
    let Some(length) = request.header("content-length") else {
        return Ok(request);
    };
    let digits = !length.is_empty() && length.bytes().all(|byte| byte.is_ascii_digit());
    if !digits {
        let message = format!("{length:?} is no Content-Length");
        return Err(refused("400 Bad Request", message));
    }
    match length.parse() {
        Ok(length) if length <= MOST_BODY => {
            request.length = length;
            Ok(request)
        }
        _ => {
            let message = format!("a body of {length} bytes; {MOST_BODY} are the most");
            Err(refused("413 Content Too Large", message))
        }
    }
}
