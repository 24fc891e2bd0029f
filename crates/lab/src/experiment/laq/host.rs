//! The system's figures of this process and its threads.

use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde::Serialize;

/// How a thread spent a stretch of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// Seconds on a cpu.
    pub computing: f64,
    /// Seconds in which it was ready while another thread ran on its cpu.
    pub waiting: f64,
    /// Seconds asleep, with nothing to do.
    pub asleep: f64,
}

/// The threads of this process.
pub fn threads() -> BTreeSet<u32> {
    let Ok(all) = std::fs::read_dir("/proc/self/task") else {
        return BTreeSet::new();
    };
    let names = all.flatten().map(|entry| entry.file_name());
    names
        .filter_map(|name| name.to_str()?.parse().ok())
        .collect()
}

/// Whether it is a worker. Threads that serve the workers have other names; a thread has the name of its creator
/// until it first runs.
pub fn computes(thread: u32) -> bool {
    let name = std::fs::read_to_string(format!("/proc/self/task/{thread}/comm"));
    name.is_ok_and(|name| name.trim() == "atoll-worker")
}

/// Nanoseconds on a cpu and waiting for one since the thread began; `None` if the system does not count them.
pub fn schedule(thread: u32) -> Option<(u64, u64)> {
    let text = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
    let mut words = text.split_whitespace();
    let mut next = || words.next()?.parse().ok();
    Some((next()?, next()?))
}

impl Spent {
    /// The times between two readings, `seconds` apart.
    pub fn between(before: (u64, u64), after: (u64, u64), seconds: f64) -> Spent {
        let computing = after.0.saturating_sub(before.0) as f64 / 1e9;
        let waiting = after.1.saturating_sub(before.1) as f64 / 1e9;
        Spent {
            computing,
            waiting,
            asleep: (seconds - computing - waiting).max(0.0),
        }
    }
}

/// Page faults of this process that needed no disk, so far.
pub fn faults() -> u64 {
    // SAFETY: all zeros is a value of the struct, which the call then fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    u64::try_from(usage.ru_minflt).unwrap_or(0)
}

/// How often the memory of a command is read.
const LOOK: Duration = Duration::from_millis(1);

/// Runs a command to its end, discards its output, and returns its peak memory in bytes. The system's figure for an
/// ended process is at least that of its parent at the start, so the command is read while it runs.
pub fn peak(command: &mut Command) -> std::io::Result<u64> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = command.stderr(Stdio::null()).spawn()?;
    let status = format!("/proc/{}/status", child.id());
    let mut most = None;
    loop {
        let ended = child.try_wait()?;
        if let Some(bytes) = std::fs::read_to_string(&status).ok().and_then(high_water) {
            most = Some(bytes);
        }
        match ended {
            None => std::thread::sleep(LOOK),
            Some(status) if !status.success() => {
                return Err(std::io::Error::other(format!("it ended with {status}")));
            }
            Some(_) => break,
        }
    }
    most.ok_or_else(|| std::io::Error::other("the system does not tell"))
}

/// The peak memory of a process, from its `status`.
fn high_water(status: String) -> Option<u64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_computes_is_told_from_one_that_sleeps() {
        let spent = Spent::between((1_000, 0), (2_000_001_000, 500_000_000), 4.0);
        let wanted = Spent {
            computing: 2.0,
            waiting: 0.5,
            asleep: 1.5,
        };
        assert_eq!(spent, wanted);
        assert_eq!(Spent::between((5, 5), (0, 0), 0.0), Spent::default());
        // SAFETY: it takes nothing and returns a number.
        let own = u32::try_from(unsafe { libc::gettid() }).unwrap();
        assert!(threads().contains(&own) && !computes(own));
    }

    #[test]
    fn memory_of_a_command_is_told_and_failures_are_errors() {
        let used = peak(Command::new("sleep").arg("0.1")).unwrap();
        assert!((64 << 10..1 << 32).contains(&used), "{used}");
        let failed = peak(Command::new("sh").args(["-c", "exit 3"]));
        assert!(failed.is_err());
        let told = "Name:\tx\nVmPeak:\t 9 kB\nVmHWM:\t  12 kB\n".to_owned();
        assert_eq!(
            (high_water(told), high_water(String::new())),
            (Some(12 << 10), None)
        );
    }
}
