//! A connection: a thread that reads frames, one that writes them, and the streams of its calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::http2::duplex;
use crate::http2::frame::{self, Code, Head};
use crate::http2::hpack;
use crate::http2::state::{Effect, State};

pub(crate) use duplex::Duplex;
pub(crate) use hpack::Header;

/// How long whoever waits for the client does so before it looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(50);

/// How long a connection may do nothing.
const IDLE: Duration = Duration::from_secs(600);

/// How long a client may take to say what it must say first.
const FIRST: Duration = Duration::from_secs(15);

/// So many bytes are written by whoever has them to say, if nobody else writes: to wake another thread takes longer.
const LITTLE: usize = 16 << 10;

/// How long it may take to read the last that it is told.
const LAST: Duration = Duration::from_secs(2);

/// A connection.
#[derive(Debug)]
pub(crate) struct Connection {
    line: Duplex,
    state: Mutex<State>,
    /// Told when anything in the state changes that calls wait for.
    changed: Condvar,
    /// Told when there is something to write: whoever writes is not woken for anything else.
    to_write: Condvar,
}

/// The client has gone, or wants no more of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

impl Connection {
    /// Reads what the client sends until it goes away, or the server stops; `open` begins a call.
    pub(crate) fn serve(
        line: Duplex,
        stopping: &dyn Fn() -> bool,
        open: &dyn Fn(Vec<Header>, Stream),
    ) {
        let connection = Arc::new(Connection {
            line,
            state: Mutex::new(State::new()),
            changed: Condvar::new(),
            to_write: Condvar::new(),
        });
        let of = Arc::clone(&connection);
        let writer = thread::Builder::new().name("atoll-flight-out".into());
        let Ok(writer) = writer.spawn(move || of.write()) else {
            return;
        };
        let ended = connection.read(stopping, open);
        let until = Instant::now() + LAST;
        {
            let mut state = connection.state.lock();
            if let Err(Some(code)) = ended {
                state.go_away(code);
            }
            // Calls find that the client has gone.
            state.closed = true;
            connection.changed.notify_all();
            connection.wake_writer(&state);
            while state.waiting > 0 && !connection.changed.wait_until(&mut state, until).timed_out()
            {
            }
        }
        connection.line.say_goodbye();
        connection.line.shut();
        let _ = writer.join();
    }

    /// Reads frames. It fails with a code that the client is told, or with none where there is nobody to tell.
    fn read(
        self: &Arc<Connection>,
        stopping: &dyn Fn() -> bool,
        open: &dyn Fn(Vec<Header>, Stream),
    ) -> Result<(), Option<Code>> {
        let mut incoming = Vec::new();
        let mut until = Instant::now() + FIRST;
        let mut greeted = false;
        loop {
            let some = self.line.read(&mut incoming).map_err(|_| None)?;
            if self.line.has_to_write() {
                // With the lock: whoever writes has looked before that, and waits, or looks later.
                let _state = self.state.lock();
                self.to_write.notify_all();
            }
            let mut rest = &incoming[..];
            if !greeted {
                let known = rest.len().min(frame::PREFACE.len());
                if rest[..known] != frame::PREFACE[..known] {
                    return Err(Some(Code::Protocol));
                }
                greeted = known == frame::PREFACE.len();
                rest = if greeted { &rest[known..] } else { rest };
            }
            let before = rest.len();
            while greeted && let Some((head, body, after)) = next(rest)? {
                self.take(&head, body, open)?;
                rest = after;
            }
            if rest.len() < before {
                until = Instant::now() + IDLE;
            }
            let taken = incoming.len() - rest.len();
            incoming.drain(..taken);
            if !some && self.is_over(stopping, until) {
                return Ok(());
            }
        }
    }

    /// Whether there is nothing to wait for any more; a server that stops says so before that.
    fn is_over(&self, stopping: &dyn Fn() -> bool, until: Instant) -> bool {
        let mut state = self.state.lock();
        let late = Instant::now() >= until;
        if (stopping() || late) && !state.leaving {
            state.go_away(Code::None);
        }
        // There may be what did not hurry.
        self.wake_writer(&state);
        state.closed || state.leaving && state.streams.is_empty()
    }

