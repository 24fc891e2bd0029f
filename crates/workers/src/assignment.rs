//! The current place of each worker: its node, cpu and thread.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::layout::{Layout, Place};
use crate::pin;

/// The current place and thread of a worker.
#[derive(Debug)]
struct Worker {
    node: AtomicUsize,
    cpu: AtomicU32,
    /// The operating system's id of the thread; 0 before it has started.
    thread: AtomicU32,
    /// The worker's place in the layout.
    own: Place,
}

/// The current places of a set of workers. Only the thread that holds the gate's lock changes them; each worker reads
/// its own node without a lock.
#[derive(Debug)]
pub(crate) struct Assignment {
    workers: Vec<Worker>,
    pin: bool,
}

impl Assignment {
    /// Starts with each worker at its place in the layout.
    pub(crate) fn new(layout: &Layout) -> Assignment {
        let worker = |place: &Place| Worker {
            node: AtomicUsize::new(place.node),
            cpu: AtomicU32::new(place.cpu),
            thread: AtomicU32::new(0),
            own: *place,
        };
        Assignment {
            workers: layout.places().iter().map(worker).collect(),
            pin: layout.pin(),
        }
    }

    /// Records that the calling thread is `worker`.
    ///
    /// # Panics
    ///
    /// If there is no such worker.
    pub(crate) fn register(&self, worker: usize) {
        let id = pin::own_id();
        self.workers[worker].thread.store(id, Ordering::Relaxed);
    }

    /// The current node of a worker.
    pub(crate) fn node(&self, worker: usize) -> usize {
        self.workers[worker].node.load(Ordering::Relaxed)
    }

    /// The ids of the threads that have started.
    pub(crate) fn thread_ids(&self) -> Vec<u32> {
        let ids = self
            .workers
            .iter()
            .map(|worker| worker.thread.load(Ordering::Relaxed));
        ids.filter(|id| *id != 0).collect()
    }

    /// Assigns places to the workers that are not `parked`. With `places`, each gets one of them, round robin if there
    /// are more workers than places; a worker that is at one of them already stays. Without, every worker, parked ones
    /// included, goes back to its place in the layout.
    pub(crate) fn assign(&self, parked: &[bool], places: Option<&[Place]>) {
        let Some(places) = places else {
            for worker in &self.workers {
                self.put(worker, worker.own);
            }
            return;
        };
        let mut free: Vec<Place> = places.to_vec();
        let mut displaced = Vec::new();
        for (worker, parked) in self.workers.iter().zip(parked) {
            let present = worker.present();
            match free.iter().position(|place| *place == present) {
                _ if *parked => {}
                Some(at) => drop(free.swap_remove(at)),
                None => displaced.push(worker),
            }
        }
        let more = places.iter().cycle();
        let to = free.iter().chain(more);
        for (worker, place) in displaced.into_iter().zip(to) {
            self.put(worker, *place);
        }
    }

    /// Moves a worker to `place`. If the system refuses, the worker stays where it is; that pinning is refused was
    /// reported when the workers were started.
    fn put(&self, worker: &Worker, place: Place) {
        if worker.present() == place {
            return;
        }
        let thread = worker.thread.load(Ordering::Relaxed);
        let bound = !self.pin || (thread != 0 && pin::bind_thread(thread, &[place.cpu]).is_ok());
        if bound {
            worker.cpu.store(place.cpu, Ordering::Relaxed);
            worker.node.store(place.node, Ordering::Relaxed);
        }
    }
}

impl Worker {
    fn present(&self) -> Place {
        Place {
            node: self.node.load(Ordering::Relaxed),
            cpu: self.cpu.load(Ordering::Relaxed),
        }
    }
}
