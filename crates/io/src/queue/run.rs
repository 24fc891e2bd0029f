//! Requests that become one read.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use crate::device::{Alignment, Device};
use crate::error::{Error, Result};
use crate::queue::request::Request;
use crate::room::Aligned;

/// Requests of one device, in the order of their positions, that are read at once.
pub(super) struct Run {
    pub(super) device: Arc<dyn Device>,
    /// The position of the first byte that is read, and that after the last that is wanted.
    start: u64,
    end: u64,
    requests: Vec<Request>,
    /// Where the bytes from `start` on go, piece by piece; the pieces before `first` are full.
    pieces: Vec<libc::iovec>,
    first: usize,
    /// Bytes read so far.
    done: u64,
    /// Bytes between requests.
    gap_bytes: u64,
    /// Where gaps go; if `bounced`, where everything goes.
    scratch: Option<Aligned>,
    /// Whether the bytes are read into `scratch` and copied to the requests afterwards.
    bounced: bool,
    direct: Option<Alignment>,
}

// SAFETY: the pieces point into the rooms of the requests and into `scratch`, which the run owns and
// which may be sent.
unsafe impl Send for Run {}

/// What follows after a part of a run was read.
pub(super) enum Step {
    /// The rest is to be read.
    More,
    /// All is read.
    Whole,
    /// It could not be read.
    Failed(Error),
}

impl Run {
    /// A run of requests for one device, ordered by position, of which there is at least one.
    pub(super) fn new(requests: Vec<Request>) -> Option<Run> {
        let first = requests.first()?;
        let device = first.device.clone();
        let start = first.offset;
        let end = requests.iter().map(Request::end).max()?;
        let file = device.descriptor();
        let direct = file.as_ref().and_then(|file| file.direct);
        // A device that is no file has no vectored reads.
        let whole = file.is_none() && requests.len() > 1;
        let mut run = Run {
            device,
            start,
            end,
            requests,
            pieces: Vec::new(),
            first: 0,
            done: 0,
            gap_bytes: 0,
            scratch: None,
            bounced: false,
            direct,
        };
        run.scatter();
        let unaligned = direct.is_some_and(|alignment| !run.is_aligned(alignment));
        if whole || unaligned {
            run.bounce();
        }
        Some(run)
    }

    /// Lays the pieces out over the rooms of the requests; gaps go to the scratch buffer, each over
    /// the one before.
    fn scatter(&mut self) {
        let (mut position, mut longest) = (self.start, 0);
        for request in &self.requests {
            longest = longest.max(request.offset.saturating_sub(position));
            position = position.max(request.end());
        }
        let mut scratch = (longest > 0).then(|| Aligned::new(longest as usize, 4096));
        let gap = scratch
            .as_mut()
            .map_or(std::ptr::null_mut(), |s| s.as_mut_slice().as_mut_ptr());
        position = self.start;
        for request in &self.requests {
            if request.offset > position {
                let length = request.offset - position;
                self.gap_bytes += length;
                self.pieces.push(piece(gap, length as usize));
                position = request.offset;
            }
            // What an earlier request reads already is copied from there.
            let skipped = (position - request.offset) as usize;
            if skipped < request.len {
                // SAFETY: the room has `len` bytes and `skipped` is less.
                let into = unsafe { request.into.add(skipped) };
                self.pieces.push(piece(into, request.len - skipped));
                position = request.end();
            }
        }
        self.scratch = scratch;
    }

    fn is_aligned(&self, alignment: Alignment) -> bool {
        let memory = alignment.memory.max(1) as usize;
        let offset = u64::from(alignment.offset.max(1));
        self.start.is_multiple_of(offset)
            && self.pieces.iter().all(|piece| {
                (piece.iov_base as usize).is_multiple_of(memory)
                    && (piece.iov_len as u64).is_multiple_of(offset)
            })
    }

    /// Has everything go to one buffer, aligned as the device wants it.
    fn bounce(&mut self) {
        let (memory, offset) = self.direct.map_or((64, 1), |alignment| {
            (
                alignment.memory as usize,
                u64::from(alignment.offset.max(1)),
            )
        });
        self.start -= self.start % offset;
        let length = (self.end - self.start).next_multiple_of(offset) as usize;
        let mut scratch = Aligned::new(length, memory);
        self.pieces = vec![piece(scratch.as_mut_slice().as_mut_ptr(), length)];
        self.scratch = Some(scratch);
        self.bounced = true;
    }

