//! Threads that serve a queue of tasks each.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use parking_lot::Mutex;
use tokio::runtime::{Builder, Handle, Runtime};
use tokio::sync::Notify;

use crate::assignment::Assignment;
use crate::counter::{Counter, Pending};
use crate::error::{Error, Result};
use crate::layout::{Layout, MAX_THREADS};
use crate::task::JoinHandle;
use crate::{here, pin};

/// Threads that serve a queue of tasks each (row B8: the fiber pool of SMILE, "one queue for each thread").
///
/// A task stays on the thread whose queue it was given to, and runs until it ends, waits or
/// [yields](crate::yield_now): tasks of one queue never run at the same time, so they need no locks among themselves.
/// Where any thread will do, [`Workers`](crate::Workers) are better: there an idle thread takes the work of others.
///
/// ```
/// use topology::Machine;
/// use workers::{Counter, Layout, Queues, yield_now};
///
/// let live = Machine::live()?;
/// let queues = Queues::start(&Layout::of(&live, &live, 2, true))?;
///
/// // Asynchronous: the tasks run one after the other on thread 1, and give way to each other.
/// let counter = Counter::default();
/// for _ in 0..10 {
///     queues.spawn_on(1, counter.count(async {
///         yield_now().await;
///         assert_eq!(workers::here().map(|here| here.worker), Some(1));
///     }))?;
/// }
/// // Synchronous: the caller waits.
/// let ended = counter.clone();
/// queues.run_on(0, async move { ended.wait().await })?;
///
/// assert_eq!(queues.statistics()[1].finished, 10);
/// queues.stop();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Queues {
    queues: Vec<Queue>,
    notes: Vec<String>,
}

/// What a queue has done since it was started.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QueueStatistics {
    /// Tasks that were given to the queue.
    pub spawned: u64,
    /// Tasks that a thread has begun to run.
    pub started: u64,
    /// Tasks that ended: with a result, with a panic or because they were aborted.
    pub finished: u64,
}

#[derive(Debug)]
struct Queue {
    handle: Handle,
    state: Arc<State>,
    /// `None` once it was joined.
    thread: Option<thread::JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct State {
    spawned: AtomicU64,
    started: AtomicU64,
    finished: AtomicU64,
    /// Tells the thread to end.
    stop: Notify,
    /// The tasks that have not finished.
    unfinished: Counter,
}

impl Queues {
    /// Starts a thread for each worker of `layout`, bound to the worker's cpu if the layout says so. What the system
    /// refuses to bind runs unbound, and [`notes`](Queues::notes) says so.
    ///
    /// # Errors
    /// [`Error::Threads`] if the layout has no threads or more than [`MAX_THREADS`]; [`Error::Start`] if the system
    /// does not give them.
    pub fn start(layout: &Layout) -> Result<Queues> {
        let threads = layout.threads();
        if threads == 0 || threads > MAX_THREADS {
            return Err(Error::Threads { threads });
        }
        let assignment = Arc::new(Assignment::new(layout));
        let refused = Arc::new(Mutex::new(Vec::new()));
        let mut all = Queues {
            queues: Vec::with_capacity(threads),
            notes: vec![],
        };
        for worker in 0..threads {
            let cpu = layout.pin().then(|| layout.places()[worker].cpu);
            let thread = Thread {
                worker,
                cpu,
                assignment: assignment.clone(),
                refused: refused.clone(),
            };
            // On an error, dropping `all` ends the threads that were started before.
            all.queues
                .push(thread.start().map_err(|source| Error::Start { source })?);
        }
        all.notes = std::mem::take(&mut refused.lock());
        Ok(all)
    }

    /// How many queues there are, each with its thread.
    pub fn len(&self) -> usize {
        self.queues.len()
    }

    /// Never: there is at least one.
    pub fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// Puts a task at the end of a queue, and returns at once. Dropping the handle detaches the task.
    ///
    /// # Errors
    /// [`Error::Queue`] if there is no such queue.
    pub fn spawn_on<F>(&self, queue: usize, task: F) -> Result<JoinHandle<F::Output>>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let Queue { handle, state, .. } = self.queue(queue)?;
        state.spawned.fetch_add(1, Ordering::Relaxed);
        let running = Running {
            state: state.clone(),
            _pending: state.unfinished.pending(),
        };
        let task = async move {
            running.state.started.fetch_add(1, Ordering::Relaxed);
            let output = task.await;
            drop(running);
            output
        };
        Ok(JoinHandle::new(handle.spawn(task)))
    }

