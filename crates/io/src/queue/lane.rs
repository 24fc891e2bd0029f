//! What waits for a backend, and the backend of threads.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

use crate::error::{Error, Result};
use crate::queue::bell::Bell;
use crate::queue::registered::Registration;
use crate::queue::request::Request;
use crate::queue::run::Run;
use crate::queue::settings::Settings;
use crate::queue::window::{runs, singles};

/// The counters of a [`Queue`](crate::Queue) since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Reads asked for.
    pub requests: u64,
    /// Reads done on a device, after coalescing.
    pub reads: u64,
    /// Bytes asked for.
    pub requested_bytes: u64,
    /// Bytes read from devices, gaps included.
    pub read_bytes: u64,
    /// Bytes between requests that were read with them.
    pub gap_bytes: u64,
    /// Requests dropped by their owner before they were served.
    pub cancelled: u64,
    /// Reads into [registered](crate::Queue::register) memory.
    pub registered: u64,
}

/// Where the counters are counted.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    reads: AtomicU64,
    pub(super) requested_bytes: AtomicU64,
    read_bytes: AtomicU64,
    gap_bytes: AtomicU64,
    cancelled: AtomicU64,
    pub(super) registered: AtomicU64,
}

impl Counters {
    pub(super) fn issued(&self, run: &Run) {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.read_bytes.fetch_add(run.bytes(), Ordering::Relaxed);
        self.gap_bytes.fetch_add(run.gap_bytes(), Ordering::Relaxed);
    }

    pub(super) fn statistics(&self) -> Statistics {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Statistics {
            requests: load(&self.requests),
            reads: load(&self.reads),
            requested_bytes: load(&self.requested_bytes),
            read_bytes: load(&self.read_bytes),
            gap_bytes: load(&self.gap_bytes),
            cancelled: load(&self.cancelled),
            registered: load(&self.registered),
        }
    }
}

/// Requests on their way to one backend.
pub(super) struct Lane {
    pub(super) settings: Settings,
    pub(super) counters: Arc<Counters>,
    pub(super) waiting: Mutex<Waiting>,
    /// Tells a thread that something waits or that it shall end.
    changed: Condvar,
    /// Rung instead, where the backend is a ring.
    pub(super) bell: Option<Bell>,
}

#[derive(Default)]
pub(super) struct Waiting {
    /// In the order they came.
    pub(super) requests: VecDeque<Request>,
    /// Reads that were made of some, and are not yet begun.
    runs: VecDeque<Run>,
    /// Whether the ring's thread is to be woken by its bell.
    pub(super) asleep: bool,
    /// What the ring's thread is to register.
    pub(super) registration: Option<Registration>,
    pub(super) ends: bool,
}

impl Waiting {
    /// Takes the oldest requests, at most `most`.
    pub(super) fn take(&mut self, most: usize) -> Vec<Request> {
        let most = most.min(self.requests.len());
        self.requests.drain(..most).collect()
    }
}

/// What a thread does next.
enum Work {
    Read(Box<Run>),
    Plan(Vec<Request>),
}

impl Lane {
    pub(super) fn new(settings: Settings, counters: &Arc<Counters>, bell: Option<Bell>) -> Lane {
        Lane {
            settings,
            counters: counters.clone(),
            waiting: Mutex::default(),
            changed: Condvar::new(),
            bell,
        }
    }

    /// Adds requests, all at once, and wakes who serves them.
    pub(super) fn add(&self, requests: impl IntoIterator<Item = Request>) {
        let mut waiting = self.waiting.lock();
        let before = waiting.requests.len();
        waiting.requests.extend(requests);
        let added = waiting.requests.len() - before;
        let asleep = std::mem::take(&mut waiting.asleep);
        drop(waiting);
        match &self.bell {
            Some(bell) if asleep => bell.ring(),
            Some(_) => {}
            None => (0..added.min(self.settings.threads)).for_each(|_| {
                self.changed.notify_one();
            }),
        }
    }

