//! Asynchronous reads for tasks, which must not block: requests that wait are ordered, coalesced,
//! and handed to a ring of io_uring or to a few threads.

mod bell;
mod gather;
mod lane;
mod registered;
mod request;
mod ring;
mod run;
mod settings;
mod window;

use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

use crate::device::Device;
use crate::error::{Error, Result};
use crate::room::Room;

use lane::{Counters, Lane, Threads};
use request::Request;
use ring::Ring;

pub use lane::Statistics;
pub use request::{Filling, Reading};
pub use settings::{Backend, Settings};

/// A queue of reads, and what serves it.
///
/// Requests for the same device that wait at the same moment and touch, overlap, or lie no further
/// apart than [`Settings::gap`] become one read of the device, of at most [`Settings::longest`]
/// bytes; a file is read straight into the memory of each. The queue has no bound of its own: whoever
/// asks provides the memory, so the pool's frames bound it.
///
/// Dropping the queue serves what is waiting no more (its futures report [`Error::Threads`]) and
/// returns when what is under way is done. Whoever waits for a read is woken on an I/O thread, so the
/// last handle may be dropped on one: that thread then ends by itself, soon after.
pub struct Queue {
    settings: Settings,
    counters: Arc<Counters>,
    ring: Option<Ring>,
    /// For all devices, or beside a ring for those that are no files, started when one is read.
    threads: OnceLock<Result<Threads>>,
    refused: Option<Error>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("settings", &self.settings)
            .field("backend", &self.backend())
            .finish_non_exhaustive()
    }
}

/// What serves a queue: [`Queue::backend`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// [`Backend::Uring`] or [`Backend::Threads`].
    pub backend: Backend,
    /// How the ring is set up; or why there is none, if one was wanted.
    pub detail: Option<String>,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.backend {
            Backend::Uring => "io_uring",
            Backend::Threads | Backend::Auto => "threads",
        })?;
        match &self.detail {
            Some(detail) => write!(f, " ({detail})"),
            None => Ok(()),
        }
    }
}

impl Queue {
    /// A queue that is served by `threads` threads (at least one).
    ///
    /// # Errors
    /// [`Error::Threads`] where the system refuses one.
    pub fn new(threads: usize) -> Result<Queue> {
        Queue::with(Settings {
            backend: Backend::Threads,
            threads,
            ..Settings::default()
        })
    }

    /// A queue as the settings say.
    ///
    /// # Errors
    /// [`Error::Threads`] where the system refuses a thread; [`Error::Uring`] where it refuses a ring
    /// that was asked for by name.
    pub fn with(settings: Settings) -> Result<Queue> {
        let settings = settings.sane();
        let mut queue = Queue {
            settings,
            counters: Arc::default(),
            ring: None,
            threads: OnceLock::new(),
            refused: None,
        };
        match settings.backend {
            Backend::Threads => {}
            Backend::Uring => queue.ring = Some(Ring::start(settings, &queue.counters)?),
            Backend::Auto => match Ring::start(settings, &queue.counters) {
                Ok(ring) => queue.ring = Some(ring),
                Err(error) => queue.refused = Some(error),
            },
        }
        if queue.ring.is_none() {
            queue.threads()?;
        }
        Ok(queue)
    }

    fn threads(&self) -> Result<&Arc<Lane>> {
        let threads = self
            .threads
            .get_or_init(|| Threads::start(self.settings, &self.counters));
        threads
            .as_ref()
            .map(|threads| &threads.lane)
            .map_err(Error::clone)
    }

    fn lane(&self, device: &dyn Device) -> Result<&Arc<Lane>> {
        match &self.ring {
            Some(ring) if device.descriptor().is_some() => Ok(&ring.lane),
            _ => self.threads(),
        }
    }

