//! What the two ends of a connection have told each other: streams, windows, and what waits to be written.
//!
//! It does nothing by itself: [`connection`](crate::http2::connection) has it behind a mutex, gives it the frames that come,
//! and writes what it wants written.

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use crate::http2::frame::{self, Code, Head, frame, number, unpadded};
use crate::http2::hpack::{self, Decoder, Header};

/// Most streams at a time of a connection.
pub(super) const STREAMS: usize = 32;

/// Bytes that a client may send on a stream before they are taken.
pub(super) const WINDOW: i64 = 1 << 20;

/// The same for all streams of a connection together.
const ALL: i64 = 4 << 20;

/// What the standard gives both ends at first.
const FIRST: i64 = 65_535;

/// What was taken is given back once it is so many bytes.
const GIVE_BACK: i64 = 64 << 10;

/// Most bytes of a window.
const MOST_WINDOW: i64 = i32::MAX as i64;

/// Most bytes of the headers of a request, packed and unpacked.
const HEADERS: usize = 16 << 10;

/// Most frames that wait to be written: whoever has more written without reading any gets no further.
const WAITING: usize = 4096;

/// Most streams that are refused because there are too many.
const REFUSED: usize = 1000;

/// The largest frame that is sent, where the client takes such.
const LARGE: usize = 64 << 10;

/// A stream.
#[derive(Debug)]
pub(super) struct Stream {
    /// What may be sent to the client.
    pub window: i64,
    /// What the client may send.
    theirs: i64,
    /// What was taken of what it has sent, and not given back.
    taken: i64,
    pub incoming: VecDeque<Bytes>,
    /// The client sends nothing more.
    pub ended: bool,
    /// The client wants nothing more of it.
    pub reset: bool,
}

/// What a frame of the client makes happen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Effect {
    None,
    /// A call begins on this stream.
    Open(u32, Vec<Header>),
    /// The client is about to go.
    GoAway,
}

/// A block of headers of which more is to come.
#[derive(Debug)]
struct Block {
    stream: u32,
    ends: bool,
    bytes: Vec<u8>,
}

/// See the module.
#[derive(Debug)]
pub(super) struct State {
    pub streams: HashMap<u32, Stream>,
    pub out: VecDeque<Bytes>,
    /// Bytes of that.
    pub waiting: usize,
    decoder: Decoder,
    block: Option<Block>,
    /// The last stream that the client has opened.
    pub last: u32,
    /// What may be sent to the client on all streams together.
    pub window: i64,
    /// What may be sent on a new stream.
    initial: i64,
    /// The largest frame that the client takes.
    pub largest: usize,
    theirs: i64,
    taken: i64,
    refused: usize,
    /// No stream is taken any more.
    pub leaving: bool,
    /// Nothing can be read or written any more.
    pub closed: bool,
    /// Somebody writes what it has taken of `out`; nobody else takes any meanwhile.
    pub writing: bool,
}

impl State {
    /// The state of a new connection, which says first what this end takes.
    pub(super) fn new() -> State {
        let mut state = State {
            streams: HashMap::new(),
            out: VecDeque::new(),
            waiting: 0,
            decoder: Decoder::default(),
            block: None,
            last: 0,
            window: FIRST,
            initial: FIRST,
            largest: frame::MOST,
            theirs: ALL,
            taken: 0,
            refused: 0,
            leaving: false,
            closed: false,
            writing: false,
        };
        let mut settings = Vec::new();
        // Most streams, the window of one, the most bytes of headers.
        for (name, value) in [(3, STREAMS as u32), (4, WINDOW as u32), (6, HEADERS as u32)] {
            settings.extend(u16::to_be_bytes(name));
            settings.extend(u32::to_be_bytes(value));
        }
        state.put(frame(frame::SETTINGS, 0, 0, &settings));
        let more = ((ALL - FIRST) as u32).to_be_bytes();
        state.put(frame(frame::WINDOW, 0, 0, &more));
        state
    }

    pub(super) fn put(&mut self, bytes: Vec<u8>) {
        self.waiting += bytes.len();
        self.out.push_back(bytes.into());
    }

    /// Whether a call still has its client.
    pub(super) fn is_gone(&self, id: u32) -> bool {
        self.closed || self.streams.get(&id).is_none_or(|stream| stream.reset)
    }

