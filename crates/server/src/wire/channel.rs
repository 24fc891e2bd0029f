//! Messages over a socket, with TLS or without. One thread reads and writes.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use atoll::Account;
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::wire::frontend::Malformed;

/// How long a read or a write waits before it looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(50);

/// Bytes that are read at once; also what a message takes before more of it has come.
const CHUNK: usize = 16 << 10;

/// The most bytes that are read at once.
const MOST: usize = 16 * CHUNK;

/// The most bytes of answers that are kept before they are sent.
const FULL: usize = 64 << 10;

/// The most bytes of a message that nobody counts: as many sessions as there may be have them.
const UNCOUNTED: usize = 64 << 10;

/// The least bytes that are counted of what a session keeps of a message.
const KEPT: usize = 1 << 10;

/// How often a message is there until it is understood: as it came, as it is read, and as it is taken apart.
const COPIES: usize = 3;

/// The most bytes of a first message.
const FIRST: usize = 10_000;

/// Why nothing can be read or written any more.
#[derive(Debug)]
pub(crate) enum Broken {
    /// The client has gone, or the system says why it cannot be reached.
    Closed,
    /// It sends what is no message.
    Malformed(Malformed),
    /// Whoever waits does not want it any more.
    Stopped,
    /// Nothing came in time.
    Late,
    /// There is no memory for what it sends.
    Full(String),
}

/// A message of a session.
#[derive(Debug)]
pub(crate) enum Received {
    /// Its kind, and what follows its length.
    Message(u8, Vec<u8>),
    /// One of this kind for which there is no memory, and why. It was passed over.
    Refused(u8, String),
}

impl From<Malformed> for Broken {
    fn from(e: Malformed) -> Broken {
        Broken::Malformed(e)
    }
}

enum Stream {
    Plain(TcpStream),
    Tls(Box<StreamOwned<ServerConnection, TcpStream>>),
}

impl Stream {
    fn socket(&self) -> &TcpStream {
        match self {
            Stream::Plain(socket) => socket,
            Stream::Tls(tls) => tls.get_ref(),
        }
    }

    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.read(into),
            Stream::Tls(tls) => tls.read(into),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Stream::Plain(socket) => socket.write(bytes),
            Stream::Tls(tls) => tls.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Stream::Plain(_) => Ok(()),
            Stream::Tls(tls) => tls.flush(),
        }
    }
}

/// The memory of something that grows and shrinks; none where nobody counts.
#[derive(Debug)]
pub(crate) struct Growing(Option<Account>);

impl Growing {
    /// It has so many bytes now, of which a few are not counted.
    ///
    /// # Errors
    /// If there is no memory for them.
    pub(crate) fn to(&self, bytes: usize) -> Result<(), String> {
        let Some(account) = &self.0 else {
            return Ok(());
        };
        // As much again while it is copied to where there is more room.
        let wanted = (bytes.saturating_sub(UNCOUNTED) * 2) as u64;
        let had = account.bytes();
        if wanted <= had {
            account.give(had - wanted);
            return Ok(());
        }
        account.take(wanted - had).map_err(|e| e.to_string())
    }
}

/// A connection: what has come and is not taken yet, and what is to be sent.
pub(crate) struct Channel {
    stream: Stream,
    /// Bytes from `taken` on are still to be taken.
    incoming: Vec<u8>,
    taken: usize,
    /// Messages for the client, whole ones.
    pub out: Vec<u8>,
    /// How long the client may take neither to send nor to take anything, where others wait for it; none for any time.
    pub patience: Option<Duration>,
    /// Where the memory of long messages is counted, once it is known whose they are.
    account: Option<Account>,
}

impl Channel {
    pub(crate) fn new(socket: TcpStream) -> Channel {
        Channel {
            stream: Stream::Plain(socket),
            incoming: Vec::new(),
            taken: 0,
            out: Vec::new(),
            patience: None,
            account: None,
        }
    }

    /// Has the memory of long messages be counted there from here on.
    pub(crate) fn count(&mut self, account: Account) {
        self.account = Some(account);
    }

    /// Has nothing be counted from here on.
    pub(crate) fn count_no_more(&mut self) {
        self.account = None;
    }

    /// Where what is made of messages is counted while it grows.
    pub(crate) fn growing(&self) -> Growing {
        let budget = self.account.as_ref().map(Account::budget);
        Growing(budget.map(|budget| Account::new(Arc::clone(budget))))
    }

    /// The memory of `bytes` that are kept of what has come, for as long as what is returned; none of a few.
    ///
    /// # Errors
    /// If there is not so much.
    pub(crate) fn keep(&self, bytes: usize) -> Result<Option<Account>, String> {
        match &self.account {
            Some(account) if bytes >= KEPT => {
                let own = Account::new(Arc::clone(account.budget()));
                own.take(bytes as u64).map_err(|e| e.to_string())?;
                Ok(Some(own))
            }
            _ => Ok(None),
        }
    }

