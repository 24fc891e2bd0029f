//! Binding threads to cpus.

use std::io;

/// The words of a cpu mask: more than any kernel is built for.
const WORDS: usize = 8192 / 64;

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
    let mut mask = [0u64; WORDS];
    for &cpu in cpus {
        if let Some(word) = mask.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    // SAFETY: the kernel reads `size_of_val(&mask)` bytes of `mask`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            thread,
            size_of_val(&mask),
            mask.as_ptr(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}
