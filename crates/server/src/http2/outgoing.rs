//! What is sent to a client: how streams and the connection end, headers, and data as the windows allow.

use bytes::Bytes;

use crate::http2::frame::{self, Code, Head, frame};
use crate::http2::hpack;
use crate::http2::state::State;

/// Data is handed over while fewer bytes than this wait to be written.
const FULL: usize = 256 << 10;

impl State {
    /// Ends a stream that the client has not ended.
    pub(super) fn reset(&mut self, id: u32, code: Code) {
        self.put(frame(frame::RESET, 0, id, &(code as u32).to_be_bytes()));
    }

    /// Nothing can be written any more, and what waits is not.
    pub(super) fn give_up(&mut self) {
        self.closed = true;
        self.out.clear();
        self.waiting = 0;
    }

    /// Says that no stream is taken any more, and why.
    pub(super) fn go_away(&mut self, code: Code) {
        let mut body = self.last.to_be_bytes().to_vec();
        body.extend((code as u32).to_be_bytes());
        self.leaving = true;
        self.put(frame(frame::GO_AWAY, 0, 0, &body));
    }

    /// How many bytes of data may be written on a stream now, in one frame.
    pub(super) fn room(&self, id: u32) -> usize {
        let Some(stream) = self.streams.get(&id) else {
            return 0;
        };
        if self.waiting >= FULL {
            return 0;
        }
        let most = stream.window.min(self.window).max(0);
        usize::try_from(most).unwrap_or(0).min(self.largest)
    }

    /// Writes pieces of `length` bytes together, for which there is [`room`](State::room).
    pub(super) fn put_data(&mut self, id: u32, pieces: impl Iterator<Item = Bytes>, length: usize) {
        self.window -= length as i64;
        if let Some(stream) = self.streams.get_mut(&id) {
            stream.window -= length as i64;
        }
        let head = Head {
            length,
            kind: frame::DATA,
            flags: 0,
            stream: id,
        };
        let mut bytes = Vec::with_capacity(frame::HEAD);
        head.write(&mut bytes);
        self.put(bytes);
        for piece in pieces {
            self.waiting += piece.len();
            self.out.push_back(piece);
        }
    }

    /// Writes headers, the last of the stream if it `ends`.
    pub(super) fn put_headers(&mut self, id: u32, headers: &[(&str, &str)], ends: bool) {
        let mut block = Vec::new();
        for (name, value) in headers {
            hpack::put(&mut block, name, value);
        }
        let ends = if ends { frame::END_STREAM } else { 0 };
        let mut parts = block.chunks(frame::MOST).peekable();
        let mut kind = (frame::HEADERS, ends);
        while let Some(part) = parts.next() {
            let whole = if parts.peek().is_none() {
                frame::END_HEADERS
            } else {
                0
            };
            self.put(frame(kind.0, kind.1 | whole, id, part));
            kind = (frame::CONTINUATION, 0);
        }
    }
}
