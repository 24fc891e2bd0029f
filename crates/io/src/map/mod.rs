//! A file mapped into memory: the operating system pages it (row M1).

mod lost;

use std::fmt;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::file::failed;
use lost::Watched;

/// What may be done with the bytes of a [`Map`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// They may be read.
    ReadOnly,
    /// They may also be written: a page that is written becomes a copy of this process, and the
    /// file stays as it is.
    CopyOnWrite,
}

/// How the bytes of a [`Map`] are going to be read, for the read-ahead of the operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Pattern {
    /// Nothing is known: the system guesses.
    Normal,
    /// In order: it reads far ahead.
    Sequential,
    /// Here and there: it reads what is asked for and no more.
    Random,
    /// Soon, all of it: it starts to read at once.
    Soon,
}

/// A range of a file in the address space of this process: reading the memory reads the file, a
/// page at a time, and the operating system keeps what it has memory for (row M1).
///
/// **A file that becomes shorter is an error and no crash.** The kernel answers a read behind the
/// new end by the signal SIGBUS, which ends a process that does not expect it; the same where the
/// device cannot read a page. Here the page that was lost reads as zeros from then on, and
/// [`check`](Map::check) says so: whoever used bytes of a map asks it before believing them.
///
/// ```
/// use io::{Access, Device, File, Map, Mapping};
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("pages");
/// let file = File::create(&path)?;
/// file.write_at(0, &[7; 10_000])?;
///
/// // SAFETY: nobody writes to the mapped part of the file while it is mapped.
/// let map = unsafe { Map::new(&file, 0, 10_000, Mapping::ReadOnly)? };
/// assert_eq!(map.bytes()[9_999], 7);
///
/// file.set_len(4096)?;
/// let _ = map.bytes()[9_000]; // not a crash
/// assert!(map.check().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Map {
    path: PathBuf,
    /// The mapped file, open for as long as the map lives, so that its length can be asked for.
    file: std::fs::File,
    /// Where the kernel mapped it: at the page boundary at or before `start`.
    base: NonNull<libc::c_void>,
    /// Bytes mapped from `base`.
    mapped: usize,
    /// The first byte that was asked for.
    start: NonNull<u8>,
    /// How many were asked for, from `start`.
    len: usize,
    /// Where in the file `start` is.
    offset: u64,
    mapping: Mapping,
    /// The entry in the list that the signal handler looks through. Declared last, but given back
    /// first: see [`Drop`].
    watched: Watched,
}

// SAFETY: the mapping belongs to this value alone and is not tied to a thread; shared, it is only read.
unsafe impl Send for Map {}
// SAFETY: as above; `bytes_mut` needs the only reference.
unsafe impl Sync for Map {}

impl Map {
    /// Maps `len` bytes of `device` from `offset` on; neither need be a multiple of a page.
    ///
    /// # Errors
    /// [`Error::Os`] of a device that is no file, [`Error::ShortRead`] where the file ends earlier, [`Error::TooManyMaps`] with more than
    /// [`Map::LIMIT`] at the same time, otherwise what the operating system reports.
    ///
    /// # Safety
    /// While a slice of the map is lent, nobody may write to that part of the file: not by
    /// [`range`](Map::range) to that range, not by [`bytes`](Map::bytes) to any. (A store never
    /// writes to a page that a snapshot can see.) Cutting the file is no danger to memory: what is
    /// lost reads as zeros.
    pub unsafe fn new(
        device: &dyn Device,
        offset: u64,
        len: usize,
        mapping: Mapping,
    ) -> Result<Map> {
        let path = device.path().to_owned();
        let os = |source| failed(&path, "map", Some(offset), source);
        let no_file = || os(std::io::ErrorKind::Unsupported.into());
        let file = device.descriptor().ok_or_else(no_file)?.fd;
        let length = device.len()?;
        if offset
            .checked_add(len as u64)
            .is_none_or(|end| end > length)
        {
            return Err(Error::ShortRead {
                path,
                offset,
                wanted: len,
                got: usize::try_from(length.saturating_sub(offset)).map_or(len, |got| got.min(len)),
            });
        }
        let kept = std::fs::File::from(file.try_clone_to_owned().map_err(os)?);
        let skip = usize::try_from(offset % page() as u64).unwrap_or(0);
        // Of nothing there is no mapping: one byte of room keeps the rest of the code the same.
        let mapped = (skip + len).max(1);
        let too_large = |_| os(std::io::Error::from_raw_os_error(libc::EFBIG));
        let at = libc::off_t::try_from(offset - skip as u64).map_err(too_large)?;
        let base = map(&kept, at, mapped, mapping).map_err(os)?;
        let Some(watched) = Watched::new(base.as_ptr() as usize, mapped) else {
            unmap(base, mapped);
            return Err(Error::TooManyMaps {
                path,
                limit: Map::LIMIT,
            });
        };
        Ok(Map {
            path,
            file: kept,
            base,
            mapped,
            // SAFETY: `skip` is within the mapping, which has `skip + len` bytes.
            start: unsafe { base.cast::<u8>().add(skip) },
            len,
            offset,
            mapping,
            watched,
        })
    }

