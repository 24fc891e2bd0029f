//! The device: every byte to and from disk passes through it.

use std::fmt::Debug;
use std::os::fd::BorrowedFd;
use std::path::Path;

use crate::error::Result;

/// What direct I/O asks of the memory, positions and lengths of reads: multiples, in bytes, of
/// powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Alignment {
    /// Of the address of the memory.
    pub memory: u32,
    /// Of the position in the file, and of the length.
    pub offset: u32,
}

/// The open file behind a device, to be read by the operating system.
#[derive(Debug, Clone, Copy)]
pub struct Descriptor<'a> {
    /// The file.
    pub fd: BorrowedFd<'a>,
    /// What reads of it must keep to, if they go past the page cache.
    pub direct: Option<Alignment>,
}

/// A range of bytes that outlives the process: a [`File`](crate::File) or a simulated one.
///
/// Offsets and lengths are in bytes. All methods take `&self` and may be called from many threads
/// at once; two writes to overlapping ranges at the same time leave either.
pub trait Device: Send + Sync + Debug {
    /// Fills `into` with the bytes at `offset`.
    ///
    /// # Errors
    /// [`Error::ShortRead`](crate::Error::ShortRead) where the device ends earlier: then the first
    /// `got` bytes of `into` are valid. Otherwise what the operating system reports.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()>;

    /// Writes all of `from` at `offset`; the device grows as needed. Not durable before
    /// [`sync`](Device::sync).
    ///
    /// # Errors
    /// [`Error::Full`](crate::Error::Full) and [`Error::ShortWrite`](crate::Error::ShortWrite)
    /// may leave a part of the bytes written.
    fn write_at(&self, offset: u64, from: &[u8]) -> Result<()>;

    /// Returns when all writes that returned before, and the length, survive a loss of power.
    ///
    /// # Errors
    /// After a failure nothing is known of what was written since the last success, and trying
    /// again would report success without reason: the device refuses further writes and syncs
    /// with [`Error::Latched`](crate::Error::Latched).
    fn sync(&self) -> Result<()>;

    /// The present length.
    ///
    /// # Errors
    /// What the operating system reports.
    fn len(&self) -> Result<u64>;

    /// Whether the length is zero.
    ///
    /// # Errors
    /// As [`len`](Device::len).
    fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the device or extends it by zeros. Not durable before [`sync`](Device::sync).
    ///
    /// # Errors
    /// What the operating system reports.
    fn set_len(&self, bytes: u64) -> Result<()>;

    /// Sets room aside for `bytes` at `offset`, so that a later write there does not find the disk
    /// full. The device grows to the end of this range if it was shorter; new bytes are zero, and
    /// bytes that are there already stay. Not durable before [`sync`](Device::sync).
    ///
    /// A device that cannot set room aside (some network file systems cannot) only grows: a write
    /// may find it full later.
    ///
    /// # Errors
    /// [`Error::Full`](crate::Error::Full); the length is then as before. Otherwise what the
    /// operating system reports.
    fn allocate(&self, offset: u64, bytes: u64) -> Result<()> {
        let end = offset.saturating_add(bytes);
        if self.len()? < end {
            self.set_len(end)?;
        }
        Ok(())
    }

    /// Asks the operating system to drop what it has cached of the device, so that the next read
    /// comes from the disk: for cold runs (row M3). What is not yet durable stays cached. A device
    /// that is not cached has nothing to do.
    ///
    /// # Errors
    /// What the operating system reports.
    fn forget(&self) -> Result<()> {
        Ok(())
    }

    /// The file behind the device, if it can be [mapped](crate::Map) and reads may go to it rather than through
    /// [`read_at`](Device::read_at): the same bytes are at the same positions. It does not change.
    fn descriptor(&self) -> Option<Descriptor<'_>> {
        None
    }

    /// What the system refused for the device, so that it works in another way than was asked for.
    fn notes(&self) -> Vec<String> {
        Vec::new()
    }

    /// What to call the device in messages.
    fn path(&self) -> &Path;
}
