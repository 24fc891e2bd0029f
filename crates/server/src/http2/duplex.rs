//! A socket that one thread reads while another writes, with TLS or without.

use std::io::{self, ErrorKind, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use parking_lot::Mutex;
use rustls::{ServerConfig, ServerConnection};

/// How long a read waits before whoever reads looks whether it is still wanted.
const TICK: Duration = Duration::from_millis(100);

/// Bytes that are read at once.
const CHUNK: usize = 64 << 10;

/// Pieces that are written at once.
const PIECES: usize = 64;

/// A socket, and the state of TLS over it.
#[derive(Debug)]
pub(crate) struct Duplex {
    socket: TcpStream,
    tls: Option<Mutex<ServerConnection>>,
}

/// Whether something that failed may be tried again.
fn is_later(e: &io::Error) -> bool {
    matches!(
        e.kind(),
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}

impl Duplex {
    /// A connection over `socket`, with TLS if there is a configuration for it, whose handshake ends before `until`.
    ///
    /// # Errors
    /// If the socket is closed, or TLS cannot be agreed on.
    pub(crate) fn new(
        socket: TcpStream,
        config: Option<&Arc<ServerConfig>>,
        until: Instant,
    ) -> io::Result<Duplex> {
        socket.set_read_timeout(Some(TICK))?;
        let Some(config) = config else {
            socket.set_write_timeout(Some(TICK))?;
            return Ok(Duplex { socket, tls: None });
        };
        let mut tls = ServerConnection::new(Arc::clone(config)).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            match tls.complete_io(&mut &socket) {
                Ok(_) => {}
                Err(e) if is_later(&e) && Instant::now() < until => {}
                Err(e) => return Err(e),
            }
        }
        Ok(Duplex {
            socket,
            tls: Some(Mutex::new(tls)),
        })
    }

    /// Appends what has come to `into`; false if nothing has for a moment.
    ///
    /// # Errors
    /// If the other end has closed the connection.
    pub(super) fn read(&self, into: &mut Vec<u8>) -> io::Result<bool> {
        let Some(tls) = &self.tls else {
            return self.raw(into);
        };
        let mut raw = Vec::new();
        // The handshake may have brought some.
        if drain(&mut tls.lock(), into)? {
            return Ok(true);
        }
        if !self.raw(&mut raw)? {
            return Ok(false);
        }
        let mut rest = &raw[..];
        let mut tls = tls.lock();
        while !rest.is_empty() {
            tls.read_tls(&mut rest)?;
            tls.process_new_packets().map_err(io::Error::other)?;
            drain(&mut tls, into)?;
        }
        Ok(true)
    }

    fn raw(&self, into: &mut Vec<u8>) -> io::Result<bool> {
        let had = into.len();
        into.resize(had + CHUNK, 0);
        let read = (&self.socket).read(&mut into[had..]);
        into.truncate(had + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => Ok(true),
            Err(e) if is_later(&e) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Whether TLS itself has something to say, which [`write`](Duplex::write) sends.
    pub(super) fn has_to_write(&self) -> bool {
        self.tls
            .as_ref()
            .is_some_and(|tls| tls.lock().wants_write())
    }

    /// Writes all of `pieces`. Only one thread does at a time.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn write(&self, mut pieces: &mut [Bytes]) -> io::Result<()> {
        let Some(tls) = &self.tls else {
            while !pieces.is_empty() {
                match self.gather(pieces) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(written) => pieces = advanced(pieces, written),
                    Err(e) if is_later(&e) => {}
                    Err(e) => return Err(e),
                }
            }
            return Ok(());
        };
        // Records are sealed whole, and nobody waits for the socket while TLS is locked.
        let mut plain = Vec::new();
        for piece in pieces {
            plain.extend_from_slice(piece);
            if plain.len() >= CHUNK {
                self.seal(tls, &plain)?;
                plain.clear();
            }
        }
        self.seal(tls, &plain)
    }

    /// Whether there is no TLS.
    pub(super) fn is_plain(&self) -> bool {
        self.tls.is_none()
    }

    /// Writes `pieces` without TLS, as far as the socket takes them without much waiting; returns what is left. Only one
    /// thread does at a time.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn write_some<'p>(
        &self,
        mut pieces: &'p mut [Bytes],
    ) -> io::Result<&'p mut [Bytes]> {
        debug_assert!(self.is_plain());
        let until = Instant::now() + TICK;
        while !pieces.is_empty() && Instant::now() < until {
            match self.gather(pieces) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => pieces = advanced(pieces, written),
                Err(e) if is_later(&e) => break,
                Err(e) => return Err(e),
            }
        }
        Ok(pieces)
    }

    /// Writes the first of `pieces` at once; how many bytes.
    fn gather(&self, pieces: &[Bytes]) -> io::Result<usize> {
        let all: Vec<IoSlice<'_>> = pieces
            .iter()
            .take(PIECES)
            .map(|piece| IoSlice::new(piece))
            .collect();
        (&self.socket).write_vectored(&all)
    }

    fn seal(&self, tls: &Mutex<ServerConnection>, mut plain: &[u8]) -> io::Result<()> {
        let mut sealed = Vec::new();
        loop {
            {
                let mut tls = tls.lock();
                let taken = tls.writer().write(plain)?;
                plain = &plain[taken..];
                while tls.wants_write() {
                    tls.write_tls(&mut sealed)?;
                }
            }
            (&self.socket).write_all(&sealed)?;
            sealed.clear();
            if plain.is_empty() {
                return Ok(());
            }
        }
    }

    /// Ends both directions: whoever reads or writes finds that out at once.
    pub(super) fn shut(&self) {
        let _ = self.socket.shutdown(Shutdown::Both);
    }

    /// Says that nothing more comes, without waiting for anybody.
    pub(super) fn say_goodbye(&self) {
        if let Some(tls) = &self.tls {
            let mut tls = tls.lock();
            tls.send_close_notify();
            let _ = self.socket.set_write_timeout(Some(TICK));
            let _ = tls.write_tls(&mut &self.socket);
        }
        let _ = self.socket.shutdown(Shutdown::Write);
    }
}

/// Takes what TLS has opened; whether there was anything.
fn drain(tls: &mut ServerConnection, into: &mut Vec<u8>) -> io::Result<bool> {
    let had = into.len();
    loop {
        let before = into.len();
        into.resize(before + CHUNK, 0);
        let read = tls.reader().read(&mut into[before..]);
        into.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(_) => {}
            Err(e) if is_later(&e) => return Ok(into.len() > had),
            Err(e) => return Err(e),
        }
    }
}

/// What is left of `pieces` once `written` bytes of them are written.
fn advanced(mut pieces: &mut [Bytes], mut written: usize) -> &mut [Bytes] {
    while let Some(first) = pieces.first_mut() {
        if written < first.len() {
            first.advance(written);
            break;
        }
        written -= first.len();
        pieces = &mut pieces[1..];
    }
    pieces
}