    /// Takes the memory of `bytes` that have come of a message or are about to, if they are many.
    fn hold(&self, bytes: usize) -> Result<(), Broken> {
        let Some(account) = &self.account else {
            return Ok(());
        };
        let wanted = (bytes.saturating_sub(UNCOUNTED) * COPIES) as u64;
        match wanted.saturating_sub(account.bytes()) {
            0 => Ok(()),
            more => account.take(more).map_err(|e| Broken::Full(e.to_string())),
        }
    }

    /// What was taken is done with: only what has come since takes memory.
    fn settle(&self) {
        if let Some(account) = &self.account {
            let wanted = (self.incoming.len().saturating_sub(UNCOUNTED) * COPIES) as u64;
            account.give(account.bytes().saturating_sub(wanted));
        }
    }

    /// That a wait since `moved` has not been too long.
    fn in_time(&self, moved: Instant) -> Result<(), Broken> {
        match self.patience {
            Some(patience) if moved.elapsed() >= patience => Err(Broken::Late),
            _ => Ok(()),
        }
    }

    /// Whether what is sent is encrypted.
    pub(crate) fn is_tls(&self) -> bool {
        matches!(self.stream, Stream::Tls(_))
    }

    /// Goes on with TLS.
    ///
    /// # Errors
    /// If the client has sent something after it asked for TLS: somebody may have put that there.
    pub(crate) fn encrypt(&mut self, config: &Arc<ServerConfig>) -> Result<(), Broken> {
        let socket = self
            .stream
            .socket()
            .try_clone()
            .map_err(|_| Broken::Closed)?;
        if self.taken < self.incoming.len() {
            return Err(Malformed("data after the request for TLS".into()).into());
        }
        let tls = ServerConnection::new(Arc::clone(config)).map_err(|_| Broken::Closed)?;
        self.stream = Stream::Tls(Box::new(StreamOwned::new(tls, socket)));
        Ok(())
    }

    fn buffered(&self) -> &[u8] {
        &self.incoming[self.taken..]
    }

    /// The kind of the next message, if it has come already.
    pub(crate) fn next_kind(&self) -> Option<u8> {
        self.buffered().first().copied()
    }

    /// What has come and is not taken yet, once it is `count` bytes at least. `going` is asked every now and then whether to
    /// go on waiting, and told whether some have come.
    pub(crate) fn peek(
        &mut self,
        count: usize,
        going: &mut dyn FnMut(bool) -> Result<(), Broken>,
    ) -> Result<&[u8], Broken> {
        self.need(count, going)?;
        Ok(self.buffered())
    }

    /// Takes the first `count` bytes of what [`peek`](Channel::peek) has shown.
    pub(crate) fn consume(&mut self, count: usize) -> Vec<u8> {
        self.take(0, count.min(self.incoming.len() - self.taken))
    }

    /// The first message of a connection, without its length.
    pub(crate) fn first(&mut self, until: Instant) -> Result<Vec<u8>, Broken> {
        self.need(4, &mut |_| until_then(until))?;
        let length = self.length(0)?;
        if !(8..=FIRST).contains(&length) {
            return Err(Malformed(format!("invalid length of startup packet: {length}")).into());
        }
        self.need(length, &mut |_| until_then(until))?;
        Ok(self.take(4, length))
    }

    /// The next message of a session: its kind, and what follows its length. `most` bounds its bytes; `going` is asked
    /// every now and then whether to go on waiting.
    pub(crate) fn message(
        &mut self,
        most: usize,
        going: &mut dyn FnMut(bool) -> Result<(), Broken>,
    ) -> Result<Received, Broken> {
        self.settle();
        self.need(5, going)?;
        let kind = self.buffered()[0];
        let length = self.length(1)?;
        if length < 4 || length > most {
            return Err(Malformed(format!("invalid message length: {length}")).into());
        }
        match self.need(length + 1, going) {
            Ok(()) => Ok(Received::Message(kind, self.take(5, length + 1))),
            Err(Broken::Full(why)) => {
                self.pass(length + 1, going)?;
                Ok(Received::Refused(kind, why))
            }
            Err(broken) => Err(broken),
        }
    }

    /// Passes over the next `count` bytes, as they come.
    fn pass(
        &mut self,
        mut count: usize,
        going: &mut dyn FnMut(bool) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        loop {
            let come = (self.incoming.len() - self.taken).min(count);
            self.taken += come;
            count -= come;
            if self.taken == self.incoming.len() {
                (self.incoming, self.taken) = (Vec::new(), 0);
            }
            self.settle();
            if count == 0 {
                return Ok(());
            }
            self.need(count.min(CHUNK), going)?;
        }
    }

