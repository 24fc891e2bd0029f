//! Binding threads to cpus.

use std::io;

use placement::{CpuSet, apply};

/// Binds the calling thread to `cpus`.
///
/// # Errors
///
/// Those of [`bind_thread`].
pub(crate) fn bind(cpus: &[u32]) -> io::Result<()> {
    bind_thread(0, cpus)
}

/// The operating system's number of the calling thread.
pub(crate) fn own_id() -> u32 {
    // SAFETY: the call has no preconditions.
    unsafe { libc::gettid() }.cast_unsigned()
}

/// Binds a thread of this process to `cpus`; 0 is the calling one.
///
/// # Errors
///
/// What the system says: `EINVAL` where none of them is allowed, `EPERM` where a container
/// forbids the call.
pub(crate) fn bind_thread(thread: u32, cpus: &[u32]) -> io::Result<()> {
    let cpus: CpuSet = cpus.iter().copied().collect();
    apply::bind(thread.cast_signed(), &cpus)
}
