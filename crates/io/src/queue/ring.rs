//! The backend of io_uring: one ring, fed by one thread.
//!
//! The thread that feeds the ring is the only one that touches it, so the ring needs no lock. It
//! sleeps in the kernel until a read is done or its [`Bell`] rings, which the ring itself watches.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use futures::channel::oneshot;
use io_uring::{IoUring, opcode, squeue, types};

use crate::error::{Error, Result};
use crate::queue::bell::Bell;
use crate::queue::lane::{Counters, Lane, join};
use crate::queue::registered::{Registered, Registration};
use crate::queue::run::{Run, Step};
use crate::queue::settings::Settings;
use crate::queue::window::singles;

/// The longest read that one operation is given, in bytes; the rest follows as after a short read.
const LONGEST: usize = 1 << 30;
/// The number of the operation that listens for the bell; those of reads begin after it.
const BELL: u64 = 0;

/// A ring with its thread.
pub(super) struct Ring {
    pub(super) lane: Arc<Lane>,
    /// How the ring was set up.
    pub(super) flags: &'static str,
    thread: Option<JoinHandle<()>>,
}

impl Ring {
    /// Sets up a ring and starts its thread.
    ///
    /// # Errors
    /// [`Error::Uring`] where the system refuses.
    pub(super) fn start(settings: Settings, counters: &Arc<Counters>) -> Result<Ring> {
        let refused = |source: std::io::Error| Error::Uring {
            why: explain(&source),
        };
        let bell = Bell::new().map_err(refused)?;
        let lane = Arc::new(Lane::new(settings, counters, Some(bell)));
        let (tell, told) = std::sync::mpsc::sync_channel(1);
        let served = lane.clone();
        // A ring that has a single issuer belongs to the thread that made it.
        let thread = std::thread::Builder::new()
            .name("io-ring".to_owned())
            .spawn(move || match set_up(served.settings.depth) {
                Ok((ring, flags)) => {
                    let _ = tell.send(Ok(flags));
                    Feeder::new(ring, served).serve();
                }
                Err(error) => drop(tell.send(Err(error))),
            })
            .map_err(|error| Error::Threads {
                why: format!("cannot start the thread of the ring: {error}"),
            })?;
        let gone = || std::io::Error::other("its thread ended");
        match told.recv().unwrap_or_else(|_| Err(gone())) {
            Ok(flags) => Ok(Ring {
                lane,
                flags,
                thread: Some(thread),
            }),
            Err(error) => {
                join(thread);
                Err(refused(error))
            }
        }
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        self.lane.end();
        if let Some(thread) = self.thread.take() {
            join(thread);
        }
    }
}

/// Why there is no ring, and what to do.
fn explain(error: &std::io::Error) -> String {
    let hint = match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel, or the emulator it runs under, has none",
        Some(libc::EPERM | libc::EACCES) => {
            "a container's seccomp profile or the sysctl kernel.io_uring_disabled forbids it"
        }
        Some(libc::ENOMEM) => "the limit of locked memory (ulimit -l) is too low",
        _ => return error.to_string(),
    };
    format!("{error}: {hint}")
}

/// Makes a ring, with the newest settings that the kernel takes: each step down the ladder is one
/// for older kernels.
fn set_up(depth: u32) -> std::io::Result<(IoUring, &'static str)> {
    // One more for the bell.
    let entries = (depth + 1).next_power_of_two();
    let steps = [
        (true, true, "deferred task work, single issuer"),
        (true, false, "single issuer, cooperative task work"),
        (false, false, "cooperative task work"),
    ];
    for (single, deferred, flags) in steps {
        let mut builder = IoUring::builder();
        if single {
            builder.setup_single_issuer();
        }
        if deferred {
            builder.setup_defer_taskrun();
        } else {
            builder.setup_coop_taskrun();
        }
        match builder.build(entries) {
            Ok(ring) => return Ok((ring, flags)),
            Err(error) if error.raw_os_error() == Some(libc::EINVAL) => {}
            Err(error) => return Err(error),
        }
    }
    IoUring::new(entries).map(|ring| (ring, "no flags"))
}

/// What the thread of a ring has.
struct Feeder {
    ring: IoUring,
    lane: Arc<Lane>,
    /// Reads to be begun.
    ready: VecDeque<Run>,
    /// Reads under way, by the number of their operation. A number is never used again, so a late
    /// completion is not taken for that of another.
    flights: HashMap<u64, Box<Run>>,
    next: u64,
    /// Where the bell's count goes; its place is fixed while `listens`.
    heard: Box<u64>,
    listens: bool,
    registered: Registered,
}

impl Feeder {
    fn new(ring: IoUring, lane: Arc<Lane>) -> Feeder {
        Feeder {
            ring,
            lane,
            ready: VecDeque::new(),
            flights: HashMap::new(),
            next: BELL + 1,
            heard: Box::new(0),
            listens: false,
            registered: Registered::default(),
        }
    }

    fn serve(mut self) {
        while self.take() {
            self.begin();
            self.wait();
        }
        // The kernel still writes into the memory of what is under way.
        while !self.flights.is_empty() {
            self.wait();
        }
        if self.listens {
            if let Some(bell) = &self.lane.bell {
                bell.ring();
            }
            while self.listens {
                self.wait();
            }
        }
        let mut waiting = self.lane.waiting.lock();
        let left = std::mem::take(&mut waiting.requests);
        drop(waiting);
        // As at the end of a thread: not under the lock.
        let _ = catch_unwind(AssertUnwindSafe(|| drop((left, self.ready))));
    }