    fn take(
        self: &Arc<Connection>,
        head: &Head,
        body: &[u8],
        open: &dyn Fn(Vec<Header>, Stream),
    ) -> Result<(), Option<Code>> {
        let effect = {
            let mut state = self.state.lock();
            let effect = state.take(head, body);
            self.wake_writer(&state);
            effect
        };
        self.changed.notify_all();
        match effect.map_err(Some)? {
            Effect::None => {}
            Effect::Open(id, headers) => {
                let stream = Stream {
                    connection: Arc::clone(self),
                    id,
                    ended: AtomicBool::new(false),
                };
                open(headers, stream);
            }
            Effect::GoAway => self.state.lock().leaving = true,
        }
        Ok(())
    }

    /// Wakes whoever writes, if there is anything for it to do. Who writes now looks itself once that is done.
    fn wake_writer(&self, state: &State) {
        if !state.writing && (!state.out.is_empty() || state.closed) {
            self.to_write.notify_all();
        }
    }

    /// Has what waits written: here if that is [`LITTLE`], or else by whoever writes. A client that reads nothing holds this
    /// up for a moment only.
    fn write_now(&self, mut state: MutexGuard<'_, State>) {
        let little = state.waiting <= LITTLE && self.line.is_plain();
        if !little || state.writing || state.closed || state.out.is_empty() {
            self.wake_writer(&state);
            return;
        }
        let mut pieces: Vec<Bytes> = state.out.drain(..).collect();
        let bytes: usize = pieces.iter().map(Bytes::len).sum();
        state.writing = true;
        drop(state);
        let written = self.line.write_some(&mut pieces);
        let mut state = self.state.lock();
        state.writing = false;
        match written {
            Ok(left) => {
                let kept: usize = left.iter().map(Bytes::len).sum();
                state.waiting -= bytes - kept;
                for piece in left.iter_mut().rev() {
                    state.out.push_front(std::mem::take(piece));
                }
            }
            Err(_) => {
                state.give_up();
                self.line.shut();
            }
        }
        self.wake_writer(&state);
        self.changed.notify_all();
    }

    /// Writes what waits until the connection is closed and nothing does.
    fn write(&self) {
        let mut pieces = Vec::new();
        loop {
            {
                let mut state = self.state.lock();
                while state.writing
                    || state.out.is_empty() && !state.closed && !self.line.has_to_write()
                {
                    self.to_write.wait(&mut state);
                }
                if state.out.is_empty() && state.closed {
                    return;
                }
                state.writing = true;
                pieces.extend(state.out.drain(..));
            }
            let bytes: usize = pieces.iter().map(Bytes::len).sum();
            let written = self.line.write(&mut pieces);
            pieces.clear();
            let mut state = self.state.lock();
            state.writing = false;
            state.waiting -= bytes;
            if written.is_err() {
                state.give_up();
            }
            self.changed.notify_all();
            if written.is_err() {
                drop(state);
                self.line.shut();
                return;
            }
        }
    }
}

/// A frame, what it says, and what follows it.
type Framed<'b> = (Head, &'b [u8], &'b [u8]);

/// The first frame of `bytes`; none if it is not whole.
fn next(bytes: &[u8]) -> Result<Option<Framed<'_>>, Option<Code>> {
    let Some((head, rest)) = bytes.split_first_chunk::<{ frame::HEAD }>() else {
        return Ok(None);
    };
    let head = Head::read(head);
    if head.length > frame::MOST {
        return Err(Some(Code::FrameSize));
    }
    let found = rest.split_at_checked(head.length);
    Ok(found.map(|(body, after)| (head, body, after)))
}

/// The stream of a call. Where it is dropped before its end, the client is told that it failed.
#[derive(Debug)]
pub(crate) struct Stream {
    connection: Arc<Connection>,
    id: u32,
    /// The last has been sent.
    ended: AtomicBool,
}