    /// Puts a task at the end of a queue, and waits for its result.
    ///
    /// # Errors
    /// [`Error::Queue`] if there is no such queue; [`Error::OnWorker`] if the caller is a task itself, whose thread
    /// must not wait: it can await what [`spawn_on`](Queues::spawn_on) returns; [`Error::Panicked`] if the task did.
    pub fn run_on<F>(&self, queue: usize, task: F) -> Result<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if Handle::try_current().is_ok() {
            return Err(Error::OnWorker);
        }
        let handle = self.queue(queue)?.handle.clone();
        handle.block_on(self.spawn_on(queue, task)?)
    }

    /// What each queue has done.
    pub fn statistics(&self) -> Vec<QueueStatistics> {
        let of = |queue: &Queue| QueueStatistics {
            spawned: queue.state.spawned.load(Ordering::Relaxed),
            started: queue.state.started.load(Ordering::Relaxed),
            finished: queue.state.finished.load(Ordering::Relaxed),
        };
        self.queues.iter().map(of).collect()
    }

    /// What the system refused, a line each; usually empty.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Waits until all tasks have ended, and ends the threads. Dropping the queues instead cancels tasks where they
    /// next wait or yield. Must not be called by a task of these queues, which would wait for itself.
    pub fn stop(self) {
        for queue in &self.queues {
            queue.state.unfinished.wait_blocking();
        }
    }

    fn queue(&self, queue: usize) -> Result<&Queue> {
        self.queues.get(queue).ok_or(Error::Queue {
            queue,
            queues: self.queues.len(),
        })
    }
}

impl Drop for Queues {
    fn drop(&mut self) {
        for queue in &self.queues {
            queue.state.stop.notify_one();
        }
        let own = thread::current().id();
        for thread in self
            .queues
            .iter_mut()
            .filter_map(|queue| queue.thread.take())
        {
            // A task that holds the queues cannot wait for its own thread, which ends when the task does.
            if thread.thread().id() != own {
                // Panics of tasks were caught and are in their handles.
                let _ = thread.join();
            }
        }
    }
}

/// Counts a task as finished when it is dropped, which happens however it ends.
struct Running {
    state: Arc<State>,
    _pending: Pending,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.state.finished.fetch_add(1, Ordering::Relaxed);
    }
}

/// What a thread needs to start.
struct Thread {
    worker: usize,
    cpu: Option<u32>,
    assignment: Arc<Assignment>,
    refused: Arc<Mutex<Vec<String>>>,
}

impl Thread {
    /// Starts it; returns when it is bound and serves its queue.
    fn start(self) -> std::io::Result<Queue> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let handle = runtime.handle().clone();
        let state = Arc::new(State::default());
        let (ready, started) = std::sync::mpsc::sync_channel(1);
        let own = state.clone();
        let name = format!("atoll-queue-{}", self.worker);
        let thread = thread::Builder::new().name(name).spawn(move || {
            self.enter();
            // The receiver waits, unless the process is ending.
            let _ = ready.send(());
            serve(&runtime, &own);
        })?;
        started
            .recv()
            .map_err(|_| std::io::Error::other("a thread ended while it started"))?;
        Ok(Queue {
            handle,
            state,
            thread: Some(thread),
        })
    }

    /// Binds the calling thread, and tells it which worker it is.
    fn enter(&self) {
        let bound = self.cpu.map_or(Ok(()), |cpu| pin::bind(&[cpu]));
        if let (Err(error), Some(cpu)) = (bound, self.cpu) {
            let worker = self.worker;
            let note = format!("queue {worker} is not bound to cpu {cpu}: {error}");
            self.refused.lock().push(note);
        }
        self.assignment.register(self.worker);
        here::enter(self.worker, self.assignment.clone());
    }
}

/// Runs tasks until the thread is told to end. Dropping the runtime then cancels what is left.
fn serve(runtime: &Runtime, state: &State) {
    runtime.block_on(state.stop.notified());
}
