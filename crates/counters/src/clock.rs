//! Time as the kernel counts it.

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
/// such process.
pub(crate) fn of_process(pid: u32) -> Option<Duration> {
    // Greater numbers than the kernel gives out are cut off in a clock's number.
    let pid = libc::pid_t::try_from(pid)
        .ok()
        .filter(|pid| *pid <= 1 << 22)?;
    let mut clock: libc::clockid_t = 0;
    // SAFETY: the call writes one number, to a variable of ours.
    if unsafe { libc::clock_getcpuclockid(pid, &raw mut clock) } != 0 {
        return None;
    }
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the call writes one time, to a variable of ours.
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
        assert!(ticks_per_second() >= 1);
    }
}