    /// Takes a frame.
    ///
    /// # Errors
    /// If the connection cannot go on.
    pub(super) fn take(&mut self, head: &Head, body: &[u8]) -> Result<Effect, Code> {
        if self.block.is_some() && head.kind != frame::CONTINUATION {
            return Err(Code::Protocol);
        }
        if self.out.len() > WAITING {
            return Err(Code::Calm);
        }
        let on_stream = matches!(
            head.kind,
            frame::DATA | frame::HEADERS | frame::PRIORITY | frame::RESET | frame::CONTINUATION
        );
        let on_none = matches!(head.kind, frame::SETTINGS | frame::PING | frame::GO_AWAY);
        if on_stream && head.stream == 0 || on_none && head.stream != 0 {
            return Err(Code::Protocol);
        }
        match head.kind {
            frame::DATA => self.data(head, body)?,
            frame::HEADERS => return self.headers(head, body),
            frame::CONTINUATION => return self.continuation(head, body),
            frame::PRIORITY if body.len() != 5 => return Err(Code::FrameSize),
            frame::RESET => {
                number(body)?;
                self.known(head.stream)?;
                if let Some(stream) = self.streams.get_mut(&head.stream) {
                    stream.reset = true;
                }
            }
            frame::SETTINGS => self.settings(head, body)?,
            frame::PUSH => return Err(Code::Protocol),
            frame::PING if body.len() != 8 => return Err(Code::FrameSize),
            frame::PING if !head.has(frame::ACK) => {
                self.put(frame(frame::PING, frame::ACK, 0, body));
            }
            frame::GO_AWAY => return Ok(Effect::GoAway),
            frame::WINDOW => self.widen(head.stream, number(body)?)?,
            // What is not known says nothing.
            _ => {}
        }
        Ok(Effect::None)
    }

    /// A stream that was never opened has no frames.
    fn known(&self, stream: u32) -> Result<(), Code> {
        if stream > self.last || stream.is_multiple_of(2) {
            return Err(Code::Protocol);
        }
        Ok(())
    }

    fn data(&mut self, head: &Head, body: &[u8]) -> Result<(), Code> {
        self.known(head.stream)?;
        let all = head.length as i64;
        let data = unpadded(head, body)?;
        self.theirs -= all;
        if self.theirs < 0 {
            return Err(Code::FlowControl);
        }
        let Some(stream) = self.streams.get_mut(&head.stream) else {
            // It has ended here, and the client does not know yet.
            self.give_back(0, all);
            return Ok(());
        };
        if stream.ended {
            return Err(Code::StreamClosed);
        }
        stream.theirs -= all;
        if stream.theirs < 0 {
            return Err(Code::FlowControl);
        }
        stream.ended = head.has(frame::END_STREAM);
        if stream.reset || data.is_empty() {
            self.give_back(head.stream, all);
            return Ok(());
        }
        stream.incoming.push_back(Bytes::copy_from_slice(data));
        self.give_back(head.stream, all - data.len() as i64);
        Ok(())
    }

    fn headers(&mut self, head: &Head, body: &[u8]) -> Result<Effect, Code> {
        let mut bytes = unpadded(head, body)?;
        if head.has(frame::WITH_PRIORITY) {
            bytes = bytes.get(5..).ok_or(Code::FrameSize)?;
        }
        self.block = Some(Block {
            stream: head.stream,
            ends: head.has(frame::END_STREAM),
            bytes: bytes.to_vec(),
        });
        self.block_or_more(head)
    }

    fn continuation(&mut self, head: &Head, body: &[u8]) -> Result<Effect, Code> {
        let block = self.block.as_mut().ok_or(Code::Protocol)?;
        if block.stream != head.stream {
            return Err(Code::Protocol);
        }
        // Empty ones are nothing but work.
        if body.is_empty() && !head.has(frame::END_HEADERS)
            || block.bytes.len() + body.len() > HEADERS
        {
            return Err(Code::Calm);
        }
        block.bytes.extend(body);
        self.block_or_more(head)
    }

    fn block_or_more(&mut self, head: &Head) -> Result<Effect, Code> {
        if !head.has(frame::END_HEADERS) {
            return Ok(Effect::None);
        }
        let block = self.block.take().ok_or(Code::Protocol)?;
        let headers = self.decoder.decode(&block.bytes, HEADERS);
        let headers = headers.map_err(|refused| match refused {
            hpack::Refused::Malformed => Code::Compression,
            hpack::Refused::Long => Code::Calm,
        })?;
        let id = block.stream;
        if let Some(stream) = self.streams.get_mut(&id) {
            // What follows the data of a request.
            if stream.ended || !block.ends {
                return Err(Code::Protocol);
            }
            stream.ended = true;
            return Ok(Effect::None);
        }
        if id.is_multiple_of(2) {
            return Err(Code::Protocol);
        }
        if id <= self.last {
            // One that has ended here.
            return Ok(Effect::None);
        }
        self.last = id;
        if self.leaving || self.streams.len() >= STREAMS {
            self.refused += 1;
            if self.refused > REFUSED {
                return Err(Code::Calm);
            }
            self.reset(id, Code::Refused);
            return Ok(Effect::None);
        }
        let stream = Stream {
            window: self.initial,
            theirs: WINDOW,
            taken: 0,
            incoming: VecDeque::new(),
            ended: block.ends,
            reset: false,
        };
        self.streams.insert(id, stream);
        Ok(Effect::Open(id, headers))
    }