    /// Takes requests while the ring has room for them; false when the queue has ended.
    fn take(&mut self) -> bool {
        let depth = self.lane.settings.depth as usize;
        loop {
            let full = self.flights.len() + self.ready.len() >= depth;
            let mut waiting = self.lane.waiting.lock();
            if waiting.ends {
                return false;
            }
            let registration = waiting.registration.take();
            let taken = if full {
                Vec::new()
            } else {
                waiting.take(self.lane.settings.window)
            };
            let idle = taken.is_empty() && registration.is_none();
            // When the ring is full, reads that end wake it, and then it looks again.
            waiting.asleep = idle && !full;
            drop(waiting);
            if let Some(registration) = registration {
                self.register(registration);
            }
            if idle {
                return true;
            }
            let (lane, ready) = (&self.lane, &mut self.ready);
            // A device that panics while it is asked for its descriptor fails its window only.
            let _ = catch_unwind(AssertUnwindSafe(|| lane.plan(taken, ready)));
        }
    }

    fn register(&mut self, registration: Registration) {
        let Registration { memory, answer } = registration;
        let result = self.registered.set(&self.ring.submitter(), memory);
        let _ = answer.send(result);
    }

    /// Puts reads into the ring as far as it has room.
    fn begin(&mut self) {
        if !self.listens
            && let Some(bell) = &self.lane.bell
        {
            let into = (&raw mut *self.heard).cast();
            let fd = types::Fd(bell.fd());
            let entry = opcode::Read::new(fd, into, 8).build().user_data(BELL);
            // SAFETY: `heard` stays in its box until the read is done (`serve`).
            self.listens = unsafe { self.ring.submission().push(&entry) }.is_ok();
        }
        while self.flights.len() < self.lane.settings.depth as usize
            && let Some(run) = self.ready.pop_front()
        {
            self.lane.counters.issued(&run);
            if let Some(run) = self.push(Box::new(run)) {
                self.end(
                    *run,
                    Err(Error::Threads {
                        why: "the ring is full".to_owned(),
                    }),
                );
            }
        }
    }

    /// Puts what is left of a run into the ring, or gives it back where that has no room.
    fn push(&mut self, run: Box<Run>) -> Option<Box<Run>> {
        let number = self.next;
        let Some(entry) = self.entry(&run) else {
            return Some(run);
        };
        // SAFETY: what the entry points to is the run's, which stays in its box, unchanged, until
        // the completion of this number; the run keeps the file open, too.
        let pushed = unsafe { self.ring.submission().push(&entry.user_data(number)) };
        if pushed.is_err() {
            return Some(run);
        }
        self.next += 1;
        self.flights.insert(number, run);
        None
    }

    fn entry(&self, run: &Run) -> Option<squeue::Entry> {
        let fd = types::Fd(run.file()?);
        let (position, rest) = (run.position(), run.rest());
        let [one] = rest else {
            let pieces = rest.len() as u32;
            let entry = opcode::Readv::new(fd, rest.as_ptr(), pieces);
            return Some(entry.offset(position).build());
        };
        let start = one.iov_base.cast::<u8>();
        let length = one.iov_len.min(LONGEST);
        if run.is_registered()
            && let Some(buffer) = self.registered.find(start, length)
        {
            let counter = &self.lane.counters.registered;
            counter.fetch_add(1, Ordering::Relaxed);
            let entry = opcode::ReadFixed::new(fd, start, length as u32, buffer);
            return Some(entry.offset(position).build());
        }
        let entry = opcode::Read::new(fd, start, length as u32);
        Some(entry.offset(position).build())
    }

    /// Hands over what is in the ring, waits until something is done, and answers.
    fn wait(&mut self) {
        if let Err(error) = self.ring.submit_and_wait(1) {
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                // Short of memory, or of room for completions: those that are there make some. What
                // is under way cannot be given up, so there is nothing but to try again.
                _ => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        let done: Vec<_> = self
            .ring
            .completion()
            .map(|entry| (entry.user_data(), entry.result()))
            .collect();
        for (number, result) in done {
            if number == BELL {
                self.listens = false;
                continue;
            }
            if let Some(run) = self.flights.remove(&number) {
                self.completed(run, result);
            }
        }
    }

    fn completed(&mut self, mut run: Box<Run>, result: i32) {
        let got = usize::try_from(result);
        let got = got.map_err(|_| std::io::Error::from_raw_os_error(-result));
        match run.advance(got) {
            Step::Whole => self.end(*run, Ok(())),
            Step::Failed(error) => self.end(*run, Err(error)),
            // The number of reads under way is as before, so there is room.
            Step::More => {
                if let Some(run) = self.push(run) {
                    self.end(
                        *run,
                        Err(Error::Threads {
                            why: "the ring is full".to_owned(),
                        }),
                    );
                }
            }
        }
    }

    fn end(&mut self, run: Run, result: Result<()>) {
        let ready = &mut self.ready;
        // Answering wakes tasks, which may run what it likes.
        let _ = catch_unwind(AssertUnwindSafe(|| singles(run.finish(result), ready)));
    }
}

/// Has the ring of this lane register memory; see [`Queue::register`](crate::Queue::register).
pub(super) fn register(lane: &Lane, memory: Vec<(usize, usize)>) -> Result<()> {
    let (answer, told) = oneshot::channel();
    let mut waiting = lane.waiting.lock();
    waiting.registration = Some(Registration { memory, answer });
    waiting.asleep = false;
    drop(waiting);
    if let Some(bell) = &lane.bell {
        bell.ring();
    }
    let gone = || Error::Threads {
        why: "the ring was shut down".to_owned(),
    };
    futures::executor::block_on(told).unwrap_or_else(|_| Err(gone()))
}
