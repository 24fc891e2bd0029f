//! A call of gRPC: its headers, messages in both directions, and how it ends.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll::Account;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use prost::Message;

use crate::errors;
use crate::flight::status::{Ended, Status};
use crate::http2::connection::{Gone, Header, Stream, Watch};
use crate::sessions::{Client, Reason};
use crate::wire::backend::Report;

/// What stands before a message: whether it is compressed, and its length.
const PREFIX: usize = 5;

/// Most bytes of a message that a client sends.
pub(crate) const MOST: usize = 64 << 20;

/// The most bytes of a message that nobody counts.
const UNCOUNTED: usize = 64 << 10;

/// How often a message is there until it is understood: as it came, and as what it has in it.
const COPIES: usize = 2;

/// How long a client may take for the first message of a call.
const FIRST: Duration = Duration::from_secs(60);

/// Most bytes of the words that a call ends with; some clients take no more than 8 KiB of headers.
const WORDS: usize = 2 << 10;

/// The headers of a call.
#[derive(Debug)]
pub(crate) struct Headers(Vec<Header>);

impl Headers {
    pub(crate) fn new(headers: Vec<Header>) -> Headers {
        Headers(headers)
    }

    /// The value of a header; the first one if there are several.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let found = self.0.iter().find(|(known, _)| known == name.as_bytes());
        found.and_then(|(_, value)| std::str::from_utf8(value).ok())
    }

    /// How long the client waits for the answer.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let text = self.get("grpc-timeout")?;
        let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let number: u32 = digits.parse().ok().filter(|n| *n <= 99_999_999)?;
        let one = match unit {
            "H" => Duration::from_secs(3600),
            "M" => Duration::from_secs(60),
            "S" => Duration::from_secs(1),
            "m" => Duration::from_millis(1),
            "u" => Duration::from_micros(1),
            "n" => Duration::from_nanos(1),
            _ => return None,
        };
        one.checked_mul(number)
    }
}

/// What the client sends.
#[derive(Debug)]
pub(crate) struct Incoming {
    stream: Arc<Stream>,
    /// What has come of messages that are not taken yet.
    buffer: BytesMut,
    /// Where the memory of long messages is counted, once it is known whose they are.
    account: Option<Account>,
}

impl Incoming {
    /// The next message; none if there are no more. `going` is asked every now and then whether to go on waiting.
    ///
    /// # Errors
    /// If it is larger than `most`, or compressed; if the client is gone; those of `going`.
    pub(crate) fn next(
        &mut self,
        most: usize,
        going: &mut dyn FnMut() -> Result<(), Ended>,
    ) -> Result<Option<Bytes>, Ended> {
        self.settle();
        if !self.fill(PREFIX, going)? {
            return match self.buffer.len() {
                0 => Ok(None),
                _ => Err(Status::invalid("the client ended in the middle of a message").into()),
            };
        }
        let compressed = self.buffer[0] != 0;
        let length = u32::from_be_bytes([
            self.buffer[1],
            self.buffer[2],
            self.buffer[3],
            self.buffer[4],
        ]) as usize;
        if compressed {
            let message = "messages may not be compressed: send them with the encoding identity";
            return Err(Status::unsupported(message).into());
        }
        if length > most {
            let message = format!("a message of {length} bytes; {most} are the most");
            return Err(Report::error("54000", message).into());
        }
        self.buffer.advance(PREFIX);
        if !self.fill(length, going)? {
            return Err(Status::invalid("the client ended in the middle of a message").into());
        }
        Ok(Some(self.buffer.split_to(length).freeze()))
    }

    /// Waits until `count` bytes are there; false if they never will be. Memory is taken as they come.
    fn fill(
        &mut self,
        count: usize,
        going: &mut dyn FnMut() -> Result<(), Ended>,
    ) -> Result<bool, Ended> {
        while self.buffer.len() < count {
            match self.stream.read(going)? {
                Some(piece) => {
                    self.hold(self.buffer.len() + piece.len())?;
                    self.buffer.extend_from_slice(&piece);
                }
                None => return Ok(false),
            }
        }
        Ok(true)
    }

