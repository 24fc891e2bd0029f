//! Worker threads.

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::{Builder, Handle, Runtime};

use crate::assignment::Assignment;
use crate::error::{Error, Result};
use crate::layout::{Layout, MAX_THREADS, Place};
use crate::task::JoinHandle;
use crate::width::Gate;
use crate::{here, pin};

/// Address space of a worker's stack (memory is taken when it is touched). Plans of deep queries are walked
/// recursively.
const STACK_BYTES: usize = 8 << 20;

/// How long to wait for the threads to start, and to end.
const START: Duration = Duration::from_secs(10);
const STOP: Duration = Duration::from_secs(10);

thread_local! {
    /// Whether this thread is known to run a worker.
    static WORKS: Cell<bool> = const { Cell::new(false) };
}

/// The threads that have started so far. The runtime starts its workers first, and no other thread before
/// [`Workers::new`] returns, so the first `threads` arrivals are the workers.
#[derive(Debug, Default)]
struct Started {
    count: usize,
    /// Those that have taken up a worker's work. Until they all have, a thread for a blocking call, which starts later, could
    /// take it in place of one of them: a worker that is not pinned, and has no number.
    working: usize,
    refused: Option<String>,
}

#[derive(Debug)]
struct Start {
    started: Mutex<Started>,
    all: Condvar,
    assignment: Arc<Assignment>,
    /// How long a worker takes from when it has found nothing to do until it sleeps: a system that is busy takes the cpu away
    /// there.
    #[cfg(test)]
    drowsy: Mutex<Duration>,
}

impl Start {
    /// The first thing each thread of the runtime runs: counts it, pins it, and tells a worker its number.
    fn thread(&self, layout: &Layout) {
        let mut started = self.started.lock();
        let worker = started.count;
        started.count += 1;
        let place = layout.places().get(worker);
        let bound = match place {
            Some(place) if layout.pin() => pin::bind(&[place.cpu]),
            // A thread for blocking calls inherits the cpu mask of the worker that started it.
            None if layout.pin() => pin::bind(layout.cpus()),
            _ => Ok(()),
        };
        if let Some(place) = place {
            self.assignment.register(worker);
            here::enter(worker, self.assignment.clone());
            if let Err(error) = bound {
                started.refused.get_or_insert_with(|| {
                    format!("worker {worker} is not bound to cpu {}: {error}", place.cpu)
                });
            }
        }
        drop(started);
        self.all.notify_all();
    }

    /// What a worker runs whenever it has nothing to do, as each has at first.
    fn parks(&self) {
        if !WORKS.replace(true) {
            self.started.lock().working += 1;
            self.all.notify_all();
        }
        #[cfg(test)]
        thread::sleep(*self.drowsy.lock());
    }