    /// How many maps a process can have at the same time.
    pub const LIMIT: usize = lost::SLOTS;

    /// The mapped bytes. What was lost reads as zeros: see [`check`](Map::check).
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: `len` bytes at `start` are mapped readable until `self` is dropped, and nobody
        // writes to them, as the caller of `new` promised. A page behind the end of a file that was
        // cut is replaced by one of zeros before the read goes on.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// `len` bytes from `at` on, counted from the start of the file; `None` where they are not all
    /// mapped.
    #[inline]
    pub fn range(&self, at: u64, len: usize) -> Option<&[u8]> {
        let from = usize::try_from(at.checked_sub(self.offset)?).ok()?;
        if from.checked_add(len)? > self.len {
            return None;
        }
        // SAFETY: the range is within the `len` bytes at `start`; otherwise as in `bytes`.
        Some(unsafe { std::slice::from_raw_parts(self.start.as_ptr().add(from), len) })
    }

    /// The mapped bytes, to be changed for this process only; `None` of a map that is read-only.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        if self.mapping == Mapping::ReadOnly {
            return None;
        }
        // SAFETY: as in `bytes`; the mapping is private and writable, and `self` is borrowed alone.
        Some(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) })
    }

    /// Whether what was read from the map so far are the bytes of the file.
    ///
    /// # Errors
    /// [`Error::Shrunk`] where the file is shorter than the map now, or a page of it could not be
    /// read: whatever was computed from these bytes must be thrown away.
    pub fn check(&self) -> Result<()> {
        let metadata = self
            .file
            .metadata()
            .map_err(|source| failed(&self.path, "measure", None, source))?;
        let needed = self.offset + self.len as u64;
        if metadata.len() < needed || self.watched.lost() {
            return Err(Error::Shrunk {
                path: self.path.clone(),
                needed,
                length: metadata.len(),
            });
        }
        Ok(())
    }

    /// Says how the bytes are going to be read.
    ///
    /// # Errors
    /// What the operating system reports.
    pub fn advise(&self, pattern: Pattern) -> Result<()> {
        let advice = match pattern {
            Pattern::Normal => libc::MADV_NORMAL,
            Pattern::Sequential => libc::MADV_SEQUENTIAL,
            Pattern::Random => libc::MADV_RANDOM,
            Pattern::Soon => libc::MADV_WILLNEED,
        };
        // SAFETY: the range is this map's own, and none of these kinds of advice changes its content.
        let status = unsafe { libc::madvise(self.base.as_ptr(), self.mapped, advice) };
        if status == 0 {
            Ok(())
        } else {
            let source = std::io::Error::last_os_error();
            Err(failed(&self.path, "advise", Some(self.offset), source))
        }
    }

    /// Where in the file the map begins.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // First out of the list: the addresses may belong to somebody else once they are unmapped.
        self.watched.forget();
        unmap(self.base, self.mapped);
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Map")
            .field("path", &self.path)
            .field("offset", &self.offset)
            .field("len", &self.len)
            .field("mapping", &self.mapping)
            .finish_non_exhaustive()
    }
}

/// Maps `bytes` of a file; `at` is a multiple of a page.
fn map(
    file: &std::fs::File,
    at: libc::off_t,
    bytes: usize,
    mapping: Mapping,
) -> std::io::Result<NonNull<libc::c_void>> {
    let (protection, flags) = match mapping {
        Mapping::ReadOnly => (libc::PROT_READ, libc::MAP_SHARED),
        Mapping::CopyOnWrite => (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE),
    };
    // SAFETY: the kernel chooses the address, so no mapping of ours is replaced; the descriptor is open.
    let base = unsafe {
        libc::mmap(
            std::ptr::null_mut(),
            bytes,
            protection,
            flags,
            file.as_raw_fd(),
            at,
        )
    };
    if base == libc::MAP_FAILED {
        return Err(std::io::Error::last_os_error());
    }
    NonNull::new(base).ok_or_else(|| std::io::Error::from_raw_os_error(libc::ENOMEM))
}

fn unmap(base: NonNull<libc::c_void>, bytes: usize) {
    // SAFETY: the range was mapped by `map`, and nothing borrows from it any more.
    let status = unsafe { libc::munmap(base.as_ptr(), bytes) };
    debug_assert_eq!(status, 0, "{}", std::io::Error::last_os_error());
}

/// The size of a page of the operating system, in bytes.
fn page() -> usize {
    lost::page()
}