    /// Bytes that reading it asks the device for.
    pub(super) fn bytes(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.iov_len as u64).sum()
    }

    /// Bytes between the requests.
    pub(super) fn gap_bytes(&self) -> u64 {
        self.gap_bytes
    }

    /// The descriptor of the device's file, which the run keeps open.
    pub(super) fn file(&self) -> Option<RawFd> {
        self.device.descriptor().map(|file| file.fd.as_raw_fd())
    }

    /// The position of the next byte to be read.
    pub(super) fn position(&self) -> u64 {
        self.start + self.done
    }

    /// Where the bytes from there on go. Valid until the run is changed or dropped.
    pub(super) fn rest(&self) -> &[libc::iovec] {
        &self.pieces[self.first..]
    }

    /// Whether all goes into registered memory, in one piece.
    pub(super) fn is_registered(&self) -> bool {
        !self.bounced && self.pieces.len() == 1 && self.requests.iter().all(|r| r.registered)
    }

    /// Takes note of what a read of the [`rest`](Run::rest) gave: bytes, or an error.
    pub(super) fn advance(&mut self, got: std::io::Result<usize>) -> Step {
        match got {
            Ok(0) => Step::Failed(self.too_short()),
            Ok(bytes) => {
                self.done += bytes as u64;
                self.skip(bytes);
                let aligned = self.direct.is_none_or(|alignment| {
                    self.done.is_multiple_of(u64::from(alignment.offset.max(1)))
                });
                if self.position() >= self.end {
                    Step::Whole
                } else if aligned {
                    Step::More
                } else {
                    // Direct I/O stops within a sector only where the file ends.
                    Step::Failed(self.too_short())
                }
            }
            Err(error) => match error.raw_os_error() {
                Some(libc::EINTR | libc::EAGAIN) => Step::More,
                _ => Step::Failed(self.failed(error)),
            },
        }
    }

    fn skip(&mut self, mut bytes: usize) {
        while let Some(piece) = self.pieces.get_mut(self.first) {
            if bytes < piece.iov_len {
                // SAFETY: the piece is longer than what is skipped.
                piece.iov_base = unsafe { piece.iov_base.cast::<u8>().add(bytes) }.cast();
                piece.iov_len -= bytes;
                return;
            }
            bytes -= piece.iov_len;
            self.first += 1;
        }
    }

    fn too_short(&self) -> Error {
        // For a run of one request; of several, each is read again for itself.
        let (offset, wanted) = self.asked();
        let got = self.position().saturating_sub(offset);
        Error::ShortRead {
            path: self.device.path().to_owned(),
            offset,
            wanted,
            got: got.min(wanted as u64) as usize,
        }
    }

    fn failed(&self, source: std::io::Error) -> Error {
        let (offset, wanted) = self.asked();
        Error::Read {
            path: self.device.path().to_owned(),
            offset,
            wanted,
            source: Arc::new(source),
        }
    }

    fn asked(&self) -> (u64, usize) {
        let first = self.requests.first().map_or(self.start, |r| r.offset);
        (first, (self.end - first) as usize)
    }

    /// Reads it, on this thread.
    pub(super) fn read(&mut self) -> Result<()> {
        let Some(fd) = self.file() else {
            return self.read_device();
        };
        loop {
            let rest = self.rest();
            let position = self.position() as libc::off_t;
            // SAFETY: the pieces point to memory that the run owns; the device keeps `fd` open.
            let got = unsafe { libc::preadv(fd, rest.as_ptr(), rest.len() as i32, position) };
            let got = usize::try_from(got).map_err(|_| std::io::Error::last_os_error());
            match self.advance(got) {
                Step::More => {}
                Step::Whole => return Ok(()),
                Step::Failed(error) => return Err(error),
            }
        }
    }

    fn read_device(&mut self) -> Result<()> {
        for piece in &self.pieces {
            // SAFETY: initialised memory that the run owns: of a room or of `scratch`. Of a device
            // that is no file there is but one piece.
            let into = unsafe {
                std::slice::from_raw_parts_mut(piece.iov_base.cast::<u8>(), piece.iov_len)
            };
            self.device.read_at(self.start, into)?;
        }
        Ok(())
    }

    /// Answers the requests. Of several that failed together none is answered: they come back, to be
    /// read each for itself.
    pub(super) fn finish(mut self, result: Result<()>) -> Vec<Request> {
        match result {
            Ok(()) => {
                self.copy();
                for request in self.requests {
                    request.answer(Ok(()));
                }
                Vec::new()
            }
            Err(_) if self.requests.len() > 1 => self.requests,
            Err(error) => {
                for request in self.requests {
                    request.answer(Err(error.clone()));
                }
                Vec::new()
            }
        }
    }

    /// Fills what was not read into its place: all that bounced, and what overlaps.
    fn copy(&mut self) {
        if self.bounced {
            let Some(scratch) = &self.scratch else { return };
            for request in &self.requests {
                let from = (request.offset - self.start) as usize;
                let bytes = &scratch.as_slice()[from..from + request.len];
                // SAFETY: the room has `len` bytes and is no part of the scratch buffer.
                unsafe {
                    request
                        .into
                        .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len())
                }
            }
            return;
        }
        let mut position = self.start;
        for (number, request) in self.requests.iter().enumerate() {
            let until = position.min(request.end());
            if request.offset < until {
                self.copy_overlap(number, until);
            }
            position = position.max(request.end());
        }
    }

    /// Fills the bytes of a request before the position `until` from the requests before it, which
    /// are whole.
    fn copy_overlap(&self, number: usize, until: u64) {
        let request = &self.requests[number];
        // The one that ends last began no later than this one: it has all that overlaps.
        let earlier = &self.requests[..number];
        let Some(other) = earlier.iter().find(|other| other.end() >= until) else {
            debug_assert!(false, "an earlier request covers what overlaps");
            return;
        };
        // SAFETY: the range lies within both requests; two rooms have no byte in common.
        unsafe {
            let from = other.into.add((request.offset - other.offset) as usize);
            let length = (until - request.offset) as usize;
            request.into.copy_from_nonoverlapping(from, length);
        }
    }
}

fn piece(start: *mut u8, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: start.cast(),
        iov_len: len,
    }
}
