//! The simulated disk.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use super::crash::{self, Tearing};
use super::device::Simulated;
use super::state::{Bad, Counts, Faults, FileState, LARGEST, State};
use crate::device::Device;

/// A disk of named files in memory; cloning gives another handle to the same disk.
#[derive(Debug, Clone)]
pub struct Disk {
    state: Arc<Mutex<State>>,
}

impl Disk {
    /// An empty disk without faults; its random choices follow from `seed`.
    pub fn new(seed: u64) -> Disk {
        Disk::holding(seed, BTreeMap::new())
    }

    fn holding(seed: u64, files: BTreeMap<String, FileState>) -> Disk {
        Disk {
            state: Arc::new(Mutex::new(State {
                files,
                random: fastrand::Rng::with_seed(seed),
                faults: Faults::default(),
                counts: Counts::default(),
                operations: 0,
                stop: None,
                capacity: LARGEST,
                bad: Vec::new(),
            })),
        }
    }

    /// The file of this name, created empty (and durably so) where there is none. There are no
    /// locks: who opens a file twice has two handles to it.
    pub fn device(&self, name: &str) -> Arc<dyn Device> {
        let mut state = self.state.lock();
        state.files.entry(name.to_owned()).or_default();
        drop(state);
        Arc::new(Simulated::new(self.state.clone(), name))
    }

    /// The names of the files, in order.
    pub fn names(&self) -> Vec<String> {
        self.state.lock().files.keys().cloned().collect()
    }

    /// What a reader of the file sees now; empty where there is no such file.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let state = self.state.lock();
        state
            .files
            .get(name)
            .map(|file| file.current.clone())
            .unwrap_or_default()
    }

    /// Replaces a file, durably: for tests that damage one.
    pub fn put(&self, name: &str, bytes: Vec<u8>) {
        let file = FileState::holding(bytes);
        self.state.lock().files.insert(name.to_owned(), file);
    }

    /// Flips one bit of a file, durably: bit `bit % 8` of byte `bit / 8`. Returns whether the file
    /// has it.
    pub fn flip(&self, name: &str, bit: u64) -> bool {
        let mut state = self.state.lock();
        let Some(file) = state.files.get_mut(name) else {
            return false;
        };
        file.sync();
        let at = (bit / 8) as usize;
        match (file.current.get_mut(at), file.durable.get_mut(at)) {
            (Some(current), Some(durable)) => {
                *current ^= 1 << (bit % 8);
                *durable = *current;
                true
            }
            _ => false,
        }
    }

    /// From now on, fails as often as `faults` says.
    pub fn set_faults(&self, faults: Faults) {
        self.state.lock().faults = faults;
    }

    /// From now on, the next `times` reads that touch these bytes of a file fail: 1 for a read
    /// that succeeds when it is tried again, [`u32::MAX`] for a sector that is lost for good.
    pub fn fail_reads(&self, name: &str, bytes: Range<u64>, times: u32) {
        self.state.lock().bad.push(Bad {
            name: name.to_owned(),
            bytes,
            times,
        });
    }

    /// Takes back all that [`fail_reads`](Disk::fail_reads) was told.
    pub fn mend_reads(&self) {
        self.state.lock().bad.clear();
    }

    /// Limits the room that all files together may take; a write past it does a part, then reports
    /// [`Error::Full`](crate::Error::Full). Holes, which a change of length leaves, take no room
    /// before they are written to or [allocated](Device::allocate).
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().capacity = bytes.min(LARGEST);
    }

    /// How much room all files together take.
    pub fn room(&self) -> u64 {
        self.state.lock().room()
    }

    /// Stops the disk: operation number `operation` and all later ones fail. Numbers begin at zero
    /// with the disk, so this is also how many operations succeed. If the one that fails first is
    /// a write, a [`crash`](Disk::crash) may show any part of it.
    pub fn stop_after(&self, operation: u64) {
        self.state.lock().stop = Some(operation);
    }

    /// How many operations (reads, writes, syncs, changes of length) the disk has seen.
    pub fn operations(&self) -> u64 {
        self.state.lock().operations
    }

    /// What was done so far, by kind.
    pub fn counts(&self) -> Counts {
        self.state.lock().counts
    }

    /// What a loss of power at this moment may leave: a new disk without faults.
    ///
    /// What was synced is there. Of the rest, each [`SECTOR`](super::SECTOR) of each file holds its synced bytes
    /// or what any later write left in it, and the length is the synced one or any later one;
    /// bytes that were never written are zero. Which of these follows from `seed`; the first few
    /// seeds include that everything is lost, that everything survived, and that all happened
    /// in order up to some moment.
    pub fn crash(&self, seed: u64) -> Disk {
        self.image(seed, Tearing::Never)
    }

    /// As [`crash`](Disk::crash), on a disk that tears sectors: of some that were being written,
    /// the bytes up to a place are new and the rest as before, or the reverse.
    pub fn crash_torn(&self, seed: u64) -> Disk {
        self.image(seed, Tearing::Sometimes)
    }

    fn image(&self, seed: u64, tearing: Tearing) -> Disk {
        let files = crash::image(&self.state.lock().files, seed, tearing);
        Disk::holding(seed, files)
    }
}
