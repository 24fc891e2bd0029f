//! Reads `/proc`, with as few files as possible, because thousands of processes may be governed.

use std::fmt::{self, Write as _};
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::FromRawFd;
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

use counters::Stat;
use serde::{Deserialize, Serialize};

/// The identity of a process: its number alone may be reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Identity {
    /// Its number.
    pub pid: u32,
    /// When it started, in clock ticks since the machine booted.
    pub start: u64,
}

impl Identity {
    /// The process that has this number now; `None` if there is none, or it is a zombie.
    pub fn of(pid: u32) -> Option<Identity> {
        let stat = stat(pid)?;
        (!stat.ended()).then_some(Identity {
            pid,
            start: stat.start,
        })
    }

    /// Whether it still runs.
    pub fn alive(self) -> bool {
        Identity::of(self.pid) == Some(self)
    }
}

/// A buffer for a path with its terminating zero; no path here is longer.
struct Path {
    bytes: [u8; 64],
    length: usize,
}

impl fmt::Write for Path {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length + text.len();
        // The last byte stays zero.
        if end >= self.bytes.len() {
            return Err(fmt::Error);
        }
        self.bytes[self.length..end].copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Writes the path without allocating, because hundreds are needed per second.
fn path(of: fmt::Arguments<'_>) -> Option<Path> {
    let mut path = Path {
        bytes: [0; 64],
        length: 0,
    };
    path.write_fmt(of).ok()?;
    Some(path)
}

/// Opens a file for reading with one system call.
pub(crate) fn open(of: fmt::Arguments<'_>) -> Option<File> {
    let path = path(of)?;
    let flags = libc::O_RDONLY | libc::O_CLOEXEC;
    // SAFETY: the bytes end with a zero.
    let file = unsafe { libc::open(path.bytes.as_ptr().cast(), flags) };
    // SAFETY: it was opened just now, and nobody else has it.
    (file >= 0).then(|| unsafe { File::from_raw_fd(file) })
}

/// The line of `/proc/PID/stat`; `None` if there is no such process.
pub(crate) fn stat(pid: u32) -> Option<Stat> {
    // The kernel gives it at once; it is never so long.
    let mut line = [0; 2048];
    let bytes = open(format_args!("/proc/{pid}/stat"))?
        .read(&mut line)
        .ok()?;
    Stat::parse(&line[..bytes], "stat").ok()
}

/// The name of its command.
pub(crate) fn name(pid: u32) -> Option<String> {
    let name = fs::read(format!("/proc/{pid}/comm")).ok()?;
    Some(String::from_utf8_lossy(name.trim_ascii_end()).into_owned())
}

/// The user that a process belongs to.
pub(crate) fn user_of(pid: u32) -> Option<u32> {
    Some(fs::metadata(format!("/proc/{pid}")).ok()?.uid())
}

/// All processes that this user can see.
pub(crate) fn all() -> Vec<u32> {
    let Ok(folder) = fs::read_dir("/proc") else {
        return Vec::new();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    folder.flatten().filter_map(number).collect()
}

/// Its threads; none if it has ended.
pub(crate) fn threads(pid: u32) -> Vec<u32> {
    if alone(pid) {
        return vec![pid];
    }
    let Ok(folder) = fs::read_dir(format!("/proc/{pid}/task")) else {
        return Vec::new();
    };
    let number = |entry: fs::DirEntry| entry.file_name().to_str()?.parse().ok();
    folder.flatten().filter_map(number).collect()
}

/// Whether it has one thread, without listing them: the folder of the threads has two links, plus one for each
/// thread.
fn alone(pid: u32) -> bool {
    let Some(path) = path(format_args!("/proc/{pid}/task")) else {
        return false;
    };
    // SAFETY: all bytes zero are a valid stat, and the kernel writes one; the path ends with a zero.
    unsafe {
        let mut about: libc::stat = std::mem::zeroed();
        libc::stat(path.bytes.as_ptr().cast(), &raw mut about) == 0 && about.st_nlink == 3
    }
}

/// The children that a thread has started.
pub(crate) fn children(pid: u32, thread: u32) -> Vec<u32> {
    let Some(mut file) = open(format_args!("/proc/{pid}/task/{thread}/children")) else {
        return Vec::new();
    };
    let mut part = [0; 4096];
    let mut list = Vec::new();
    while let Ok(bytes @ 1..) = file.read(&mut part) {
        list.extend_from_slice(&part[..bytes]);
    }
    let numbers = list.split(u8::is_ascii_whitespace);
    let number = |child: &[u8]| std::str::from_utf8(child).ok()?.parse().ok();
    numbers.filter_map(number).collect()
}

/// The age of a process that has this `start`.
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
        assert!(!alone(own), "the test has a thread of its own");
        assert!(all().contains(&own));
        assert!(age(identity.start) < Duration::from_secs(86_400));
        assert!(threads(0x3fff_ffff).is_empty());
        assert!(children(0x3fff_ffff, 0x3fff_ffff).is_empty());
        assert!(open(format_args!("/proc/{:0>60}", "self")).is_none());
        assert_eq!(Identity::of(0x3fff_ffff), None);
    }

    #[test]
    fn children_and_threads_of_one_that_has_one() {
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        let pid = child.id();
        assert_eq!(threads(pid), [pid]);
        let own = std::process::id();
        let all: Vec<u32> = threads(own)
            .into_iter()
            .flat_map(|thread| children(own, thread))
            .collect();
        assert!(all.contains(&pid), "{pid} is not among {all:?}");
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(threads(pid).is_empty());
    }
}
