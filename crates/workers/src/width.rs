//! The elastic width: taking workers out of service and back while queries run.
//!
//! # How a worker is parked
//!
//! The runtime's scheduler decides which thread runs which task, and every task must count, also
//! those that DataFusion spawns by itself. So a worker is taken out of service by a task that
//! blocks its thread, a *parker*:
//!
//! 1. [`Gate::set`] records the width and wakes the control thread.
//! 2. The control thread spawns one parker for each surplus worker. It does so from outside the
//!    runtime: a task spawned on a worker waits in that worker's own queue, one spawned from
//!    outside in the global queue, which all workers poll even when they are busy.
//! 3. A worker polls a parker. If there are still too many workers in service the parker blocks
//!    the thread until the width rises or the workers shut down.
//! 4. A parker can wait behind a long queue, or on a worker that another parker blocks. After a
//!    timeout the control thread starts a new round: parkers of earlier rounds that have not been
//!    polled yet do nothing when they are, and new ones are spawned in their place.
//!
//! # Why no task is stranded on a parked worker
//!
//! Tasks in a blocked worker's queue are stolen by the others, but the scheduler keeps two
//! things that nobody can steal: the task that runs next ("LIFO slot") and the tasks that
//! yielded ("deferred"). [`tokio::task::block_in_place`] makes both stealable before it blocks, but
//! then it starts a replacement thread for the worker, which is what parking must not do. It
//! starts it on the runtime that is *entered*, so the parker enters one that has been shut down
//! ([`Gate::sink`]) and therefore drops the request. Should a later version of the scheduler take
//! its thread from elsewhere, the width would not fall and the tests here would fail; nothing would hang.
//!
//! Last, somebody must look at what the parked worker left. A worker that is searching for work is relied upon to
//! look again or to wake another one, and workers that fall asleep meanwhile do not look themselves; that searcher may be the
//! one that found the parker. So each parker spawns a *witness*, a task that does nothing but say that it ran, just before it
//! blocks. Whoever runs it is in service, and looks for all other work after it: what was left is stolen, and who goes
//! idle last drives the timer. A witness may itself be overlooked, by a worker that was just falling asleep when it came:
//! the control thread spawns another until one has run.
//!
//! # Where the other workers run
//!
//! Which workers get parked depends on which are free, so the requested places are assigned to the
//! workers that remain: the control thread does that ([`Assignment`]) after each parking and release.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Handle;

use crate::assignment::Assignment;
use crate::here::here;
use crate::layout::{Layout, Place};

/// How long the control thread waits for its parkers to be polled: at first, and after doubling at most.
const PATIENCE: Duration = Duration::from_millis(1);
const MOST_PATIENCE: Duration = Duration::from_millis(100);

#[derive(Debug)]
struct State {
    /// The requested width, 1 to `threads`.
    width: usize,
    /// Where the workers in service are to run, one place for each; `None`: each at its place in the layout.
    places: Option<Vec<Place>>,
    /// Workers blocked in a parker. Invariants: only a parker of the current round raises it,
    /// and never above `threads - width`; only the parker that raised it lowers it.
    parked: usize,
    /// Whether each worker is parked.
    is_parked: Vec<bool>,
    /// Whether workers were parked or released, or `places` changed, since places were last assigned.
    outdated: bool,
    /// Parkers of the current round that have not been polled yet.
    pending: usize,
    /// Workers that are parked, or about to be, whose witness has not run yet.
    unseen: Vec<usize>,
    /// The current round. Parkers of earlier rounds do nothing.
    round: u64,
    /// The workers are shutting down: parked workers are released and none is parked again.
    closed: bool,
}

/// The gate that controls the width of a set of workers.
#[derive(Debug)]
pub(crate) struct Gate {
    threads: usize,
    state: Mutex<State>,
    /// Wakes the control thread: `state` has changed.
    changed: Condvar,
    /// Wakes parked workers: `width` rose, or `closed` was set.
    released: Condvar,
    /// The handle of a runtime that was shut down, which drops the requests for replacement threads (see the module).
    sink: Handle,
    assignment: Arc<Assignment>,
}

impl Gate {
    /// A gate with all of `threads` (at least 1) workers in service.
    ///
    /// # Errors
    ///
    /// The system's, where the runtime for [`Gate::sink`] cannot be made.
    pub(crate) fn new(threads: usize, assignment: Arc<Assignment>) -> std::io::Result<Arc<Gate>> {
        let dead = tokio::runtime::Builder::new_current_thread().build()?;
        let sink = dead.handle().clone();
        drop(dead);
        let state = State {
            width: threads,
            places: None,
            parked: 0,
            is_parked: vec![false; threads],
            outdated: false,
            pending: 0,
            unseen: Vec::with_capacity(threads),
            round: 0,
            closed: false,
        };
        Ok(Arc::new(Gate {
            threads,
            state: Mutex::new(state),
            changed: Condvar::new(),
            released: Condvar::new(),
            sink,
            assignment,
        }))
    }