    /// What serves the reads of files, and why no ring does if one was wanted.
    ///
    /// ```
    /// let queue = io::Queue::with(io::Settings::default())?;
    /// // "io_uring (deferred task work, single issuer)", or "threads (io_uring: ...)".
    /// println!("reads are served by {}", queue.backend());
    /// # Ok::<(), io::Error>(())
    /// ```
    pub fn backend(&self) -> Chosen {
        match &self.ring {
            Some(ring) => Chosen {
                backend: Backend::Uring,
                detail: Some(ring.flags.to_owned()),
            },
            None => Chosen {
                backend: Backend::Threads,
                detail: self.refused.as_ref().map(Error::to_string),
            },
        }
    }

    /// The settings, each number moved to where it may be.
    pub fn settings(&self) -> Settings {
        self.settings
    }

    /// Reads `len` bytes at `offset`. The request waits from this call on, not only from the first
    /// poll, so that requests made one after the other and awaited together can be coalesced.
    /// Dropping the future takes the request back if it was not yet begun.
    ///
    /// # Errors
    /// As [`fill`](Queue::fill).
    pub fn read(&self, device: &Arc<dyn Device>, offset: u64, len: usize) -> Reading {
        // What cannot be read is not worth its memory.
        let end = offset.checked_add(len as u64);
        if end.is_none_or(|end| i64::try_from(end).is_err()) {
            return Reading(Filling::refused(Error::ShortRead {
                path: device.path().to_owned(),
                offset,
                wanted: len,
                got: 0,
            }));
        }
        Reading(self.fill(device, offset, len, vec![0; len]))
    }

    /// Reads `len` bytes at `offset` into the beginning of `room`, which comes back with them. What
    /// is said of [`read`](Queue::read) holds here, too.
    ///
    /// # Errors
    /// [`Error::Room`] for a room that is shorter. [`Error::ShortRead`] where the device ends before,
    /// [`Error::Read`] for what the operating system reports, and those of [`Device::read_at`]; all
    /// for this request's own bytes: a failure of a coalesced read is followed by reading each
    /// request for itself. [`Error::Threads`] after the end. The room is dropped then.
    pub fn fill<R: Room>(
        &self,
        device: &Arc<dyn Device>,
        offset: u64,
        len: usize,
        room: R,
    ) -> Filling<R> {
        self.counters.requests.fetch_add(1, Ordering::Relaxed);
        self.counters
            .requested_bytes
            .fetch_add(len as u64, Ordering::Relaxed);
        let lane = match self.lane(&**device) {
            Ok(lane) => lane,
            Err(error) => return Filling::refused(error),
        };
        match Request::new(device, offset, len, room) {
            Ok((request, filling)) => {
                gather::add(lane, request);
                filling
            }
            Err(filling) => filling,
        }
    }

    /// Runs `ask`; the requests that it makes on this thread are handed over together when it
    /// returns: one batch, of which neighbours are surely coalesced, and one wake-up.
    pub fn together<T>(&self, ask: impl FnOnce() -> T) -> T {
        gather::together(ask)
    }

    /// Has the kernel map memory once, instead of at each read into it: each entry is a start and a
    /// length in bytes. What was registered before is not any more. Reads into rooms that say that
    /// they [lie there](Room::registered) profit. Registered memory is locked: all of it is resident,
    /// stays on its node, and counts against the limit of locked memory.
    ///
    /// # Errors
    /// [`Error::Unregistered`] where the kernel refuses, or no ring serves the queue; reads go on as
    /// before.
    ///
    /// # Safety
    /// The memory must be mapped and writable, and the caller's; the kernel keeps its pages even if it
    /// is unmapped before other memory is registered.
    pub unsafe fn register(&self, memory: &[(*const u8, usize)]) -> Result<()> {
        let memory: Vec<_> = memory
            .iter()
            .map(|&(start, len)| (start as usize, len))
            .collect();
        match &self.ring {
            Some(ring) => ring::register(&ring.lane, memory),
            None => Err(Error::Unregistered {
                bytes: memory.iter().map(|&(_, len)| len as u64).sum(),
                why: "threads serve the queue, not a ring".to_owned(),
            }),
        }
    }

    /// What was done so far.
    pub fn statistics(&self) -> Statistics {
        self.counters.statistics()
    }
}