    /// Waits until `threads` threads have started, and are the workers.
    fn wait(&self, threads: usize) -> io::Result<()> {
        let deadline = Instant::now() + START;
        let mut started = self.started.lock();
        while started.working < threads {
            if self.all.wait_until(&mut started, deadline).timed_out() {
                let why = format!("only {} of {threads} started", started.working);
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
    /// Sets of workers for single nodes, once they were asked for.
    instances: Mutex<Option<Instances>>,
}

type Instances = Arc<[Arc<Workers>]>;

impl Workers {
    /// Starts the threads of `layout`; the width is their number. If the system refuses to pin them, they run
    /// unpinned, and [`notes`](Workers::notes) says so.
    ///
    /// # Errors
    ///
    /// [`Error::Threads`] if the number of threads is not within 1 to [`MAX_THREADS`]; [`Error::Start`] if the
    /// system does not give the threads.
    pub fn new(layout: Layout) -> Result<Arc<Workers>> {
        let threads = layout.threads();
        if threads == 0 || threads > MAX_THREADS {
            return Err(Error::Threads { threads });
        }
        let failed = |source| Error::Start { source };
        let assignment = Arc::new(Assignment::new(&layout));
        let gate = Gate::new(threads, assignment.clone()).map_err(failed)?;
        let start = Arc::new(Start {
            started: Mutex::default(),
            all: Condvar::new(),
            assignment,
            #[cfg(test)]
            drowsy: Mutex::default(),
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

    /// Spawns a task on the workers.
    pub fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        JoinHandle::new(self.handle.spawn(future))
    }

    /// Runs a task on the workers and blocks the caller until it is done. The caller must not be a worker. The task
    /// does not run on the calling thread, which would be one more than the width.
    ///
    /// # Panics
    ///
    /// If the task panics, with its panic; if called from a task.
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

    /// The handle of the runtime, for code that spawns its own tasks.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }

    /// The number of workers that may run, as last set.
    pub fn width(&self) -> usize {
        self.gate.width()
    }

    /// The number of workers in service now: the [`width`](Workers::width), once the last change has taken effect.
    pub fn running(&self) -> usize {
        self.gate.running()
    }

    /// Changes the number of workers that may run, 1 to the number of threads. May be called from anywhere,
    /// including tasks, during queries, and as often as wanted.
    ///
    /// A higher width takes effect at once, a lower one as running tasks suspend (tasks of the engine do every few
    /// milliseconds); until then [`running`](Workers::running) is higher. Which workers are taken out of service is
    /// not specified. Each worker stays on its cpu.
    ///
    /// # Errors
    ///
    /// [`Error::Width`] if the width is out of range; then nothing changes.
    pub fn set_width(&self, width: usize) -> Result<()> {
        let threads = self.layout.threads();
        if width == 0 || width > threads {
            return Err(Error::Width { width, threads });
        }
        self.gate.set(width, None);
        Ok(())
    }

    /// Changes the number of workers that may run, as [`set_width`](Workers::set_width) does, and where they run:
    /// one at each of `places`. Workers that are at one of them already stay there. The others move, with the task
    /// they run, as soon as the surplus workers are out of service. `set_width` puts each worker back to its place
    /// in the layout.
    ///
    /// If workers are not pinned, or the system refuses to move them, only the nodes that [`here`](here::here) returns change.
    /// Threads of [`instances`](Workers::instances) do not move.
    ///
    /// # Errors
    ///
    /// [`Error::Width`] if there are no places, or more than threads; then nothing changes.
    pub fn place(&self, places: &[Place]) -> Result<()> {
        let (width, threads) = (places.len(), self.layout.threads());
        if width == 0 || width > threads {
            return Err(Error::Width { width, threads });
        }
        self.gate.set(width, Some(places.to_vec()));
        Ok(())
    }

    /// The places of the workers that may run, as last set.
    pub fn places(&self) -> Vec<Place> {
        self.gate.places(&self.layout)
    }

    /// The operating system's ids of the workers' threads, including those of [`instances`](Workers::instances)
    /// that were started.
    pub fn thread_ids(&self) -> Vec<u32> {
        let mut all = self.start.assignment.thread_ids();
        let instances = self.instances.lock().clone();
        for instance in instances.iter().flat_map(|all| all.iter()) {
            all.extend(instance.start.assignment.thread_ids());
        }
        all
    }

    /// A set of workers for each node that has any, lowest node first. They are threads of their own on the same
    /// cpus, so that a task stays on its node; without tasks they sleep. The first call starts them, and they end
    /// with these workers. Each call sets their widths to their nodes' shares of the present
    /// [`places`](Workers::places), at least one each.
    ///
    /// # Errors
    ///
    /// [`Error::Start`] if the system does not give the threads.
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

    /// The number of nodes, including those without workers.
    pub fn nodes(&self) -> usize {
        self.layout.nodes()
    }

    /// The number of worker threads, which is the largest width.
    pub fn threads(&self) -> usize {
        self.layout.threads()
    }

    /// The layout of the workers.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// What the system refused, a line each; usually empty.
    pub fn notes(&self) -> Vec<String> {
        self.start.started.lock().refused.iter().cloned().collect()
    }
}

/// Starts workers for each layout. A separate thread does it, because runtimes cannot be built on a worker.
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
    let parking = start.clone();
    let build = move || {
        Builder::new_multi_thread()
            .worker_threads(threads)
            .thread_name("atoll-worker")
            .thread_stack_size(STACK_BYTES)
            .enable_time()
            .on_thread_start(move || start.thread(&layout))
            .on_thread_park(move || parking.parks())
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
            // The control thread ends at once, and has reported its panic if it had one.
            let _ = control.join();
        }
        if let Some(runtime) = self.runtime.take() {
            if Handle::try_current().is_ok() {
                // The last reference was held by a task, which cannot wait for itself.
                runtime.shutdown_background();
            } else {
                runtime.shutdown_timeout(STOP);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use topology::Machine;

    use super::Workers;
    use crate::Layout;

    /// A worker that is about to sleep counts as awake, so nobody wakes it for what comes then, and it relies on the worker that
    /// is searching to look again: which may find a parker.
    #[test]
    fn nothing_waits_for_a_worker_that_falls_asleep_while_another_parks() {
        let live = Machine::live().unwrap();
        let machine = Machine::parse("1x2").unwrap();
        let workers = Workers::new(Layout::of(&machine, &live, 2, false)).unwrap();
        *workers.start.drowsy.lock() = Duration::from_millis(3);
        for round in 0..100 {
            workers.set_width(2).unwrap();
            let (send, receive) = channel();
            let again = send.clone();
            drop(workers.spawn(async move { send.send(()).unwrap() }));
            workers.set_width(1).unwrap();
            // At other moments of the other worker's way to its sleep.
            std::thread::sleep(Duration::from_micros(round * 40));
            drop(workers.spawn(async move { again.send(()).unwrap() }));
            for _ in 0..2 {
                let ran = receive.recv_timeout(Duration::from_secs(20));
                assert_eq!(ran, Ok(()), "a task was left waiting in round {round}");
            }
        }
    }
}
