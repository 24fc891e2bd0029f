//! Time as the kernel counts it: that of cpus, and of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Of the time of day: differs from call to call.
pub(crate) fn nanoseconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_nanos() as u64)
}

/// How many clock ticks of `/proc` are a second.
pub(crate) fn ticks_per_second() -> u64 {
    // SAFETY: sysconf has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    u64::try_from(ticks).unwrap_or(100).max(1)
}

/// Time that all threads of a process, ended ones too, have had a cpu; `None` where there is no
/// such process. One system call, where a file of `/proc` would take ten times as long.
pub fn of_process(pid: u32) -> Option<Duration> {
    // As <linux/posix-timers.h> has it: the scheduler's count.
    read(pid, 2)
}

/// Time that a thread of this process has had a cpu, up to this moment: what a file says of a thread that runs is as
/// old as the last tick. `None` where there is no such thread.
pub fn of_thread(thread: u32) -> Option<Duration> {
    // The same, of a thread.
    read(thread, 2 | 4)
}

/// The clock of a process or thread: the number's complement, and which of its clocks.
fn read(number: u32, which: libc::clockid_t) -> Option<Duration> {
    // Greater numbers than the kernel gives out would be cut off.
    if number == 0 || number > 1 << 22 {
        return None;
    }
    let clock = (!number.cast_signed() << 3) | which;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into `time`, which is ours; a clock that is not there is an error.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(Duration::new(seconds, u32::try_from(time.tv_nsec).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_time_goes_on() {
        let before = of_process(std::process::id()).unwrap();
        let mut sum = 0u64;
        while of_process(std::process::id()).unwrap() < before + Duration::from_millis(2) {
            sum = sum.wrapping_add(std::hint::black_box(1));
        }
        assert!(sum > 0);
        assert_eq!(of_process(i32::MAX as u32), None);
        assert_eq!(of_process(0), None);
        // SAFETY: gettid has no preconditions.
        let own = unsafe { libc::gettid() }.cast_unsigned();
        assert!(of_thread(own).is_some_and(|time| time > Duration::ZERO));
        assert_eq!(of_thread(i32::MAX as u32), None);
        assert!(ticks_per_second() >= 1);
    }
}
