//! Which mapping is a thread's stack.

use crate::{Process, System};

/// An address in the stack of a thread that is not the first of its process; `None` where
/// nothing tells.
///
/// 1. C libraries keep a thread's control block at the top of its stack, and the list of the
///    mutexes it holds in there. The kernel knows where that is, also of a running thread.
/// 2. Of a thread that waits, the kernel tells the stack pointer.
pub(crate) fn address(system: &System, process: &Process, thread: u32) -> Option<u64> {
    if system.is_real() {
        robust_list(thread).or_else(|| pointer(process, thread))
    } else {
        pointer(process, thread)
    }
}

fn robust_list(thread: u32) -> Option<u64> {
    let mut head: usize = 0;
    let mut bytes: usize = 0;
    // SAFETY: the kernel writes one address and one size, to variables of ours.
    let result = unsafe {
        libc::syscall(
            libc::SYS_get_robust_list,
            thread,
            &raw mut head,
            &raw mut bytes,
        )
    };
    (result == 0 && head != 0).then_some(head as u64)
}

/// From `/proc/PID/task/TID/syscall`: the last but one number, unless the thread runs.
fn pointer(process: &Process, thread: u32) -> Option<u64> {
    let text = process.text(&format!("task/{thread}/syscall")).ok()?;
    let mut words = text.split_ascii_whitespace().rev().skip(1);
    let pointer = words.next()?.strip_prefix("0x")?;
    u64::from_str_radix(pointer, 16).ok().filter(|p| *p != 0)
}
