//! A simulated disk that fails on purpose.
//!
//! A [`Disk`] holds named files in memory. Its devices behave as the contract of [`Device`] says
//! and no better: what is not synced may be lost, reordered and torn when the power goes, which
//! [`Disk::crash`] shows. A test of recovery runs its work once to count the operations, then once
//! for each of them with [`Disk::stop_after`], and opens what several seeds of `crash` leave:
//!
//! ```
//! use io::{Device, fault::Disk};
//!
//! fn work(disk: &Disk) -> io::Result<()> {
//!     let device = disk.device("data");
//!     device.write_at(0, &[7; 2048])?;
//!     device.sync()?;
//!     device.write_at(2048, &[8; 2048])
//! }
//!
//! let whole = Disk::new(0);
//! work(&whole)?;
//! for operation in 0..whole.operations() {
//!     let disk = Disk::new(0);
//!     disk.stop_after(operation);
//!     assert!(work(&disk).is_err());
//!     for seed in 0..8 {
//!         let left = disk.crash(seed);
//!         if operation > 1 {
//!             // The sync went through.
//!             assert_eq!(left.bytes("data")[..2048], [7; 2048]);
//!         }
//!     }
//! }
//! # Ok::<(), io::Error>(())
//! ```

mod crash;
mod device;
mod random;
mod room;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::Device;
use crash::Tearing;
use device::Simulated;
use random::Random;
use room::Room;

/// The unit that a disk writes whole or not at all, in bytes.
pub const SECTOR: usize = 512;

/// The largest simulated file, in bytes: what a lost offset would allocate otherwise.
const LARGEST: u64 = 1 << 34;

/// How often operations fail by themselves, in parts of a thousand. All zero at first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Reads that deliver only a part and report [`Error::ShortRead`](crate::Error::ShortRead).
    pub short_reads: u32,
    /// Reads that fail with [`Error::Injected`](crate::Error::Injected).
    pub read_errors: u32,
    /// Reads in whose result one bit is wrong, silently.
    pub flipped_reads: u32,
    /// Writes that do only a part and report [`Error::ShortWrite`](crate::Error::ShortWrite).
    pub short_writes: u32,
    /// Writes and changes of length that fail with [`Error::Injected`](crate::Error::Injected).
    pub write_errors: u32,
    /// Syncs that fail with [`Error::Injected`](crate::Error::Injected), and latch the device.
    pub sync_errors: u32,
}

/// What was done on a [`Disk`], failed operations included.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Reads.
    pub reads: u64,
    /// Writes.
    pub writes: u64,
    /// Syncs.
    pub syncs: u64,
    /// Changes of length.
    pub resizes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// A disk of named files in memory; cloning gives another handle to the same disk.
#[derive(Debug, Clone)]
pub struct Disk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    files: BTreeMap<String, FileState>,
    random: Random,
    faults: Faults,
    counts: Counts,
    /// Operations seen; also the number of the next one.
    operations: u64,
    /// The number of the first operation that finds the disk dead.
    stop: Option<u64>,
    /// Bytes that all files together may have.
    capacity: u64,
    bad: Vec<Bad>,
}

/// A part of a file that cannot be read.
#[derive(Debug)]
struct Bad {
    name: String,
    bytes: Range<u64>,
    /// How many more reads fail.
    times: u32,
}

#[derive(Debug, Default)]
struct FileState {
    /// What surely survives.
    durable: Vec<u8>,
    /// What a read sees. Invariant: `durable` with `pending` applied in order, except for an
    /// operation that died with the disk, which is pending only.
    current: Vec<u8>,
    pending: Vec<Pending>,
    /// Which bytes of `current` take room; the others are holes.
    room: Room,
}

/// An operation that was not synced.
#[derive(Debug, Clone)]
struct Pending {
    /// Its number on the disk: the order in time over all files.
    operation: u64,
    change: Change,
}

#[derive(Debug, Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize { bytes: usize },
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Change::Write { offset, bytes } => {
                let end = offset + bytes.len();
                if to.len() < end {
                    to.resize(end, 0);
                }
                to[*offset..end].copy_from_slice(bytes);
            }
            Change::Resize { bytes } => to.resize(*bytes, 0),
        }
    }
}

impl FileState {
    /// A file that is durable as it is.
    fn holding(bytes: Vec<u8>) -> FileState {
        FileState {
            durable: bytes.clone(),
            room: Room::whole(bytes.len()),
            current: bytes,
            pending: Vec::new(),
        }
    }

    fn change(&mut self, operation: u64, change: Change) {
        match &change {
            Change::Write { offset, bytes } => self.room.add(*offset..*offset + bytes.len()),
            Change::Resize { bytes } => self.room.cut(*bytes),
        }
        change.apply(&mut self.current);
        self.pending.push(Pending { operation, change });
    }

    fn sync(&mut self) {
        for pending in self.pending.drain(..) {
            pending.change.apply(&mut self.durable);
        }
    }
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
                random: Random::new(seed),
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
        Arc::new(Simulated::new(self.clone(), name))
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
    /// What was synced is there. Of the rest, each [`SECTOR`] of each file holds its synced bytes
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

/// Whether an operation finds the disk alive, and its number.
enum Turn {
    Alive(u64),
    /// The disk dies in this operation, or did so earlier.
    Dead {
        operation: u64,
        now: bool,
    },
}

impl State {
    fn turn(&mut self) -> Turn {
        let operation = self.operations;
        self.operations += 1;
        match self.stop {
            Some(stop) if operation >= stop => Turn::Dead {
                operation,
                now: operation == stop,
            },
            _ => Turn::Alive(operation),
        }
    }

    /// Bytes of room that the files have taken.
    fn room(&self) -> u64 {
        self.files.values().map(|file| file.room.bytes()).sum()
    }

    /// Bytes of room that no file has taken.
    fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.room())
    }

    /// Whether a read of these bytes meets some that cannot be read.
    fn meets_bad(&mut self, name: &str, bytes: Range<u64>) -> bool {
        let met = self.bad.iter_mut().find(|bad| {
            bad.times > 0
                && bad.name == name
                && bad.bytes.start < bytes.end
                && bytes.start < bad.bytes.end
        });
        let Some(bad) = met else { return false };
        if bad.times < u32::MAX {
            bad.times -= 1;
        }
        true
    }
}