    /// Has those who serve it end.
    pub(super) fn end(&self) {
        let mut waiting = self.waiting.lock();
        waiting.ends = true;
        waiting.asleep = false;
        drop(waiting);
        match &self.bell {
            Some(bell) => bell.ring(),
            None => drop(self.changed.notify_all()),
        }
    }

    /// Makes reads of requests, and drops those that nobody waits for any more. Not to be called under
    /// the lock: what is dropped may wake others.
    pub(super) fn plan(&self, taken: Vec<Request>, into: &mut VecDeque<Run>) {
        let (gone, wanted): (Vec<_>, Vec<_>) = taken.into_iter().partition(Request::is_gone);
        let counter = &self.counters.cancelled;
        counter.fetch_add(gone.len() as u64, Ordering::Relaxed);
        runs(wanted, &self.settings, into);
    }

    /// What a thread does.
    fn serve(&self) {
        while let Some(work) = self.next() {
            // A device that panics fails its run (whose owners see their answers dropped), not
            // the thread that all others wait for.
            let served = catch_unwind(AssertUnwindSafe(|| match work {
                Work::Read(run) => self.read(*run),
                Work::Plan(requests) => self.share(requests),
            }));
            drop(served);
        }
    }

    /// Waits for something to do; `None` when the queue has ended.
    fn next(&self) -> Option<Work> {
        let mut waiting = self.waiting.lock();
        while !waiting.ends {
            if let Some(run) = waiting.runs.pop_front() {
                return Some(Work::Read(Box::new(run)));
            }
            let window = self.settings.window;
            let taken = waiting.take(window);
            if !taken.is_empty() {
                return Some(Work::Plan(taken));
            }
            self.changed.wait(&mut waiting);
        }
        let left = (
            std::mem::take(&mut waiting.requests),
            std::mem::take(&mut waiting.runs),
        );
        // Dropping the requests wakes their owners, which may run what it likes: not under the
        // lock, and what panics there is not ours to report.
        drop(waiting);
        let _ = catch_unwind(AssertUnwindSafe(|| drop(left)));
        None
    }

    /// Makes reads of requests, does the first, and leaves the rest to all threads.
    fn share(&self, requests: Vec<Request>) {
        let mut planned = VecDeque::new();
        self.plan(requests, &mut planned);
        let Some(first) = planned.pop_front() else {
            return;
        };
        let more = planned.len();
        if more > 0 {
            self.waiting.lock().runs.append(&mut planned);
            (0..more.min(self.settings.threads)).for_each(|_| {
                self.changed.notify_one();
            });
        }
        self.read(first);
    }

    fn read(&self, mut run: Run) {
        self.counters.issued(&run);
        let result = run.read();
        let mut again = VecDeque::new();
        singles(run.finish(result), &mut again);
        for mut run in again {
            self.counters.issued(&run);
            let result = run.read();
            run.finish(result);
        }
    }
}

/// Threads that serve a lane.
pub(super) struct Threads {
    pub(super) lane: Arc<Lane>,
    threads: Vec<JoinHandle<()>>,
}

impl Threads {
    /// Starts the threads.
    pub(super) fn start(settings: Settings, counters: &Arc<Counters>) -> Result<Threads> {
        let mut threads = Threads {
            lane: Arc::new(Lane::new(settings, counters, None)),
            threads: Vec::new(),
        };
        for number in 0..settings.threads {
            let lane = threads.lane.clone();
            let thread = std::thread::Builder::new()
                .name(format!("io-{number}"))
                .spawn(move || lane.serve())
                .map_err(|error| Error::Threads {
                    why: format!("cannot start thread {number}: {error}"),
                })?;
            threads.threads.push(thread);
        }
        Ok(threads)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        self.lane.end();
        self.threads.drain(..).for_each(join);
    }
}

/// Waits for the end of an I/O thread, unless this is it.
pub(super) fn join(thread: JoinHandle<()>) {
    if thread.thread().id() != std::thread::current().id() {
        // What panics in a thread fails its run only, so there is nothing to report.
        let _ = thread.join();
    }
}
