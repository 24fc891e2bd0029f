//! The worker threads.

use std::cell::OnceCell;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::seats::Seats;
use crate::width::Gate;
use crate::{Error, JoinHandle, Layout, MAX_THREADS, Place, Result, pin};

/// Address space for a worker's stack; memory is taken as it is touched. Plans of deep queries
/// are walked recursively.
const STACK_BYTES: usize = 8 << 20;

/// How long to wait for the threads to start, and to end.
const START: Duration = Duration::from_secs(10);
const STOP: Duration = Duration::from_secs(10);

/// Which worker the calling code is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    /// Index of the worker, below the number of threads.
    pub worker: usize,
    /// Index of its node.
    pub node: usize,
}

thread_local! {
    static HERE: OnceCell<(usize, Arc<Seats>)> = const { OnceCell::new() };
}

/// The worker and node the calling code is on; `None` on threads that are not workers. Cheap.
/// A task may be elsewhere after each `await`, and a worker on another node after
/// [`Workers::place`].
pub fn here() -> Option<Here> {
    let here = HERE.try_with(|here| {
        let (worker, seats) = here.get()?;
        Some(Here {
            worker: *worker,
            node: seats.node(*worker),
        })
    });
    here.ok().flatten()
}

/// The threads as they start. The runtime starts its workers first, and starts nothing else
/// before `new` returns, so that the first `threads` to arrive are the workers.
#[derive(Debug, Default)]
struct Roll {
    arrived: usize,
    refused: Option<String>,
}

#[derive(Debug)]
struct Start {
    roll: Mutex<Roll>,
    all: Condvar,
    seats: Arc<Seats>,
}

impl Start {
    /// Runs at the start of every thread of the runtime.
    fn thread(&self, layout: &Layout) {
        let mut roll = self.roll.lock();
        let worker = roll.arrived;
        roll.arrived += 1;
        let place = layout.places().get(worker);
        let bound = match place {
            Some(place) if layout.pin() => pin::bind(&[place.cpu]),
            // A thread for blocking calls inherits the mask of the worker that caused it.
            None if layout.pin() => pin::bind(layout.cpus()),
            _ => Ok(()),
        };
        if let Some(place) = place {
            self.seats.arrived(worker);
            // Nobody else sets it on this thread, which has just started.
            let _ = HERE.with(|here| here.set((worker, self.seats.clone())));
            if let Err(error) = bound {
                roll.refused.get_or_insert_with(|| {
                    format!("worker {worker} is not bound to cpu {}: {error}", place.cpu)
                });
            }
        }
        drop(roll);
        self.all.notify_all();
    }

    /// Waits for `threads` of them.
    fn wait(&self, threads: usize) -> io::Result<()> {
        let deadline = Instant::now() + START;
        let mut roll = self.roll.lock();
        while roll.arrived < threads {
            if self.all.wait_until(&mut roll, deadline).timed_out() {
                let why = format!("only {} of {threads} started", roll.arrived);
                return Err(io::Error::new(io::ErrorKind::TimedOut, why));
            }
        }
        Ok(())
    }
}

/// A set of worker threads, pinned to the cpus of a [`Layout`], and the runtime on them.
///
/// Everything that computes runs here: tasks given to [`spawn`](Workers::spawn) and
/// [`block_on`](Workers::block_on), and whatever they spawn through tokio. Tasks must not block
/// their thread in a system call that another task's progress needs, and must not call
/// `tokio::task::block_in_place`, which would move the worker to a thread that is not pinned.
///
/// Dropped, it waits (up to 10 seconds, and not on a worker) until running tasks suspend; tasks
/// that have not finished are cancelled.
#[derive(Debug)]
pub struct Workers {
    layout: Layout,
    gate: Arc<Gate>,
    start: Arc<Start>,
    handle: Handle,
    /// `None` only while dropping.
    runtime: Option<Runtime>,
    /// `None` where there is only one thread, whose width cannot change, and while dropping.
    control: Option<thread::JoinHandle<()>>,
    /// Those of single nodes, once somebody asked for them.
    instances: Mutex<Option<Instances>>,
}

