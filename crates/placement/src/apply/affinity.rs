//! The system calls that read and set the affinity of a thread.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

use crate::CpuSet;

/// The words of a cpu mask: more than any kernel is built for.
const WORDS: usize = 8192 / 64;

type Mask = [u64; WORDS];

fn mask(cpus: &CpuSet) -> Mask {
    let mut mask = [0; WORDS];
    for cpu in cpus.iter() {
        if let Some(word) = mask.get_mut(cpu as usize / 64) {
            *word |= 1 << (cpu % 64);
        }
    }
    mask
}

/// The number of the calling thread.
pub(crate) fn current() -> i32 {
    // SAFETY: gettid has no preconditions.
    unsafe { libc::gettid() }
}

/// Processor time of all children of this process that have ended and were waited for, and of theirs.
pub(crate) fn children() -> Duration {
    // SAFETY: all zeros are a valid value of the structure, which the kernel fills.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes one structure into `usage`, which is ours.
    if unsafe { libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage) } != 0 {
        return Duration::ZERO;
    }
    let time = |of: libc::timeval| {
        // Neither is ever negative.
        let seconds = u64::try_from(of.tv_sec).unwrap_or_default();
        let microseconds = u64::try_from(of.tv_usec).unwrap_or_default();
        Duration::from_secs(seconds) + Duration::from_micros(microseconds)
    };
    time(usage.ru_utime) + time(usage.ru_stime)
}

/// The cpus a thread may run on.
pub(crate) fn get(thread: i32) -> io::Result<CpuSet> {
    let mut mask: Mask = [0; WORDS];
    // SAFETY: the kernel writes at most `size_of_val(&mask)` bytes into `mask`, which is ours.
    let written = unsafe {
        libc::syscall(
            libc::SYS_sched_getaffinity,
            thread,
            size_of_val(&mask),
            mask.as_mut_ptr(),
        )
    };
    if written <= 0 {
        return Err(io::Error::last_os_error());
    }
    let set = |cpu: &u32| mask[*cpu as usize / 64] >> (cpu % 64) & 1 == 1;
    // The kernel says how much it wrote; no bit beyond is set.
    let bits = (written as u32 * 8).min(WORDS as u32 * 64);
    Ok((0..bits).filter(set).collect())
}

/// Binds a thread.
pub(crate) fn set(thread: i32, cpus: &CpuSet) -> io::Result<()> {
    bind(thread, &mask(cpus))
}

fn bind(thread: i32, mask: &Mask) -> io::Result<()> {
    // SAFETY: the kernel reads `size_of_val(mask)` bytes of `mask`.
    let result = unsafe {
        libc::syscall(
            libc::SYS_sched_setaffinity,
            thread,
            size_of_val(mask),
            mask.as_ptr(),
        )
    };
    if result == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Makes a command start on these cpus.
pub(crate) fn inherit(command: &mut Command, cpus: &CpuSet) {
    let mask = mask(cpus);
    let bind = move || bind(0, &mask);
    // SAFETY: between fork and exec the closure makes one system call on memory it owns; it neither
    // allocates nor takes locks.
    unsafe {
        command.pre_exec(bind);
    }
}
