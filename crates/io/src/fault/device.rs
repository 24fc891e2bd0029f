//! The device that is a file of a simulated disk.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;

use super::state::{Change, FileState, LARGEST, Pending, SECTOR, State, Turn, chance};
use crate::device::Device;
use crate::error::{Error, Result};

/// One handle to one file of a disk.
#[derive(Debug)]
pub(super) struct Simulated {
    disk: Arc<Mutex<State>>,
    name: String,
    path: PathBuf,
    /// As in [`File`](crate::File): no write or sync after a failed sync.
    latched: AtomicBool,
}

impl Simulated {
    pub(super) fn new(disk: Arc<Mutex<State>>, name: &str) -> Simulated {
        Simulated {
            disk,
            name: name.to_owned(),
            path: PathBuf::from(name),
            latched: AtomicBool::new(false),
        }
    }

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
        let mut state = self.disk.lock();
        let state = &mut *state;
        state.counts.reads += 1;
        state.counts.read_bytes += into.len() as u64;
        let operation = match state.turn() {
            Turn::Alive(operation) => operation,
            Turn::Dead { operation, .. } => return Err(self.injected("read", operation)),
        };
        let end = offset.saturating_add(into.len() as u64);
        if chance(&mut state.random, state.faults.read_errors)
            || state.meets_bad(&self.name, offset..end)
        {
            return Err(self.injected("read", operation));
        }
        let bytes = match state.files.get(&self.name) {
            Some(file) => file.current.as_slice(),
            None => &[],
        };
        let start = usize::try_from(offset).map_or(bytes.len(), |o| o.min(bytes.len()));
        let mut got = into.len().min(bytes.len() - start);
        if got > 0 && chance(&mut state.random, state.faults.short_reads) {
            got = state.random.usize(..got);
        }
        into[..got].copy_from_slice(&bytes[start..start + got]);
        if got > 0 && chance(&mut state.random, state.faults.flipped_reads) {
            let bit = state.random.u64(..got as u64 * 8);
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
        let mut state = self.disk.lock();
        let state = &mut *state;
        state.counts.writes += 1;
        state.counts.written_bytes += from.len() as u64;
        let turn = state.turn();
        let room = state.free();
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
        if chance(&mut state.random, state.faults.write_errors) {
            return Err(self.injected("write", operation));
        }
        if file.room.missing(&(start..end)) > room {
            let fits = file.room.prefix(&(start..end), room);
            if fits > 0 {
                file.change(operation, change(fits));
            }
            return Err(Error::Full {
                path: self.path.clone(),
            });
        }
        if !from.is_empty() && chance(&mut state.random, state.faults.short_writes) {
            let mut got = state.random.usize(..from.len());
            if end <= file.current.len() {
                // A disk writes sectors whole, and the system has no reason to stop within one where
                // the file has room already.
                got = ((start + got) / SECTOR * SECTOR).saturating_sub(start);
            }
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
        let mut state = self.disk.lock();
        state.counts.syncs += 1;
        let operation = match state.turn() {
            Turn::Alive(operation) => operation,
            Turn::Dead { operation, .. } => {
                self.latched.store(true, Ordering::Release);
                return Err(self.injected("sync", operation));
            }
        };
        let faults = state.faults;
        if chance(&mut state.random, faults.sync_errors) {
            self.latched.store(true, Ordering::Release);
            return Err(self.injected("sync", operation));
        }
        state.files.entry(self.name.clone()).or_default().sync();
        Ok(())
    }

    fn len(&self) -> Result<u64> {
        let state = self.disk.lock();
        Ok(state
            .files
            .get(&self.name)
            .map_or(0, |file| file.current.len() as u64))
    }

    fn allocate(&self, offset: u64, bytes: u64) -> Result<()> {
        self.writable()?;
        let length = usize::try_from(bytes).unwrap_or(usize::MAX);
        let (start, end) = self.range(offset, length)?;
        let mut state = self.disk.lock();
        let free = state.free();
        let file = state.files.entry(self.name.clone()).or_default();
        if file.room.missing(&(start..end)) > free {
            return Err(Error::Full {
                path: self.path.clone(),
            });
        }
        let to = file.current.len().max(end);
        self.resize(&mut state, to)?.room.add(start..end);
        Ok(())
    }

    fn set_len(&self, bytes: u64) -> Result<()> {
        self.writable()?;
        let (to, _) = self.range(bytes, 0)?;
        self.resize(&mut self.disk.lock(), to).map(drop)
    }

    fn path(&self) -> &Path {
        &self.path
    }
}

impl Simulated {
    /// Changes the length, which takes no room, as one operation; returns the file.
    fn resize<'s>(&self, state: &'s mut State, to: usize) -> Result<&'s mut FileState> {
        state.counts.resizes += 1;
        let turn = state.turn();
        let faults = state.faults;
        let fails = chance(&mut state.random, faults.write_errors);
        let file = state.files.entry(self.name.clone()).or_default();
        let change = Change::Resize { bytes: to };
        match turn {
            Turn::Alive(operation) if fails => Err(self.injected("resize", operation)),
            Turn::Alive(operation) => {
                file.change(operation, change);
                Ok(file)
            }
            Turn::Dead { operation, now } => {
                if now {
                    file.pending.push(Pending { operation, change });
                }
                Err(self.injected("resize", operation))
            }
        }
    }
}