    /// Takes the memory of `bytes` of a message, if they are many.
    fn hold(&self, bytes: usize) -> Result<(), Ended> {
        let Some(account) = &self.account else {
            return Ok(());
        };
        let wanted = (bytes.saturating_sub(UNCOUNTED) * COPIES) as u64;
        match wanted.saturating_sub(account.bytes()) {
            0 => Ok(()),
            more => account
                .take(more)
                .map_err(|e| Report::error(errors::MEMORY, e.to_string()).into()),
        }
    }

    /// The message that was taken is done with.
    fn settle(&self) {
        if let Some(account) = &self.account {
            let wanted = (self.buffer.len().saturating_sub(UNCOUNTED) * COPIES) as u64;
            account.give(account.bytes().saturating_sub(wanted));
        }
    }

    /// The next message, as one of this type.
    ///
    /// # Errors
    /// Those of [`next`](Incoming::next); if it is none of the type.
    pub(crate) fn message<M: Message + Default>(
        &mut self,
        going: &mut dyn FnMut() -> Result<(), Ended>,
    ) -> Result<Option<M>, Ended> {
        let bytes = self.next(MOST, going)?;
        bytes.map(|bytes| decoded(bytes)).transpose()
    }
}

/// The message that `bytes` are.
///
/// # Errors
/// If they are none of the type.
pub(crate) fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M, Ended> {
    M::decode(bytes).map_err(|e| Status::invalid(format!("a message cannot be read: {e}")).into())
}

/// A call.
#[derive(Debug)]
pub(crate) struct Call {
    pub headers: Headers,
    pub incoming: Incoming,
    stream: Arc<Stream>,
    /// Headers that the answer begins with, beside those that all have.
    pub extra: Vec<(&'static str, String)>,
    begun: bool,
}

impl Call {
    pub(crate) fn new(headers: Vec<Header>, stream: Stream) -> Call {
        let stream = Arc::new(stream);
        Call {
            headers: Headers::new(headers),
            incoming: Incoming {
                stream: Arc::clone(&stream),
                buffer: BytesMut::new(),
                account: None,
            },
            stream,
            extra: Vec::new(),
            begun: false,
        }
    }

    /// The method that is called, with its service.
    pub(crate) fn path(&self) -> &str {
        self.headers.get(":path").unwrap_or_default()
    }

    /// Has the memory of long messages of the client be counted there from here on.
    pub(crate) fn count(&mut self, account: Account) {
        self.incoming.account = Some(account);
    }

    pub(crate) fn watch(&self) -> Watch {
        self.stream.watch()
    }

    /// What the client sends from here on, for another thread to read.
    pub(crate) fn take_incoming(&mut self) -> Incoming {
        let nothing = Incoming {
            stream: Arc::clone(&self.stream),
            buffer: BytesMut::new(),
            account: None,
        };
        std::mem::replace(&mut self.incoming, nothing)
    }

    /// The one message of a call that has one.
    ///
    /// # Errors
    /// If it does not come in time, or is none of the type.
    pub(crate) fn request<M: Message + Default>(&mut self) -> Result<M, Ended> {
        let until = Instant::now() + FIRST;
        let message = self.incoming.message(&mut || in_time(until))?;
        message.ok_or_else(|| Status::invalid("the call has no message").into())
    }

    /// Begins the answer, for a client that waits for that before it says more.
    pub(crate) fn begin(&mut self) {
        self.head();
        self.stream.push();
    }

    /// What the answer begins with, if it has not begun. It is written with what follows.
    fn head(&mut self) {
        if !std::mem::replace(&mut self.begun, true) {
            let mut headers = vec![(":status", "200"), ("content-type", "application/grpc")];
            let extra = self.extra.iter();
            headers.extend(extra.map(|(name, value)| (*name, value.as_str())));
            self.stream.headers(&headers, false);
        }
    }

    /// Sends a message, without waiting for more.
    ///
    /// # Errors
    /// If the client is gone.
    pub(crate) fn answer(&mut self, message: &impl Message) -> Result<(), Ended> {
        self.head();
        let pieces = framed(vec![message.encode_to_vec().into()]);
        self.stream.data(pieces, true, &mut || Ok(()))
    }

