//! Asynchronous reads: I/O threads serve the reads of tasks, which must not block.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::thread::JoinHandle;

use futures::channel::oneshot;
use parking_lot::{Condvar, Mutex};

use crate::device::Device;
use crate::error::{Error, Result};

/// The longest read that coalescing may build, in bytes. A longer single request is served whole.
const LONGEST: usize = 1 << 20;

/// The counters of a [`Queue`] since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Reads asked for.
    pub requests: u64,
    /// Reads done on a device, after coalescing.
    pub reads: u64,
    /// Bytes asked for.
    pub requested_bytes: u64,
    /// Bytes read from devices.
    pub read_bytes: u64,
    /// Requests dropped by their owner before they were served.
    pub cancelled: u64,
}

/// I/O threads that serve reads, and a queue before them.
///
/// Requests for the same device that wait at the same moment and touch, adjoin or overlap become
/// one read of the device, of at most 1 MiB. The queue has no bound of its own: whoever asks
/// provides the memory, so the pool's frames bound it.
///
/// Dropping the queue serves what is waiting no more (its futures report [`Error::Threads`]) and
/// returns when the threads have ended. Whoever waits for a read is woken on an I/O thread, so the
/// last handle may be dropped on one: that thread then ends by itself, soon after.
#[derive(Debug)]
pub struct Queue {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    /// Tells a thread that something waits or that it shall end.
    changed: Condvar,
    requests: AtomicU64,
    reads: AtomicU64,
    requested_bytes: AtomicU64,
    read_bytes: AtomicU64,
    cancelled: AtomicU64,
}

/// Where a request begins, and its number: unique within a device.
type Place = (u64, u64);

#[derive(Debug, Default)]
struct Waiting {
    /// The requests of each device by place, to find neighbours. Keyed by the address of the
    /// device, which the requests keep alive. Invariant: no entry is empty.
    devices: HashMap<usize, BTreeMap<Place, Request>>,
    /// The same requests in the order they came. May hold places that were served already, as
    /// neighbours of another.
    order: VecDeque<(usize, Place)>,
    next: u64,
    ends: bool,
}

#[derive(Debug)]
struct Request {
    device: Arc<dyn Device>,
    len: usize,
    answer: oneshot::Sender<Result<Vec<u8>>>,
}

/// Requests of one device that become one read.
struct Batch {
    start: u64,
    end: u64,
    requests: Vec<(u64, Request)>,
}

/// A read under way; see [`Queue::read`].
#[derive(Debug)]
#[must_use = "the bytes come through this future"]
pub struct Reading {
    answer: std::result::Result<oneshot::Receiver<Result<Vec<u8>>>, Option<Error>>,
}

impl Future for Reading {
    type Output = Result<Vec<u8>>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.answer {
            Ok(receiver) => Pin::new(receiver)
                .poll(context)
                .map(|answer| answer.unwrap_or_else(|_| Err(gone()))),
            Err(error) => Poll::Ready(Err(error.take().unwrap_or_else(gone))),
        }
    }
}

fn gone() -> Error {
    Error::Threads {
        why: "the queue was shut down before the read was served".to_owned(),
    }
}

impl Queue {
    /// Starts `threads` I/O threads (at least one).
    ///
    /// # Errors
    /// [`Error::Threads`] where the system refuses one.
    pub fn new(threads: usize) -> Result<Queue> {
        let mut queue = Queue {
            shared: Arc::default(),
            threads: Vec::new(),
        };
        for number in 0..threads.max(1) {
            let shared = queue.shared.clone();
            let thread = std::thread::Builder::new()
                .name(format!("io-{number}"))
                .spawn(move || shared.serve())
                .map_err(|error| Error::Threads {
                    why: format!("cannot start thread {number}: {error}"),
                })?;
            queue.threads.push(thread);
        }
        Ok(queue)
    }

    /// Reads `len` bytes at `offset`. The request waits from this call on, not only from the first
    /// poll, so that requests made one after the other and awaited together can be coalesced.
    /// Dropping the future takes the request back if it was not yet begun.
    ///
    /// # Errors
    /// Those of [`Device::read_at`], for this request's own bytes: a failure of a coalesced read
    /// is followed by reading each request for itself. [`Error::Threads`] after the end.
    pub fn read(&self, device: &Arc<dyn Device>, offset: u64, len: usize) -> Reading {
        self.shared.requests.fetch_add(1, Ordering::Relaxed);
        self.shared
            .requested_bytes
            .fetch_add(len as u64, Ordering::Relaxed);
        if offset.checked_add(len as u64).is_none() {
            return Reading {
                answer: Err(Some(Error::ShortRead {
                    path: device.path().to_owned(),
                    offset,
                    wanted: len,
                    got: 0,
                })),
            };
        }
        let (sender, receiver) = oneshot::channel();
        let request = Request {
            device: device.clone(),
            len,
            answer: sender,
        };
        self.shared.waiting.lock().add(offset, request);
        self.shared.changed.notify_one();
        Reading {
            answer: Ok(receiver),
        }
    }