    /// The width last requested.
    pub(crate) fn width(&self) -> usize {
        self.state.lock().width
    }

    /// The number of workers that are not parked.
    pub(crate) fn running(&self) -> usize {
        self.threads - self.state.lock().parked
    }

    /// The places of the workers that may run, as last requested.
    pub(crate) fn places(&self, layout: &Layout) -> Vec<Place> {
        let state = self.state.lock();
        match &state.places {
            Some(places) => places.clone(),
            None => layout.places()[..state.width].to_vec(),
        }
    }

    /// Requests a width of 1 to `threads`, and that many places.
    pub(crate) fn set(&self, width: usize, places: Option<Vec<Place>>) {
        debug_assert!((1..=self.threads).contains(&width));
        let mut state = self.state.lock();
        state.width = width;
        state.places = places;
        state.outdated = true;
        if self.threads == 1 {
            // There is no control thread.
            self.assign(&mut state);
        }
        drop(state);
        self.changed.notify_one();
        self.released.notify_all();
    }

    /// Releases all workers and the control thread for good.
    pub(crate) fn close(&self) {
        self.state.lock().closed = true;
        self.changed.notify_one();
        self.released.notify_all();
    }

    /// The control thread's loop, which runs until [`Gate::close`].
    pub(crate) fn control(self: &Arc<Gate>, workers: &Handle) {
        let mut patience = PATIENCE;
        let mut state = self.state.lock();
        while !state.closed {
            if state.outdated {
                self.assign(&mut state);
            }
            let surplus = self.threads - state.width;
            let missing = surplus.saturating_sub(state.parked + state.pending);
            if missing > 0 {
                state.pending += missing;
                let round = state.round;
                drop(state);
                for _ in 0..missing {
                    workers.spawn(park(self.clone(), round, workers.clone()));
                }
                state = self.state.lock();
            } else if state.parked >= surplus && state.unseen.is_empty() {
                patience = PATIENCE;
                self.changed.wait(&mut state);
            } else if self.changed.wait_for(&mut state, patience).timed_out() {
                if state.parked < surplus {
                    state.round += 1;
                    state.pending = 0;
                }
                patience = (patience * 2).min(MOST_PATIENCE);
                let unseen = state.unseen.clone();
                drop(state);
                for worker in unseen {
                    workers.spawn(witness(self.clone(), worker));
                }
                state = self.state.lock();
            }
        }
    }

    /// Moves the workers in service to their places.
    fn assign(&self, state: &mut State) {
        state.outdated = false;
        self.assignment
            .assign(&state.is_parked, state.places.as_deref());
    }

    /// Step 3: blocks the calling worker if too many are in service. The lock on the state is not
    /// held while code of the runtime runs.
    fn park_here(self: &Arc<Gate>, round: u64, workers: &Handle) {
        let worker = here().map_or(0, |here| here.worker);
        if !self.claim(round, worker) {
            return;
        }
        let _sink = self.sink.enter();
        tokio::task::block_in_place(|| {
            // From here on others can take all that this worker had.
            self.state.lock().unseen.push(worker);
            workers.spawn(witness(self.clone(), worker));
            let mut state = self.state.lock();
            self.changed.notify_one();
            while !state.closed && state.parked <= self.threads - state.width {
                self.released.wait(&mut state);
            }
            // In service again, it looks for work itself.
            state.unseen.retain(|unseen| *unseen != worker);
            state.parked -= 1;
            state.is_parked[worker] = false;
            state.outdated = true;
            self.changed.notify_one();
        });
    }

    /// Whether the caller, a parker of round `round` on this worker, is to park. If so, it is counted as parked.
    fn claim(&self, round: u64, worker: usize) -> bool {
        let mut state = self.state.lock();
        if state.closed || state.round != round {
            return false;
        }
        state.pending -= 1;
        let too_many = state.parked < self.threads - state.width;
        state.parked += usize::from(too_many);
        state.is_parked[worker] |= too_many;
        state.outdated |= too_many;
        drop(state);
        self.changed.notify_one();
        too_many
    }
}

/// The task of a parker. If the runtime shuts down, it may be dropped without having been polled; `pending` then
/// stays too high, which no longer matters.
async fn park(gate: Arc<Gate>, round: u64, workers: Handle) {
    gate.park_here(round, &workers);
}

/// The task of a witness: who runs it is in service, and will find what parked `worker` left. A witness of an earlier parking of
/// that worker does as well, if it runs now.
async fn witness(gate: Arc<Gate>, worker: usize) {
    let mut state = gate.state.lock();
    state.unseen.retain(|unseen| *unseen != worker);
    gate.changed.notify_one();
}