    fn length(&self, at: usize) -> Result<usize, Broken> {
        match self.buffered().get(at..at + 4) {
            Some(&[a, b, c, d]) => Ok(u32::from_be_bytes([a, b, c, d]) as usize),
            _ => Err(Broken::Closed),
        }
    }

    /// Takes what lies between `from` and `to` in the buffer, and forgets what lies before.
    fn take(&mut self, from: usize, to: usize) -> Vec<u8> {
        if self.taken == 0 && to == self.incoming.len() && to > UNCOUNTED {
            // A long message is not copied.
            let mut body = std::mem::take(&mut self.incoming);
            body.drain(..from);
            return body;
        }
        let body = self.buffered()[from..to].to_vec();
        self.taken += to;
        if self.taken == self.incoming.len() {
            self.taken = 0;
            if self.incoming.capacity() > 4 * CHUNK {
                self.incoming = Vec::new();
            } else {
                self.incoming.clear();
            }
        }
        body
    }

    /// Reads until `count` bytes are there.
    fn need(
        &mut self,
        count: usize,
        going: &mut dyn FnMut(bool) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let mut moved = Instant::now();
        while self.incoming.len() - self.taken < count {
            if self.taken > 0 {
                self.incoming.drain(..self.taken);
                self.taken = 0;
            }
            // Of a long message as much again as has come of it: fewer reads, and no memory for what may never come.
            let had = self.incoming.len();
            self.hold(had + had.clamp(CHUNK, MOST))?;
            self.incoming.resize(had + had.clamp(CHUNK, MOST), 0);
            let read = self.stream.read(&mut self.incoming[had..]);
            self.incoming.truncate(had + *read.as_ref().unwrap_or(&0));
            match read {
                Ok(0) => return Err(Broken::Closed),
                Ok(_) => moved = Instant::now(),
                Err(e) if is_later(&e) => {
                    self.in_time(moved)?;
                    going(had > 0)?;
                }
                Err(_) => return Err(Broken::Closed),
            }
        }
        Ok(())
    }

    /// Whether much waits to be sent.
    pub(crate) fn is_full(&self) -> bool {
        self.out.len() >= FULL
    }

    /// Sends what there is to send. Where `going` ends it, the rest stays to be sent: what was begun must be ended, or the
    /// client cannot read on.
    pub(crate) fn flush(
        &mut self,
        going: &mut dyn FnMut(bool) -> Result<(), Broken>,
    ) -> Result<(), Broken> {
        let mut sent = 0;
        let mut moved = Instant::now();
        while sent < self.out.len() {
            match self.stream.write(&self.out[sent..]) {
                Ok(0) => return Err(Broken::Closed),
                Ok(more) => (sent, moved) = (sent + more, Instant::now()),
                Err(e) if is_later(&e) => {
                    if let Err(ended) = self.in_time(moved).and_then(|()| going(true)) {
                        self.out.drain(..sent);
                        return Err(ended);
                    }
                }
                Err(_) => return Err(Broken::Closed),
            }
        }
        self.out.clear();
        self.out.shrink_to(4 * FULL);
        loop {
            match self.stream.flush() {
                Ok(()) => return Ok(()),
                Err(e) if is_later(&e) => going(true)?,
                Err(_) => return Err(Broken::Closed),
            }
        }
    }

    /// Makes reads wait forever, or makes them look every now and then whether they are still wanted. Writes always do.
    ///
    /// # Errors
    /// If the client is gone.
    pub(crate) fn patient(&self, patient: bool) -> Result<(), Broken> {
        let socket = self.stream.socket();
        let reads = socket.set_read_timeout((!patient).then_some(TICK));
        let writes = socket.set_write_timeout(Some(TICK));
        reads.and(writes).map_err(|_| Broken::Closed)
    }

    /// Ends the connection: sends what is left, if that goes at once, and waits a moment for the client to read it.
    pub(crate) fn close(mut self) {
        let until = Instant::now() + Duration::from_millis(500);
        let _ = self.flush(&mut |_| until_then(until));
        if let Stream::Tls(tls) = &mut self.stream {
            tls.conn.send_close_notify();
            let _ = tls.flush();
        }
        // What the client sends until it notices is read: otherwise the system throws away what was sent to it.
        let socket = self.stream.socket();
        let _ = socket.shutdown(Shutdown::Write);
        let _ = self.patient(false);
        let mut rest = [0; 4096];
        while Instant::now() < until {
            let mut socket = self.stream.socket();
            match socket.read(&mut rest) {
                Err(e) if is_later(&e) => {}
                Ok(1..) => {}
                _ => return,
            }
        }
    }
}

/// Whether the system asks to try again later.
fn is_later(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

/// Going on until a moment.
pub(crate) fn until_then(until: Instant) -> Result<(), Broken> {
    if Instant::now() < until {
        Ok(())
    } else {
        Err(Broken::Late)
    }
}
