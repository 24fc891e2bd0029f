//! Direct I/O: reads that go past the page cache.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use crate::device::Alignment;
use crate::error::{Error, Result};
use crate::room::Aligned;

/// What is taken where the system does not say what the device asks for: the size of a page of
/// memory, and of the largest common sector.
const USUAL: Alignment = Alignment {
    memory: 4096,
    offset: 4096,
};

/// Whether reads go past the page cache of the operating system, which then neither keeps what the
/// pool has anyway nor is there to help when the pool is small.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Direct {
    /// Through the cache.
    #[default]
    Never,
    /// Past it where the file system can, else through it.
    IfPossible,
    /// Past it; opening fails where the file system cannot.
    Always,
}

/// A file opened for direct I/O.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: fs::File,
    pub(crate) alignment: Alignment,
}

/// Opens `file`, which is at `path`, once more for direct reads, and tries one.
pub(crate) fn open(path: &Path, file: &fs::File) -> Result<Opened> {
    let refused = |why: String| Error::Direct {
        path: path.to_owned(),
        why,
    };
    let said = |error: std::io::Error| refused(error.to_string());
    let alignment = alignment(file).map_err(said)?;
    let alignment =
        alignment.ok_or_else(|| refused("the file system has none for this file".to_owned()))?;
    // Not by its name, which may by now be that of another file.
    let same = format!("/proc/self/fd/{}", file.as_raw_fd());
    let opened = fs::OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_DIRECT)
        .open(same)
        .map_err(said)?;
    let mut buffer = Aligned::new(alignment.offset as usize, alignment.memory as usize);
    opened.read_at(buffer.as_mut_slice(), 0).map_err(said)?;
    Ok(Opened {
        file: opened,
        alignment,
    })
}

/// What direct reads of a file must keep to; `None` where the system says that there are none.
fn alignment(file: &fs::File) -> std::io::Result<Option<Alignment>> {
    // SAFETY: all zero is a value of this structure of numbers.
    let mut found: libc::statx = unsafe { std::mem::zeroed() };
    // SAFETY: the descriptor is open, the path is empty and ends, `found` takes the answer.
    let status = unsafe {
        libc::statx(
            file.as_raw_fd(),
            c"".as_ptr(),
            libc::AT_EMPTY_PATH,
            libc::STATX_DIOALIGN,
            &raw mut found,
        )
    };
    if status != 0 {
        let error = std::io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOSYS | libc::EINVAL) => Ok(Some(USUAL)),
            _ => Err(error),
        };
    }
    let (memory, offset) = (found.stx_dio_mem_align, found.stx_dio_offset_align);
    if found.stx_mask & libc::STATX_DIOALIGN == 0 {
        // Kernels before 6.1, and file systems that do not say.
        return Ok(Some(USUAL));
    }
    let sane = memory.is_power_of_two() && offset.is_power_of_two() && offset <= 1 << 20;
    Ok(sane.then_some(Alignment { memory, offset }))
}