    /// Sends the last message, with which the [end](Call::end) of the call goes.
    ///
    /// # Errors
    /// If the client is gone.
    pub(crate) fn conclude(&mut self, message: &impl Message) -> Result<(), Ended> {
        let pieces = vec![message.encode_to_vec().into()];
        self.send(vec![pieces], &mut || Ok(()))
    }

    /// Sends messages of several pieces each, as the client takes them. What is little goes with what follows, as it takes
    /// the client longer to be woken than to read it, or else a moment later. `going` is asked every now and then whether to
    /// go on.
    ///
    /// # Errors
    /// If the client is gone; those of `going`.
    pub(crate) fn send(
        &mut self,
        messages: Vec<Vec<Bytes>>,
        going: &mut dyn FnMut() -> Result<(), Ended>,
    ) -> Result<(), Ended> {
        self.head();
        let pieces = messages.into_iter().flat_map(framed).collect();
        self.stream.data(pieces, false, going)
    }

    /// Ends the call.
    pub(crate) fn end(mut self, done: Result<(), Ended>) {
        let status = match done {
            Ok(()) => {
                self.head();
                self.stream.headers(&[("grpc-status", "0")], true);
                return;
            }
            // There is nobody to tell.
            Err(Ended::Gone) => return,
            Err(Ended::Told(status)) => status,
        };
        let (code, words) = (
            (status.code as u8).to_string(),
            percent(&status.report.message),
        );
        let position = status.report.position.map(|at| at.to_string());
        let mut headers = Vec::new();
        if !self.begun {
            headers.extend([(":status", "200"), ("content-type", "application/grpc")]);
        }
        headers.extend([
            ("grpc-status", code.as_str()),
            ("grpc-message", words.as_str()),
            ("sqlstate", status.report.code),
        ]);
        if let Some(position) = &position {
            headers.push(("sql-position", position));
        }
        self.stream.headers(&headers, true);
    }
}

/// The pieces of a message, with what stands before it.
fn framed(mut pieces: Vec<Bytes>) -> Vec<Bytes> {
    let length: usize = pieces.iter().map(Bytes::len).sum();
    let mut prefix = BytesMut::with_capacity(PREFIX);
    prefix.put_u8(0);
    prefix.put_u32(length as u32);
    pieces.insert(0, prefix.freeze());
    pieces
}

/// Fails once a moment is over.
pub(crate) fn in_time(until: Instant) -> Result<(), Ended> {
    if Instant::now() < until {
        return Ok(());
    }
    let message = "canceling statement due to timeout: the client sent nothing";
    Err(Report::error(errors::CANCELLED, message).into())
}

/// Whether a statement of this client goes on.
///
/// # Errors
/// Why it does not.
pub(crate) fn wanted(client: &Client) -> Result<(), Ended> {
    match client.reason() {
        None => Ok(()),
        Some(Reason::Vanished) => Err(Gone.into()),
        Some(reason) => Err(errors::of_reason(reason).into()),
    }
}

/// Words as `grpc-message` has them.
fn percent(words: &str) -> String {
    let mut text = String::new();
    for byte in words.bytes() {
        if text.len() >= WORDS {
            text.push_str("...");
            break;
        }
        match byte {
            b' '..=b'~' if byte != b'%' => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_in_ascii() {
        assert_eq!(
            percent("no table \"é\"\n100 %"),
            "no table \"%C3%A9\"%0A100 %25"
        );
        assert!(percent(&"x".repeat(100_000)).len() < WORDS + 10);
    }

    #[test]
    fn timeouts_have_units() {
        let of = |text: &str| {
            Headers(vec![(b"grpc-timeout".to_vec(), text.as_bytes().to_vec())]).timeout()
        };
        assert_eq!(of("5S"), Some(Duration::from_secs(5)));
        assert_eq!(of("100m"), Some(Duration::from_millis(100)));
        for wrong in ["", "5", "S", "-1S", "1x", "é", "999999999S"] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
