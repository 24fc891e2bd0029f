//! Where each worker is at this moment.

use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use crate::{Layout, Place, pin};

/// A worker's place and thread.
#[derive(Debug)]
struct Seat {
    node: AtomicUsize,
    cpu: AtomicU32,
    /// The operating system's number; 0 before it has started.
    thread: AtomicU32,
    /// Its place in the layout.
    own: Place,
}

/// The seats of one set of workers. One thread at a time seats them (the gate's lock); each worker
/// reads its own node.
#[derive(Debug)]
pub(crate) struct Seats {
    seats: Vec<Seat>,
    pin: bool,
}

impl Seats {
    /// Everybody at its place of the layout.
    pub(crate) fn new(layout: &Layout) -> Seats {
        let seat = |place: &Place| Seat {
            node: AtomicUsize::new(place.node),
            cpu: AtomicU32::new(place.cpu),
            thread: AtomicU32::new(0),
            own: *place,
        };
        Seats {
            seats: layout.places().iter().map(seat).collect(),
            pin: layout.pin(),
        }
    }

    /// The calling thread is this worker, below the number of seats.
    pub(crate) fn arrived(&self, worker: usize) {
        let id = pin::own_id();
        self.seats[worker].thread.store(id, Ordering::Relaxed);
    }

    /// The node of a worker that has arrived.
    pub(crate) fn node(&self, worker: usize) -> usize {
        self.seats[worker].node.load(Ordering::Relaxed)
    }

    /// Numbers of the threads that have arrived.
    pub(crate) fn thread_ids(&self) -> Vec<u32> {
        let ids = self
            .seats
            .iter()
            .map(|seat| seat.thread.load(Ordering::Relaxed));
        ids.filter(|id| *id != 0).collect()
    }

    /// Seats the workers that are not `out`: at these places, the first of them several times where there are
    /// more workers; at their own where none are given.
    pub(crate) fn seat(&self, out: &[bool], places: Option<&[Place]>) {
        let Some(places) = places else {
            for seat in &self.seats {
                self.put(seat, seat.own);
            }
            return;
        };
        let mut free: Vec<Place> = places.to_vec();
        let mut standing = Vec::new();
        for (seat, out) in self.seats.iter().zip(out) {
            let present = seat.present();
            match free.iter().position(|place| *place == present) {
                _ if *out => {}
                Some(at) => drop(free.swap_remove(at)),
                None => standing.push(seat),
            }
        }
        let more = places.iter().cycle();
        let to = free.iter().chain(more);
        for (seat, place) in standing.into_iter().zip(to) {
            self.put(seat, *place);
        }
    }

    /// Moves a worker. Refused, it stays where it is: whoever starts workers has been told that binding is refused.
    fn put(&self, seat: &Seat, place: Place) {
        if seat.present() == place {
            return;
        }
        let thread = seat.thread.load(Ordering::Relaxed);
        let bound = !self.pin || (thread != 0 && pin::bind_thread(thread, &[place.cpu]).is_ok());
        if bound {
            seat.cpu.store(place.cpu, Ordering::Relaxed);
            seat.node.store(place.node, Ordering::Relaxed);
        }
    }
}

impl Seat {
    fn present(&self) -> Place {
        Place {
            node: self.node.load(Ordering::Relaxed),
            cpu: self.cpu.load(Ordering::Relaxed),
        }
    }
}
