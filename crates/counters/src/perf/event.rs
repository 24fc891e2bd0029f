//! One event of `perf_event_open(2)`.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::FromRawFd;

/// Which event, of whom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// `PERF_TYPE_*`, or the number of a unit.
    pub kind: u32,
    /// Which of its events, and its parameters.
    pub config: [u64; 3],
    /// Also count what threads do that the watched one starts, not other processes.
    pub threads: bool,
    /// Events from one sample to the next; 0 takes none.
    pub period: u64,
    /// What a sample tells, `PERF_SAMPLE_*`.
    pub sample: u64,
    /// How near to the instruction samples must be, 0 ..= 3.
    pub precise: u8,
}

/// Whose events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    /// A thread, on all cpus.
    Thread(u32),
    /// A cpu, all threads.
    Cpu(u32),
}

/// `struct perf_event_attr` in the size of Linux 2.6.33 (`PERF_ATTR_SIZE_VER1`); later kernels
/// take the fields after it as zero.
#[repr(C)]
#[derive(Debug, Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    period: u64,
    sample: u64,
    format: u64,
    flags: u64,
    wakeup: u32,
    breakpoint: u32,
    config1: u64,
    config2: u64,
}

const _: () = assert!(size_of::<Attributes>() == 72);

/// Bits of `flags`, in the order of the manual.
const INHERIT: u64 = 1 << 1;
const PRECISE: u32 = 15;
const INHERIT_THREAD: u64 = 1 << 35;

/// `PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING`
const TIMES: u64 = 3;

/// `PERF_FLAG_FD_CLOEXEC`
const CLOEXEC: libc::c_ulong = 8;

/// An event that counts.
#[derive(Debug)]
pub(crate) struct Event(File);

/// What an event has counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub value: u64,
    /// Time it was to count, and time it did: less where events share a counter.
    pub enabled: u64,
    pub running: u64,
}

impl Counted {
    /// Scaled to the whole time; `None` where it never got a counter, which is not a zero.
    pub(crate) fn scaled(self) -> Option<f64> {
        match (self.enabled, self.running) {
            // Not scheduled yet: its thread has not run, so nothing can have happened.
            (0, 0) => Some(self.value as f64),
            (_, 0) => None,
            (enabled, running) => Some(self.value as f64 * enabled as f64 / running as f64),
        }
    }
}

impl Event {
    /// Starts to count.
    pub(crate) fn open(wanted: Wanted, of: Of) -> io::Result<Event> {
        let threads = if wanted.threads {
            INHERIT | INHERIT_THREAD
        } else {
            0
        };
        let attributes = Attributes {
            kind: wanted.kind,
            size: size_of::<Attributes>() as u32,
            config: wanted.config[0],
            config1: wanted.config[1],
            config2: wanted.config[2],
            format: TIMES,
            period: wanted.period,
            sample: wanted.sample,
            flags: threads | u64::from(wanted.precise & 3) << PRECISE,
            ..Attributes::default()
        };
        let (thread, cpu) = match of {
            Of::Thread(thread) => (libc::pid_t::try_from(thread), Ok(-1)),
            Of::Cpu(cpu) => (Ok(-1), libc::c_int::try_from(cpu)),
        };
        let (Ok(thread), Ok(cpu)) = (thread, cpu) else {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        };
        // SAFETY: the kernel reads `size` bytes of the attributes, which are as long.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                &raw const attributes,
                thread,
                cpu,
                -1 as libc::c_int,
                CLOEXEC,
            )
        };
        match i32::try_from(fd) {
            // SAFETY: the call has just opened it, so nobody else owns it.
            Ok(fd) if fd >= 0 => Ok(Event(unsafe { File::from_raw_fd(fd) })),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// The file, for its ring of samples.
    pub(crate) fn file(&self) -> &File {
        &self.0
    }

    /// What it has counted since it was opened.
    pub(crate) fn read(&self) -> io::Result<Counted> {
        let mut bytes = [0; 24];
        (&self.0).read_exact(&mut bytes)?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at * 8..at * 8 + 8]);
            u64::from_ne_bytes(word)
        };
        Ok(Counted {
            value: word(0),
            enabled: word(1),
            running: word(2),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_never_ran_is_not_zero() {
        let counted = |value, enabled, running| Counted {
            value,
            enabled,
            running,
        };
        assert_eq!(counted(0, 0, 0).scaled(), Some(0.0));
        assert_eq!(counted(0, 100, 0).scaled(), None);
        assert_eq!(counted(10, 100, 25).scaled(), Some(40.0));
    }
}