    fn settings(&mut self, head: &Head, body: &[u8]) -> Result<(), Code> {
        if head.has(frame::ACK) {
            return if body.is_empty() {
                Ok(())
            } else {
                Err(Code::FrameSize)
            };
        }
        let (all, rest) = body.as_chunks::<6>();
        if !rest.is_empty() {
            return Err(Code::FrameSize);
        }
        for [a, b, value @ ..] in all {
            let value = i64::from(u32::from_be_bytes(*value));
            match u16::from_be_bytes([*a, *b]) {
                4 if value > MOST_WINDOW => return Err(Code::FlowControl),
                4 => {
                    let more = value - self.initial;
                    self.initial = value;
                    for stream in self.streams.values_mut() {
                        stream.window += more;
                        if stream.window > MOST_WINDOW {
                            return Err(Code::FlowControl);
                        }
                    }
                }
                5 if !(frame::MOST as i64..1 << 24).contains(&value) => {
                    return Err(Code::Protocol);
                }
                5 => self.largest = (value as usize).min(LARGE),
                _ => {}
            }
        }
        self.put(frame(frame::SETTINGS, frame::ACK, 0, &[]));
        Ok(())
    }

    /// The client takes so many more bytes, on a stream or on all together.
    fn widen(&mut self, id: u32, more: u32) -> Result<(), Code> {
        let more = i64::from(more & (u32::MAX >> 1));
        if id == 0 {
            self.window += more;
            return match self.window {
                ..=MOST_WINDOW if more > 0 => Ok(()),
                _ => Err(if more == 0 {
                    Code::Protocol
                } else {
                    Code::FlowControl
                }),
            };
        }
        self.known(id)?;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.window += more;
            if more == 0 || stream.window > MOST_WINDOW {
                stream.reset = true;
                self.reset(id, Code::FlowControl);
            }
        }
        Ok(())
    }

    /// Lets the client send what was taken again.
    pub(super) fn give_back(&mut self, id: u32, bytes: i64) {
        self.taken += bytes;
        if self.taken >= GIVE_BACK {
            let more = std::mem::take(&mut self.taken);
            self.theirs += more;
            self.put(frame(frame::WINDOW, 0, 0, &(more as u32).to_be_bytes()));
        }
        if let Some(stream) = self.streams.get_mut(&id)
            && !stream.ended
            && !stream.reset
        {
            stream.taken += bytes;
            if stream.taken >= GIVE_BACK {
                let more = std::mem::take(&mut stream.taken);
                stream.theirs += more;
                self.put(frame(frame::WINDOW, 0, id, &(more as u32).to_be_bytes()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Head {
        Head {
            length: body.len(),
            kind,
            flags,
            stream,
        }
    }

    fn take(
        state: &mut State,
        kind: u8,
        flags: u8,
        stream: u32,
        body: &[u8],
    ) -> Result<Effect, Code> {
        state.take(&head(kind, flags, stream, body), body)
    }

    fn open(state: &mut State, stream: u32) -> Result<Effect, Code> {
        take(state, frame::HEADERS, frame::END_HEADERS, stream, b"\x83")
    }

    #[test]
    fn a_stream_gets_its_data_within_its_window() {
        let mut state = State::new();
        let opened = open(&mut state, 1).unwrap();
        let wanted = vec![(b":method".to_vec(), b"POST".to_vec())];
        assert_eq!(opened, Effect::Open(1, wanted));
        let piece = vec![7; frame::MOST];
        for _ in 0..WINDOW as usize / frame::MOST {
            take(&mut state, frame::DATA, 0, 1, &piece).unwrap();
        }
        assert_eq!(
            take(&mut state, frame::DATA, 0, 1, b"x"),
            Err(Code::FlowControl)
        );
        // What is taken may be sent again.
        let mut state = State::new();
        open(&mut state, 1).unwrap();
        for _ in 0..1000 {
            take(&mut state, frame::DATA, 0, 1, &piece).unwrap();
            state.streams.get_mut(&1).unwrap().incoming.clear();
            state.give_back(1, piece.len() as i64);
            state.out.clear();
        }
        take(&mut state, frame::DATA, frame::END_STREAM, 1, b"x").unwrap();
        assert_eq!(
            take(&mut state, frame::DATA, 0, 1, b"x"),
            Err(Code::StreamClosed)
        );
    }

    #[test]
    fn what_is_sent_keeps_to_the_windows_of_the_client() {
        let mut state = State::new();
        open(&mut state, 1).unwrap();
        state.out.clear();
        state.waiting = 0;
        assert_eq!(state.room(1), frame::MOST);
        state.put_data(1, std::iter::empty(), 65_000);
        assert_eq!(state.room(1), 535);
        take(&mut state, frame::WINDOW, 0, 1, &1000_u32.to_be_bytes()).unwrap();
        assert_eq!(state.room(1), 535, "the connection has no more");
        take(&mut state, frame::WINDOW, 0, 0, &9000_u32.to_be_bytes()).unwrap();
        assert_eq!(state.room(1), 1535);
        // The window of new streams becomes less, also of those that there are.
        take(&mut state, frame::SETTINGS, 0, 0, b"\0\x04\0\0\0\0").unwrap();
        assert_eq!(state.room(1), 0);
        assert_eq!(
            take(&mut state, frame::WINDOW, 0, 0, &u32::MAX.to_be_bytes()),
            Err(Code::FlowControl)
        );
    }

    #[test]
    fn floods_end_the_connection() {
        // Pings that nobody reads the answers of.
        let mut state = State::new();
        let last = (0..WAITING * 2)
            .map(|_| take(&mut state, frame::PING, 0, 0, &[0; 8]))
            .find(Result::is_err);
        assert_eq!(last, Some(Err(Code::Calm)));
        // Streams beyond those that there may be, each given up at once.
        let mut state = State::new();
        let last = (0..)
            .map(|at| {
                let id = at * 2 + 1;
                state.out.clear();
                open(&mut state, id)?;
                take(&mut state, frame::RESET, 0, id, &[0; 4])
            })
            .find(Result::is_err);
        assert_eq!(last, Some(Err(Code::Calm)));
        assert_eq!(state.streams.len(), STREAMS);
        // Headers without an end.
        let mut state = State::new();
        take(&mut state, frame::HEADERS, 0, 1, b"").unwrap();
        let piece = vec![0; 10_000];
        take(&mut state, frame::CONTINUATION, 0, 1, &piece).unwrap();
        assert_eq!(
            take(&mut state, frame::CONTINUATION, 0, 1, &piece),
            Err(Code::Calm)
        );
        let mut state = State::new();
        take(&mut state, frame::HEADERS, 0, 1, b"").unwrap();
        assert_eq!(
            take(&mut state, frame::CONTINUATION, 0, 1, b""),
            Err(Code::Calm)
        );
    }

    #[test]
    fn what_the_standard_forbids_is_refused() {
        let refused: [(u8, u8, u32, &[u8], Code); 12] = [
            (frame::DATA, 0, 0, b"x", Code::Protocol),
            (frame::DATA, 0, 1, b"x", Code::Protocol),
            (
                frame::HEADERS,
                frame::END_HEADERS,
                2,
                b"\x83",
                Code::Protocol,
            ),
            (
                frame::HEADERS,
                frame::END_HEADERS,
                1,
                b"\x80",
                Code::Compression,
            ),
            (frame::CONTINUATION, 0, 1, b"", Code::Protocol),
            (frame::SETTINGS, 0, 1, b"", Code::Protocol),
            (frame::SETTINGS, 0, 0, b"x", Code::FrameSize),
            (
                frame::SETTINGS,
                frame::ACK,
                0,
                b"\0\0\0\0\0\0",
                Code::FrameSize,
            ),
            (frame::PING, 0, 0, b"x", Code::FrameSize),
            (frame::WINDOW, 0, 0, b"\0\0\0\0", Code::Protocol),
            (frame::PUSH, 0, 1, b"", Code::Protocol),
            (frame::RESET, 0, 1, b"\0\0\0\0", Code::Protocol),
        ];
        for (kind, flags, stream, body, code) in refused {
            let mut state = State::new();
            let found = take(&mut state, kind, flags, stream, body);
            assert_eq!(found, Err(code), "{kind} {flags} {stream} {body:?}");
        }
        // Between the parts of a block of headers nothing else comes.
        let mut state = State::new();
        take(&mut state, frame::HEADERS, 0, 1, b"\x83").unwrap();
        assert_eq!(
            take(&mut state, frame::PING, 0, 0, &[0; 8]),
            Err(Code::Protocol)
        );
    }

    #[test]
    fn any_frames_are_taken_without_harm() {
        let mut random = fastrand::Rng::with_seed(8);
        for _ in 0..2_000 {
            let mut state = State::new();
            for _ in 0..200 {
                let body: Vec<u8> = (0..random.usize(0..20)).map(|_| random.u8(..)).collect();
                let (kind, flags) = (random.u8(0..11), random.u8(..));
                let taken = take(&mut state, kind, flags, random.u32(0..9), &body);
                assert!(state.streams.len() <= STREAMS);
                if taken.is_err() {
                    break;
                }
            }
        }
    }
}