/// Who looks whether the client of a stream is still there, without keeping the stream.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    connection: Arc<Connection>,
    id: u32,
}

impl Watch {
    pub(crate) fn is_gone(&self) -> bool {
        self.connection.state.lock().is_gone(self.id)
    }
}

impl Stream {
    pub(crate) fn watch(&self) -> Watch {
        Watch {
            connection: Arc::clone(&self.connection),
            id: self.id,
        }
    }

    /// Waits for something to happen. Every now and then `going` says whether to go on.
    fn wait<E>(
        &self,
        state: &mut MutexGuard<'_, State>,
        due: &mut Instant,
        going: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        let changed = &self.connection.changed;
        let _ = changed.wait_until(state, *due);
        // Others may change something all the time.
        if Instant::now() >= *due {
            MutexGuard::unlocked(state, &mut *going)?;
            *due = Instant::now() + TICK;
        }
        Ok(())
    }

    /// The next piece of what the client sends; none at its end. `going` is asked every now and then whether to go on.
    ///
    /// # Errors
    /// [`Gone`], and those of `going`.
    pub(crate) fn read<E: From<Gone>>(
        &self,
        going: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<Option<Bytes>, E> {
        let mut due = Instant::now() + TICK;
        let mut state = self.connection.state.lock();
        loop {
            if state.is_gone(self.id) {
                return Err(Gone.into());
            }
            let Some(stream) = state.streams.get_mut(&self.id) else {
                return Err(Gone.into());
            };
            if let Some(piece) = stream.incoming.pop_front() {
                state.give_back(self.id, piece.len() as i64);
                self.connection.wake_writer(&state);
                return Ok(Some(piece));
            }
            if stream.ended {
                return Ok(None);
            }
            self.wait(&mut state, &mut due, going)?;
        }
    }

    /// Sends headers: the first, which are written with what follows or once they are [pushed](Stream::push), or if it
    /// `ends` the last of the stream.
    pub(crate) fn headers(&self, headers: &[(&str, &str)], ends: bool) {
        let mut state = self.connection.state.lock();
        if !self.ended.load(Ordering::Acquire) && !state.is_gone(self.id) {
            state.put_headers(self.id, headers, ends);
        }
        self.ended.fetch_or(ends, Ordering::AcqRel);
        if ends {
            self.connection.write_now(state);
        }
    }

    /// Sees to it that what was said is written without waiting for what follows.
    pub(crate) fn push(&self) {
        self.connection.write_now(self.connection.state.lock());
    }

    /// Sends data, as the client takes it. `going` is asked every now and then whether to go on waiting for that. What is
    /// [`LITTLE`] and does not `hurry` is written with what follows, or once nothing has come from the client for a moment.
    ///
    /// # Errors
    /// [`Gone`], and those of `going`.
    pub(crate) fn data<E: From<Gone>>(
        &self,
        mut pieces: Vec<Bytes>,
        hurry: bool,
        going: &mut dyn FnMut() -> Result<(), E>,
    ) -> Result<(), E> {
        pieces.reverse();
        let mut left: usize = pieces.iter().map(Bytes::len).sum();
        let mut due = Instant::now() + TICK;
        let mut state = self.connection.state.lock();
        while left > 0 {
            if state.is_gone(self.id) {
                return Err(Gone.into());
            }
            let room = state.room(self.id).min(left);
            if room == 0 {
                // The client makes room once it has what was said.
                self.connection.wake_writer(&state);
                self.wait(&mut state, &mut due, going)?;
                continue;
            }
            let first = first(&mut pieces, room);
            state.put_data(self.id, first.into_iter(), room);
            left -= room;
        }
        if hurry || state.waiting > LITTLE {
            self.connection.write_now(state);
        }
        Ok(())
    }
}

/// Takes `count` bytes from the end of `pieces`, whose last is the first to be sent.
fn first(pieces: &mut Vec<Bytes>, mut count: usize) -> Vec<Bytes> {
    let mut taken = Vec::new();
    while count > 0
        && let Some(piece) = pieces.last_mut()
    {
        let some = piece.len().min(count);
        if some > 0 {
            taken.push(piece.split_to(some));
            count -= some;
        }
        if !piece.has_remaining() {
            pieces.pop();
        }
    }
    taken
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut state = self.connection.state.lock();
        let Some(stream) = state.streams.remove(&self.id) else {
            return;
        };
        let ended = self.ended.load(Ordering::Acquire);
        if !stream.reset && (!ended || !stream.ended) {
            // An answer that is whole is not spoilt by what the client still sends.
            let code = if ended { Code::None } else { Code::Internal };
            state.reset(self.id, code);
        }
        let left: usize = stream.incoming.iter().map(Bytes::len).sum();
        state.give_back(0, left as i64);
        self.connection.wake_writer(&state);
        self.connection.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::sync::mpsc::channel;

    /// A client of a connection whose one call does `work`.
    fn connect(work: impl Fn(Stream) + Send + Sync + 'static) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (socket, _) = listener.accept().unwrap();
        thread::spawn(move || {
            let line = Duplex::new(socket, None, Instant::now() + FIRST).unwrap();
            let work = Arc::new(work);
            let open = move |_: Vec<Header>, stream: Stream| {
                let work = Arc::clone(&work);
                thread::spawn(move || work(stream));
            };
            Connection::serve(line, &|| false, &open);
        });
        let mut said = frame::PREFACE.to_vec();
        // Windows of 15 MiB and more: for each stream, and for all together.
        said.extend(frame::frame(frame::SETTINGS, 0, 0, b"\0\x04\x01\0\0\0"));
        said.extend(frame::frame(frame::WINDOW, 0, 0, b"\0\xf0\0\0"));
        let flags = frame::END_HEADERS | frame::END_STREAM;
        said.extend(frame::frame(frame::HEADERS, flags, 1, b"\x83"));
        client.write_all(&said).unwrap();
        client
    }

    /// The data that comes, until it is `length` bytes.
    fn received(client: &mut TcpStream, length: usize) -> Vec<u8> {
        let patience = Some(Duration::from_secs(60));
        client.set_read_timeout(patience).unwrap();
        let mut all = Vec::new();
        while all.len() < length {
            let mut head = [0; frame::HEAD];
            client.read_exact(&mut head).unwrap();
            let head = Head::read(&head);
            let mut body = vec![0; head.length];
            client.read_exact(&mut body).unwrap();
            if head.kind == frame::DATA {
                all.extend(body);
            }
        }
        all
    }

    fn say(stream: &Stream, data: Vec<u8>, hurry: bool) {
        let said = stream.data::<Gone>(vec![data.into()], hurry, &mut || Ok(()));
        assert_eq!(said, Ok(()));
    }

    #[test]
    fn what_does_not_hurry_comes_although_nothing_follows() {
        let (end, ended) = channel::<()>();
        let ended = Mutex::new(ended);
        let mut client = connect(move |stream| {
            stream.headers(&[(":status", "200")], false);
            say(&stream, b"reef".to_vec(), false);
            let _ = ended.lock().recv();
        });
        assert_eq!(received(&mut client, 4), b"reef");
        drop(end);
    }

    #[test]
    fn what_is_said_comes_in_order_whoever_writes_it() {
        const TIMES: usize = 100;
        let part = |at: usize| vec![at as u8; [3, 1000, 20_000, 300_000][at % 4]];
        let mut client = connect(move |stream| {
            stream.headers(&[(":status", "200")], false);
            for at in 0..TIMES {
                say(&stream, part(at), at % 3 == 0);
            }
            stream.headers(&[("grpc-status", "0")], true);
        });
        // Nothing is read until the socket takes no more.
        thread::sleep(Duration::from_millis(400));
        let wanted: Vec<u8> = (0..TIMES).flat_map(part).collect();
        assert!(received(&mut client, wanted.len()) == wanted);
    }
}
