//! Reading a log from its beginning to its end, a window at a time.

use io::Device;

use super::frame::SECTOR;
use crate::error::{Error, Region, Result};
use crate::format::disk;

/// Bytes read at once.
const WINDOW: usize = 256 << 10;

/// The bytes of a log; holds a window of them, however long the log is.
pub(super) struct Source<'d> {
    device: &'d dyn Device,
    length: u64,
    window: Vec<u8>,
    /// Where the window begins.
    start: u64,
    /// The most bytes that the body of a record may take of memory.
    memory: u64,
}

impl<'d> Source<'d> {
    pub(super) fn new(device: &'d dyn Device) -> Result<Source<'d>> {
        Ok(Source {
            length: device.len()?,
            device,
            window: Vec::new(),
            start: 0,
            memory: u64::MAX,
        })
    }

    /// From now on, a record whose body has more bytes is refused.
    pub(super) fn limit(&mut self, memory: u64) {
        self.memory = memory;
    }

    /// Fails if there is no memory for the body of the record of this version, whose length is verified.
    pub(super) fn admit(&self, version: u64, length: u64) -> Result<()> {
        if length <= self.memory {
            return Ok(());
        }
        Err(Error::Memory {
            path: self.device.path().to_path_buf(),
            what: Region::LogRecord(version).to_string(),
            wanted: length,
            left: self.memory,
        })
    }

    /// Bytes of the log.
    pub(super) fn length(&self) -> u64 {
        self.length
    }

    /// Bytes from `offset` on: as many as the window has, at least one sector unless the log
    /// ends earlier, none at its end.
    pub(super) fn from(&mut self, offset: u64) -> Result<&[u8]> {
        let end = self.start + self.window.len() as u64;
        let enough = offset >= self.start && (offset + SECTOR as u64).min(self.length) <= end;
        if !enough {
            let bytes = self.length.saturating_sub(offset).min(WINDOW as u64);
            self.window.resize(bytes as usize, 0);
            self.start = offset;
            if let Err(error) = disk::read(self.device, offset, &mut self.window) {
                self.window.clear();
                return Err(error);
            }
        }
        let within = (offset - self.start) as usize;
        Ok(self.window.get(within..).unwrap_or_default())
    }

    /// The sector at `offset`; zeros where the log has ended.
    pub(super) fn sector(&mut self, offset: u64) -> Result<[u8; SECTOR]> {
        let mut sector = [0; SECTOR];
        let bytes = self.from(offset)?;
        let length = bytes.len().min(SECTOR);
        sector[..length].copy_from_slice(&bytes[..length]);
        Ok(sector)
    }

    /// Forgets what was read, here and in the system's cache: the next read asks the disk again.
    pub(super) fn forget(&mut self) {
        self.window.clear();
        // Without it the system may give the same bytes again, and that is no harm.
        let _ = self.device.forget();
    }
}
