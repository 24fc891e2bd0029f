//! Binding threads to cpus.

use std::io;

/// The words of a cpu mask: more than any kernel is built for.
const WORDS: usize = 8192 / 64;

/// Binds the calling thread to `cpus`.
///
/// # Errors
///
/// What the system says: `EINVAL` where none of them is allowed, `EPERM` where a container
/// forbids the call.
pub(crate) fn bind(cpus: &[u32]) -> io::Result<()> {
    let mut mask = [0u64; WORDS];
    for &cpu in cpus {
        if let Some(word) = mask.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    // SAFETY: the kernel reads `size_of_val(&mask)` bytes of `mask`; 0 is the calling thread.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            0,
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
