//! What is read of `/proc`: as few files as can be, as thousands of processes may be governed.

use std::fs;
use std::io;
use std::time::Duration;

use counters::Stat;
use serde::{Deserialize, Serialize};

/// A process that no other is mistaken for: numbers are used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since the machine did.
    pub start: u64,
}

impl Identity {
    /// The process that has this number now; `None` where none has, or it has ended and only
    /// waits to be collected.
    pub fn of(pid: u32) -> Option<Identity> {
        let stat = stat(pid)?;
        (!stat.ended()).then_some(Identity {
            pid,
            start: stat.start,
        })
    }

    /// Whether it is still there.
    pub fn alive(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }
}

/// The process's line in `/proc`; `None` where there is no such process.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    let line = fs::read(format!("/proc/{pid}/stat")).ok()?;
    Stat::parse(&line, "stat").ok()
}

/// The name of its command.
pub(crate) fn name(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// All processes that this user can see.
pub(crate) fn all() -> Vec<u32> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    folder.flatten().filter_map(number).collect()
}

/// Its threads; none where it has ended.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    let Ok(folder) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    folder.flatten().filter_map(number).collect()
}

/// The children that a thread has started.
pub(crate) fn children(pid: u32, thread: u32) -> Vec<u32> {
    let list = fs::read_to_string(format!("/proc/{pid}/task/{thread}/children"));
    let list = list.unwrap_or_default();
    let numbers = list.split_ascii_whitespace();
    numbers.filter_map(|child| child.parse().ok()).collect()
}

/// Processor time of a process, threads that have ended included; `None` where there is none. One
/// system call, where a file would take ten times as long.
pub(crate) fn time(pid: u32) -> Option<Duration> {
    // Greater numbers than the kernel gives out would be cut off.
    if pid == 0 || pid > 1 << 22 {
        return None;
    }
    // As <linux/posix-timers.h> has it: the number's complement, and 2 for the scheduler's count.
    let clock = (!pid.cast_signed() << 3) | 2;
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into `time`, which is ours.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return None;
    }
    let seconds = u64::try_from(time.tv_sec).ok()?;
    Some(Duration::new(seconds, time.tv_nsec as u32))
}

/// How long ago a process started that has this `start`.
pub(crate) fn age(start: u64) -> Duration {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into `now`, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_BOOTTIME, &raw mut now) };
    let now = Duration::new(now.tv_sec as u64, now.tv_nsec as u32);
    now.saturating_sub(Duration::from_secs_f64(start as f64 / ticks_per_second()))
}

/// Clock ticks of `/proc`, per second.
pub(crate) fn ticks_per_second() -> f64 {
    // SAFETY: sysconf has no preconditions.
    let ticks = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    if ticks > 0 { ticks as f64 } else { 100.0 }
}

/// Whether an error says that a process or thread has ended.
pub(crate) fn gone(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::ESRCH | libc::ENOENT))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process() {
        let own = std::process::id();
        let identity = Identity::of(own).unwrap();
        assert!(identity.alive());
        let other = Identity {
            start: identity.start + 1,
            ..identity
        };
        assert!(!other.alive(), "the number alone is not the process");
        assert!(threads(own).contains(&own));
        assert!(all().contains(&own));
        assert!(time(own).is_some());
        assert!(age(identity.start) < Duration::from_secs(86_400));
        assert_eq!(time(0x3fff_ffff), None);
        assert_eq!(Identity::of(0x3fff_ffff), None);
    }
}