type Instances = Arc<[Arc<Workers>]>;

impl Workers {
    /// Starts the threads of `layout`; the width is their number. Where the system refuses to
    /// bind them they run unbound, and [`notes`](Workers::notes) says so.
    ///
    /// # Errors
    ///
    /// [`Error::Threads`] for a number of threads outside 1 to [`MAX_THREADS`],
    /// [`Error::Start`] where the system does not give the threads.
    pub fn new(layout: Layout) -> Result<Arc<Workers>> {
        let threads = layout.threads();
        if threads == 0 || threads > MAX_THREADS {
            return Err(Error::Threads { threads });
        }
        let failed = |source| Error::Start { source };
        let seats = Arc::new(Seats::new(&layout));
        let gate = Gate::new(threads, seats.clone()).map_err(failed)?;
        let start = Arc::new(Start {
            roll: Mutex::default(),
            all: Condvar::new(),
            seats,
        });
        let runtime = runtime(&layout, &start).map_err(failed)?;
        if let Err(error) = start.wait(threads) {
            runtime.shutdown_background();
            return Err(failed(error));
        }
        let mut workers = Workers {
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
            control: None,
            layout,
            gate,
            start,
            instances: Mutex::new(None),
        };
        if threads > 1 {
            let (gate, handle) = (workers.gate.clone(), workers.handle.clone());
            let control = thread::Builder::new().name("atoll-width".into());
            let control = control.spawn(move || gate.control(&handle));
            workers.control = Some(control.map_err(failed)?);
        }
        Ok(Arc::new(workers))
    }

