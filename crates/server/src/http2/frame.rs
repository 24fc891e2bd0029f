//! Frames: nine bytes, and what they say follows.

/// Bytes of the head of a frame.
pub(super) const HEAD: usize = 9;

/// What every client says first.
pub(super) const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The most bytes of a frame that a client may send: what the standard gives who says nothing else.
pub(super) const MOST: usize = 16 << 10;

pub(super) const DATA: u8 = 0;
pub(super) const HEADERS: u8 = 1;
pub(super) const PRIORITY: u8 = 2;
pub(super) const RESET: u8 = 3;
pub(super) const SETTINGS: u8 = 4;
pub(super) const PUSH: u8 = 5;
pub(super) const PING: u8 = 6;
pub(super) const GO_AWAY: u8 = 7;
pub(super) const WINDOW: u8 = 8;
pub(super) const CONTINUATION: u8 = 9;

/// Of `DATA` and `HEADERS`: nothing follows on the stream.
pub(super) const END_STREAM: u8 = 1;
/// Of `SETTINGS` and `PING`: it answers one.
pub(super) const ACK: u8 = 1;
/// Of `HEADERS` and `CONTINUATION`: the block of headers is whole.
pub(super) const END_HEADERS: u8 = 4;
pub(super) const PADDED: u8 = 8;
pub(super) const WITH_PRIORITY: u8 = 0x20;

/// Why a stream or a connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Code {
    None = 0,
    Protocol = 1,
    Internal = 2,
    FlowControl = 3,
    StreamClosed = 5,
    FrameSize = 6,
    Refused = 7,
    Compression = 9,
    Calm = 11,
}

/// The head of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub length: usize,
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
}

impl Head {
    pub(super) fn read(bytes: &[u8; HEAD]) -> Head {
        let [a, b, c, kind, flags, stream @ ..] = *bytes;
        Head {
            length: u32::from_be_bytes([0, a, b, c]) as usize,
            kind,
            flags,
            stream: u32::from_be_bytes(stream) & (u32::MAX >> 1),
        }
    }

    pub(super) fn write(self, out: &mut Vec<u8>) {
        out.extend(&(self.length as u32).to_be_bytes()[1..]);
        out.extend([self.kind, self.flags]);
        out.extend(self.stream.to_be_bytes());
    }

    pub(super) fn has(&self, flag: u8) -> bool {
        self.flags & flag != 0
    }
}

/// A whole frame.
pub(super) fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD + body.len());
    let head = Head {
        length: body.len(),
        kind,
        flags,
        stream,
    };
    head.write(&mut out);
    out.extend(body);
    out
}

/// What a frame says without its padding.
pub(super) fn unpadded<'b>(head: &Head, body: &'b [u8]) -> Result<&'b [u8], Code> {
    if !head.has(PADDED) {
        return Ok(body);
    }
    let (padding, rest) = body.split_first().ok_or(Code::FrameSize)?;
    let length = rest.len().checked_sub(usize::from(*padding));
    length.map(|length| &rest[..length]).ok_or(Code::Protocol)
}

/// The number of four bytes that a frame is.
pub(super) fn number(body: &[u8]) -> Result<u32, Code> {
    let bytes = body.try_into().map_err(|_| Code::FrameSize)?;
    Ok(u32::from_be_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read_as_they_are_written() {
        let frame = frame(DATA, END_STREAM | PADDED, 7, b"\x02reef..");
        let head = Head::read(frame[..HEAD].try_into().unwrap());
        assert_eq!((head.length, head.kind, head.stream), (7, DATA, 7));
        assert_eq!(unpadded(&head, &frame[HEAD..]), Ok(&b"reef"[..]));
        assert_eq!(unpadded(&head, b""), Err(Code::FrameSize));
        assert_eq!(unpadded(&head, b"\x04abc"), Err(Code::Protocol));
        assert_eq!(number(b"\0\0\x01\0"), Ok(256));
        assert_eq!(number(b"\0"), Err(Code::FrameSize));
    }
}