    /// What was done so far.
    pub fn statistics(&self) -> Statistics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            requests: load(&self.shared.requests),
            reads: load(&self.shared.reads),
            requested_bytes: load(&self.shared.requested_bytes),
            read_bytes: load(&self.shared.read_bytes),
            cancelled: load(&self.shared.cancelled),
        }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shared.waiting.lock().ends = true;
        self.shared.changed.notify_all();
        let this = std::thread::current().id();
        for thread in self.threads.drain(..) {
            // A thread cannot wait for its own end.
            if thread.thread().id() != this {
                // What panics in a thread fails its batch only, so there is nothing to report.
                let _ = thread.join();
            }
        }
    }
}

impl Waiting {
    fn add(&mut self, offset: u64, request: Request) {
        let key = Arc::as_ptr(&request.device).cast::<()>() as usize;
        let place = (offset, self.next);
        self.next += 1;
        self.order.push_back((key, place));
        self.devices.entry(key).or_default().insert(place, request);
    }

    /// Takes the oldest request and the neighbours that can be read with it.
    fn take(&mut self) -> Option<Batch> {
        while let Some((key, place)) = self.order.pop_front() {
            let Some(device) = self.devices.get_mut(&key) else {
                continue;
            };
            let Some(request) = device.remove(&place) else {
                continue;
            };
            let mut batch = Batch {
                start: place.0,
                end: place.0 + request.len as u64,
                requests: vec![(place.0, request)],
            };
            batch.extend(device);
            if device.is_empty() {
                self.devices.remove(&key);
            }
            return Some(batch);
        }
        None
    }
}

impl Batch {
    fn extend(&mut self, device: &mut BTreeMap<Place, Request>) {
        loop {
            // What begins within or at the end of the batch, first; then what begins before it.
            let after = device.range((self.start, 0)..=(self.end, u64::MAX)).next();
            let before = device.range(..(self.start, 0)).next_back();
            let found = [after, before].into_iter().flatten().find(|(place, r)| {
                let end = place.0 + r.len as u64;
                let length = end.max(self.end) - place.0.min(self.start);
                end >= self.start && length <= LONGEST as u64
            });
            let Some((&place, _)) = found else { return };
            let Some(request) = device.remove(&place) else {
                return;
            };
            self.start = self.start.min(place.0);
            self.end = self.end.max(place.0 + request.len as u64);
            self.requests.push((place.0, request));
        }
    }
}

impl Shared {
    fn serve(&self) {
        while let Some(batch) = self.next() {
            // A device that panics fails its batch (whose owners see their answers dropped), not
            // the thread that all others wait for.
            let served = catch_unwind(AssertUnwindSafe(|| self.read(batch)));
            drop(served);
        }
    }

    /// Waits for something to read; `None` when the queue has ended.
    fn next(&self) -> Option<Batch> {
        let mut waiting = self.waiting.lock();
        while !waiting.ends {
            if let Some(batch) = waiting.take() {
                return Some(batch);
            }
            self.changed.wait(&mut waiting);
        }
        let left = std::mem::take(&mut waiting.devices);
        // Dropping the requests wakes their owners, which may run what it likes: not under the
        // lock, and what panics there is not ours to report.
        drop(waiting);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(left)));
        None
    }

    fn read(&self, mut batch: Batch) {
        let before = batch.requests.len();
        batch.requests.retain(|(_, r)| !r.answer.is_canceled());
        let cancelled = (before - batch.requests.len()) as u64;
        self.cancelled.fetch_add(cancelled, Ordering::Relaxed);
        // Those cancelled may have been the link between others: then read these one by one.
        if cancelled == 0 && batch.requests.len() > 1 && self.read_together(&mut batch) {
            return;
        }
        for (offset, request) in batch.requests {
            let result = self.read_device(&*request.device, offset, request.len);
            // An owner who has gone since does not want to know.
            let _ = request.answer.send(result);
        }
    }

    /// Whether one read could serve the whole batch; if so its owners have their answers.
    fn read_together(&self, batch: &mut Batch) -> bool {
        let Some((_, first)) = batch.requests.first() else {
            return true;
        };
        let len = (batch.end - batch.start) as usize;
        let Ok(bytes) = self.read_device(&*first.device, batch.start, len) else {
            return false;
        };
        for (offset, request) in batch.requests.drain(..) {
            let from = (offset - batch.start) as usize;
            let _ = request
                .answer
                .send(Ok(bytes[from..from + request.len].to_vec()));
        }
        true
    }

    fn read_device(&self, device: &dyn Device, offset: u64, len: usize) -> Result<Vec<u8>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(len as u64, Ordering::Relaxed);
        let mut bytes = vec![0; len];
        device.read_at(offset, &mut bytes)?;
        Ok(bytes)
    }
}
