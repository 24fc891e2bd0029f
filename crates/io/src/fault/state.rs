//! The state of a simulated disk: its files, and the faults it was told to produce.

use std::collections::BTreeMap;
use std::ops::Range;

use super::room::Room;

/// The unit that a disk writes whole or not at all, in bytes.
pub const SECTOR: usize = 512;

/// The largest simulated file, in bytes: what a lost offset would allocate otherwise.
pub(super) const LARGEST: u64 = 1 << 34;

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

/// What was done on a [`Disk`](super::Disk), failed operations included.
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

/// What handles to the same disk share.
#[derive(Debug)]
pub(super) struct State {
    pub(super) files: BTreeMap<String, FileState>,
    pub(super) random: fastrand::Rng,
    pub(super) faults: Faults,
    pub(super) counts: Counts,
    /// Operations seen; also the number of the next one.
    pub(super) operations: u64,
    /// The number of the first operation that finds the disk dead.
    pub(super) stop: Option<u64>,
    /// Bytes that all files together may have.
    pub(super) capacity: u64,
    pub(super) bad: Vec<Bad>,
}

/// A part of a file that cannot be read.
#[derive(Debug)]
pub(super) struct Bad {
    pub(super) name: String,
    pub(super) bytes: Range<u64>,
    /// How many more reads fail.
    pub(super) times: u32,
}

/// One file.
#[derive(Debug, Default)]
pub(super) struct FileState {
    /// The bytes that survive a loss of power for certain.
    pub(super) durable: Vec<u8>,
    /// The bytes that a read returns. Invariant: `durable` with `pending` applied in order, except for an
    /// operation that died with the disk, which is pending only.
    pub(super) current: Vec<u8>,
    pub(super) pending: Vec<Pending>,
    /// Which bytes of `current` take room; the others are holes.
    pub(super) room: Room,
}

/// An operation that was not synced.
#[derive(Debug, Clone)]
pub(super) struct Pending {
    /// Its number on the disk: the order in time over all files.
    pub(super) operation: u64,
    pub(super) change: Change,
}

/// What an operation does to a file.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    Resize { bytes: usize },
}

impl Change {
    pub(super) fn apply(&self, to: &mut Vec<u8>) {
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
    pub(super) fn holding(bytes: Vec<u8>) -> FileState {
        FileState {
            durable: bytes.clone(),
            room: Room::whole(bytes.len()),
            current: bytes,
            pending: Vec::new(),
        }
    }

    pub(super) fn change(&mut self, operation: u64, change: Change) {
        match &change {
            Change::Write { offset, bytes } => self.room.add(*offset..*offset + bytes.len()),
            Change::Resize { bytes } => self.room.cut(*bytes),
        }
        change.apply(&mut self.current);
        self.pending.push(Pending { operation, change });
    }

    pub(super) fn sync(&mut self) {
        for pending in self.pending.drain(..) {
            pending.change.apply(&mut self.durable);
        }
    }
}

/// Whether an operation finds the disk alive, and its number.
pub(super) enum Turn {
    Alive(u64),
    /// The disk dies in this operation, or did so earlier.
    Dead {
        operation: u64,
        now: bool,
    },
}

impl State {
    pub(super) fn turn(&mut self) -> Turn {
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
    pub(super) fn room(&self) -> u64 {
        self.files.values().map(|file| file.room.bytes()).sum()
    }

    /// Bytes of room that no file has taken.
    pub(super) fn free(&self) -> u64 {
        self.capacity.saturating_sub(self.room())
    }

    /// Whether a read of these bytes meets some that cannot be read.
    pub(super) fn meets_bad(&mut self, name: &str, bytes: Range<u64>) -> bool {
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

/// True in `parts` of a thousand cases. Takes no random number where that is never.
pub(super) fn chance(random: &mut fastrand::Rng, parts: u32) -> bool {
    parts > 0 && random.u32(..1000) < parts
}