    /// Runs a task on the workers.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        JoinHandle::new(self.handle.spawn(future))
    }

    /// Runs a task on the workers (not on the calling thread, which would be one more than the
    /// width) and blocks the caller, which must not be a worker, until it is done.
    ///
    /// # Panics
    ///
    /// When the task panics, with its panic; when called from a task.
    pub fn block_on<F>(&self, future: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        match self.handle.block_on(self.handle.spawn(future)) {
            Ok(output) => output,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The handle is not given away, and shutting down needs the last reference.
                Err(error) => unreachable!("nobody can cancel this task: {error}"),
            },
        }
    }

    /// The runtime on these threads, for code that spawns by itself.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// How many workers may run, as set last.
    pub fn width(&self) -> usize {
        self.gate.width()
    }

    /// How many workers are in service now: [`width`](Workers::width), once the last change has
    /// taken effect.
    pub fn running(&self) -> usize {
        self.gate.running()
    }

    /// Changes how many workers may run, 1 to the number of threads. May be called from
    /// anywhere, a task included, in mid-query, and as often as wanted.
    ///
    /// A higher width takes effect at once, a lower one as running tasks suspend (the engine's
    /// do every few milliseconds): until then [`running`](Workers::running) is higher. Which
    /// workers are taken out of service is not specified; each stays on its cpu.
    ///
    /// # Errors
    ///
    /// [`Error::Width`] for a width out of range; nothing changes then.
    pub fn set_width(&self, width: usize) -> Result<()> {
        let threads = self.layout.threads();
        if width == 0 || width > threads {
            return Err(Error::Width { width, threads });
        }
        self.gate.set(width, None);
        Ok(())
    }

    /// Changes how many workers may run, as [`set_width`](Workers::set_width) does, and where: one
    /// at each of these places. Workers that are at one of them already stay there; the others
    /// move, with the task they run, as soon as as many as are too many have been taken out of
    /// service. `set_width` gives each worker its own place of the layout back.
    ///
    /// Where workers are not pinned, or the system refuses, only nodes change as
    /// [`here`] tells them. Threads of [`instances`](Workers::instances) do not move.
    ///
    /// # Errors
    ///
    /// [`Error::Width`] for no place, or more than there are threads; nothing changes then.
    pub fn place(&self, places: &[Place]) -> Result<()> {
        let (width, threads) = (places.len(), self.layout.threads());
        if width == 0 || width > threads {
            return Err(Error::Width { width, threads });
        }
        self.gate.set(width, Some(places.to_vec()));
        Ok(())
    }

    /// The places of the workers that may run, as set last.
    pub fn places(&self) -> Vec<Place> {
        self.gate.places(&self.layout)
    }

    /// The operating system's numbers of the workers' threads, those of
    /// [`instances`](Workers::instances) that have started included.
    pub fn thread_ids(&self) -> Vec<u32> {
        let mut all = self.start.seats.thread_ids();
        let instances = self.instances.lock().clone();
        for instance in instances.iter().flat_map(|all| all.iter()) {
            all.extend(instance.start.seats.thread_ids());
        }
        all
    }

    /// Workers for each node by itself, lowest node first; nodes without any are left out. They are threads of their
    /// own on the same cpus, so that a task stays on its node, and asleep while they have no task. They start when this
    /// is first called and end with these workers. Each call gives them their nodes' shares of the present
    /// [`places`](Workers::places), one at least.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] where the system does not give the threads.
    pub fn instances(&self) -> Result<Arc<[Arc<Workers>]>> {
        let mut instances = self.instances.lock();
        let all = match &*instances {
            Some(all) => all.clone(),
            None => {
                let layouts = (0..self.nodes()).map(|node| self.layout.on(node));
                let able = layouts.filter(|layout| layout.threads() > 0);
                instances.insert(start_all(able.collect())?).clone()
            }
        };
        let places = self.places();
        for instance in &*all {
            let node = instance.layout.places()[0].node;
            let share = places.iter().filter(|place| place.node == node).count();
            let share = share.clamp(1, instance.threads());
            if instance.width() != share {
                instance.gate.set(share, None);
            }
        }
        Ok(all)
    }

    /// Number of nodes, those without workers included.
    pub fn nodes(&self) -> usize {
        self.layout.nodes()
    }

    /// Number of worker threads: the largest width.
    pub fn threads(&self) -> usize {
        self.layout.threads()
    }

    /// Where the workers are.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What the system refused, one line each; usually empty.
    pub fn notes(&self) -> Vec<String> {
        self.start.roll.lock().refused.iter().cloned().collect()
    }
}

/// Starts workers for each layout, from a thread that is no worker: on one, runtimes refuse to be built.
fn start_all(layouts: Vec<Layout>) -> Result<Instances> {
    let starting = thread::Builder::new().spawn(|| layouts.into_iter().map(Workers::new).collect());
    let started = starting.map_err(|source| Error::Start { source })?.join();
    started.unwrap_or_else(|_| {
        let source = io::Error::other("starting them panicked");
        Err(Error::Start { source })
    })
}

/// Starts the runtime and its threads, which report to `start`.
fn runtime(layout: &Layout, start: &Arc<Start>) -> io::Result<Runtime> {
    let (layout, start, threads) = (layout.clone(), start.clone(), layout.threads());
    let build = move || {
        Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("atoll-worker")
            .thread_stack_size(STACK_BYTES)
            .enable_time()
            .on_thread_start(move || start.thread(&layout))
            .build()
    };
    // Where the system refuses the first thread, tokio panics.
    std::panic::catch_unwind(AssertUnwindSafe(build))
        .unwrap_or_else(|_| Err(io::Error::other("the system refused the first thread")))
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.gate.close();
        if let Some(control) = self.control.take() {
            // It ends at once; its panic, if any, has been reported by itself.
            let _ = control.join();
        }
        if let Some(runtime) = self.runtime.take() {
            if Handle::try_current().is_ok() {
                // A task, which cannot wait for itself, held the last reference.
                runtime.shutdown_background();
            } else {
                runtime.shutdown_timeout(STOP);
            }
        }
    }
}
