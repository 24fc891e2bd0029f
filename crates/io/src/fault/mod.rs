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
mod random;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use crate::{Device, Error, Result};
use random::Random;

/// The unit that a disk writes whole or not at all, in bytes.
pub const SECTOR: usize = 512;

/// The largest simulated file, in bytes: what a lost offset would allocate otherwise.
const LARGEST: u64 = 1 << 34;

/// How often operations fail by themselves, in parts of a thousand. All zero at first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Faults {
    /// Reads that deliver only a part and report [`Error::ShortRead`].
    pub short_reads: u32,
    /// Reads that fail with [`Error::Injected`].
    pub read_errors: u32,
    /// Reads in whose result one bit is wrong, silently.
    pub flipped_reads: u32,
    /// Writes that do only a part and report [`Error::ShortWrite`].
    pub short_writes: u32,
    /// Writes and changes of length that fail with [`Error::Injected`].
    pub write_errors: u32,
    /// Syncs that fail with [`Error::Injected`], and latch the device.
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
}

#[derive(Debug, Default)]
struct FileState {
    /// What surely survives.
    durable: Vec<u8>,
    /// What a read sees. Invariant: `durable` with `pending` applied in order, except for an
    /// operation that died with the disk, which is pending only.
    current: Vec<u8>,
    pending: Vec<Pending>,
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
    fn change(&mut self, operation: u64, change: Change) {
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
            })),
        }
    }

    /// The file of this name, created empty (and durably so) where there is none. There are no
    /// locks: who opens a file twice has two handles to it.
    pub fn device(&self, name: &str) -> Arc<dyn Device> {
        let mut state = self.state.lock();
        state.files.entry(name.to_owned()).or_default();
        Arc::new(Simulated {
            disk: self.clone(),
            name: name.to_owned(),
            path: PathBuf::from(name),
            latched: AtomicBool::new(false),
        })
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
        let file = FileState {
            durable: bytes.clone(),
            current: bytes,
            pending: Vec::new(),
        };
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

    /// Limits what all files together may hold; a write past it does a part, then reports
    /// [`Error::Full`].
    pub fn set_capacity(&self, bytes: u64) {
        self.state.lock().capacity = bytes.min(LARGEST);
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
        let state = self.state.lock();
        let files = crash::image(&state.files, seed);
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

    fn used(&self) -> u64 {
        self.files.values().map(|f| f.current.len() as u64).sum()
    }
}

/// One handle to one file of a disk.
#[derive(Debug)]
struct Simulated {
    disk: Disk,
    name: String,
    path: PathBuf,
    /// As in [`File`](crate::File): no write or sync after a failed sync.
    latched: AtomicBool,
}

impl Simulated {
    fn injected(&self, action: &'static str, operation: u64) -> Error {
        Error::Injected {
            path: self.path.clone(),
            action,
            operation,
        }
    }

    fn writable(&self) -> Result<()> {
        if self.latched.load(Ordering::Acquire) {
            return Err(Error::Latched {
                path: self.path.clone(),
            });
        }
        Ok(())
    }

    /// `offset..offset + len` as indices, where a simulated file may have such.
    fn range(&self, offset: u64, len: usize) -> Result<(usize, usize)> {
        match offset.checked_add(len as u64) {
            Some(end) if end <= LARGEST => Ok((offset as usize, end as usize)),
            _ => Err(Error::Full {
                path: self.path.clone(),
            }),
        }
    }
}

impl Device for Simulated {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let mut state = self.disk.state.lock();
        let state = &mut *state;
        state.counts.reads += 1;
        state.counts.read_bytes += into.len() as u64;
        let operation = match state.turn() {
            Turn::Alive(operation) => operation,
            Turn::Dead { operation, .. } => return Err(self.injected("read", operation)),
        };
        if state.random.chance(state.faults.read_errors) {
            return Err(self.injected("read", operation));
        }
        let bytes = match state.files.get(&self.name) {
            Some(file) => file.current.as_slice(),
            None => &[],
        };
        let start = usize::try_from(offset).map_or(bytes.len(), |o| o.min(bytes.len()));
        let mut got = into.len().min(bytes.len() - start);
        if got > 0 && state.random.chance(state.faults.short_reads) {
            got = state.random.below(got as u64) as usize;
        }
        into[..got].copy_from_slice(&bytes[start..start + got]);
        if got > 0 && state.random.chance(state.faults.flipped_reads) {
            let bit = state.random.below(got as u64 * 8);
            into[(bit / 8) as usize] ^= 1 << (bit % 8);
        }
        if got < into.len() {
            return Err(Error::ShortRead {
                path: self.path.clone(),
                offset,
                wanted: into.len(),
                got,
            });
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> Result<()> {
        self.writable()?;
        let (start, end) = self.range(offset, from.len())?;
        let mut state = self.disk.state.lock();
        let state = &mut *state;
        state.counts.writes += 1;
        state.counts.written_bytes += from.len() as u64;
        let turn = state.turn();
        let room = state.capacity.saturating_sub(state.used());
        let file = state.files.entry(self.name.clone()).or_default();
        let change = |len: usize| Change::Write {
            offset: start,
            bytes: from[..len].to_vec(),
        };
        let operation = match turn {
            Turn::Alive(operation) => operation,
            Turn::Dead { operation, now } => {
                if now && !from.is_empty() {
                    // Nobody can read it any more, but it may be on its way to the platter.
                    file.pending.push(Pending {
                        operation,
                        change: change(from.len()),
                    });
                }
                return Err(self.injected("write", operation));
            }
        };
        if state.random.chance(state.faults.write_errors) {
            return Err(self.injected("write", operation));
        }
        let grows = end.saturating_sub(file.current.len()) as u64;
        if grows > room {
            let fits = (end as u64 - (grows - room)).saturating_sub(offset) as usize;
            if fits > 0 {
                file.change(operation, change(fits));
            }
            return Err(Error::Full {
                path: self.path.clone(),
            });
        }
        if !from.is_empty() && state.random.chance(state.faults.short_writes) {
            let got = state.random.below(from.len() as u64) as usize;
            if got > 0 {
                file.change(operation, change(got));
            }
            return Err(Error::ShortWrite {
                path: self.path.clone(),
                offset,
                wanted: from.len(),
                got,
            });
        }
        if !from.is_empty() {
            file.change(operation, change(from.len()));
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.writable()?;
        let mut state = self.disk.state.lock();
        state.counts.syncs += 1;
        let operation = match state.turn() {
            Turn::Alive(operation) => operation,
            Turn::Dead { operation, .. } => {
                self.latched.store(true, Ordering::Release);
                return Err(self.injected("sync", operation));
            }
        };
        let faults = state.faults;
        if state.random.chance(faults.sync_errors) {
            self.latched.store(true, Ordering::Release);
            return Err(self.injected("sync", operation));
        }
        state.files.entry(self.name.clone()).or_default().sync();
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        let state = self.disk.state.lock();
        Ok(state
            .files
            .get(&self.name)
            .map_or(0, |file| file.current.len() as u64))
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.writable()?;
        let (to, _) = self.range(bytes, 0)?;
        let mut state = self.disk.state.lock();
        state.counts.resizes += 1;
        let turn = state.turn();
        let faults = state.faults;
        let fails = state.random.chance(faults.write_errors);
        let file = state.files.entry(self.name.clone()).or_default();
        match turn {
            Turn::Alive(operation) if fails => Err(self.injected("resize", operation)),
            Turn::Alive(operation) => {
                // Holes take no room, so a longer file is never too long here.
                file.change(operation, Change::Resize { bytes: to });
                Ok(())
            }
            Turn::Dead { operation, now } => {
                if now {
                    file.pending.push(Pending {
                        operation,
                        change: Change::Resize { bytes: to },
                    });
                }
                Err(self.injected("resize", operation))
            }
        }
    }

    fn path(&self) -> &Path {
        &self.path
    }
}
