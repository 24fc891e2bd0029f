//! The bell of a ring.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// What wakes the thread of a ring: an eventfd, which a read in the ring waits for.
#[derive(Debug)]
pub(super) struct Bell(OwnedFd);

impl Bell {
    pub(super) fn new() -> std::io::Result<Bell> {
        // SAFETY: no memory is passed.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC) };
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else owns.
        Ok(Bell(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The eventfd.
    pub(super) fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    /// Wakes the thread.
    pub(super) fn ring(&self) {
        let one = 1u64;
        // SAFETY: eight bytes are read from `one`. It fails only once 2^64 - 2 rings went unheard.
        unsafe { libc::write(self.0.as_raw_fd(), (&raw const one).cast(), 8) };
    }
}
