//! Every migration of a thread to another cpu, with its time, from the kernel's scheduler.
//!
//! Sampling misses a thread that goes to another node and comes back between two samples. The kernel's tracepoint
//! `sched_migrate_task` reports every migration. Only root may trace it, as in the emulated machine.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The folder of the kernel's tracing.
const TRACING: &str = "/sys/kernel/tracing";

/// Size of each cpu's buffer, in KiB.
const KIB: &str = "2048";

/// The migration of a thread from one cpu to another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Move {
    /// The time, in seconds since tracing began.
    pub time: f64,
    /// The thread's number.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// The cpu it left.
    pub from: u32,
    /// The cpu it went to.
    pub to: u32,
}

/// Traces until it is dropped.
pub(super) struct Tracing {
    folder: PathBuf,
    begun: f64,
}

impl Tracing {
    /// Starts tracing; `None` if the kernel cannot, or does not let us.
    pub(super) fn begin() -> Option<Tracing> {
        let name = format!("instances/atoll-lab-{}", std::process::id());
        let folder = Path::new(TRACING).join(name);
        fs::create_dir(&folder).ok()?;
        let tracing = Tracing {
            folder,
            begun: monotonic(),
        };
        let put = |file: &str, text: &str| fs::write(tracing.folder.join(file), text).ok();
        put("buffer_size_kb", KIB)?;
        put("trace_clock", "mono")?;
        put("events/sched/sched_migrate_task/enable", "1")?;
        Some(tracing)
    }

    /// All migrations so far, except those of this process and of kernel threads; `None` if some were lost.
    pub(super) fn moves(&self) -> Option<Vec<Move>> {
        let _ = fs::write(self.folder.join("tracing_on"), "0");
        let text = fs::read_to_string(self.folder.join("trace")).ok()?;
        if text.contains("LOST") {
            return None;
        }
        let own = tasks("/proc/self/task");
        let kernel = kernel_threads();
        let ours = |one: &Move| {
            !own.contains(&one.thread)
                && !kernel.contains(&one.thread)
                && !one.name.starts_with("kworker/")
        };
        let all = text.lines().filter_map(|line| parse(line, self.begun));
        Some(all.filter(ours).collect())
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.folder);
    }
}

/// The clock of the trace, in seconds.
fn monotonic() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into `time`, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn tasks(folder: &str) -> BTreeSet<u32> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.collect()
}

/// The kernel threads: the descendants of process 2.
fn kernel_threads() -> BTreeSet<u32> {
    let kernel = |pid: &u32| {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
        *pid == 2 || rest.split_whitespace().nth(1) == Some("2")
    };
    tasks("/proc").into_iter().filter(kernel).collect()
}

/// `load-12 [003] d..2. 5.123456: sched_migrate_task: comm=load pid=13 prio=120 orig_cpu=3 dest_cpu=7`
fn parse(line: &str, begun: f64) -> Option<Move> {
    let (head, tail) = line.split_once(": sched_migrate_task: comm=")?;
    let time: f64 = head.split_whitespace().next_back()?.parse().ok()?;
    // Names may have blanks in them.
    let (name, rest) = tail.rsplit_once(" pid=")?;
    let mut words = rest.split_whitespace();
    let thread = words.next()?.parse().ok()?;
    let mut value =
        |key: &str| -> Option<u32> { words.find_map(|word| word.strip_prefix(key)?.parse().ok()) };
    Some(Move {
        time: time - begun,
        thread,
        name: name.to_owned(),
        from: value("orig_cpu=")?,
        to: value("dest_cpu=")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_trace_are_understood() {
        let line = "     postgres-431     [003] d..2.    15.250000: sched_migrate_task: comm=parallel worker pid=432 prio=120 orig_cpu=3 dest_cpu=7";
        let expected = Move {
            time: 5.25,
            thread: 432,
            name: "parallel worker".to_owned(),
            from: 3,
            to: 7,
        };
        assert_eq!(parse(line, 10.0), Some(expected));
        for other in [
            "# tracer: nop",
            "",
            "x-1 [000] d..2. 1.0: sched_switch: prev_comm=x prev_pid=1",
        ] {
            assert_eq!(parse(other, 0.0), None, "{other}");
        }
    }
}
