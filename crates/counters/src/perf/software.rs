//! Events of the kernel that belong to a process.

use std::io;

use super::event::{Event, Of, Wanted};
use crate::{Process, Reason, Result, Why};

/// `PERF_TYPE_SOFTWARE`
const SOFTWARE: u32 = 1;

/// Threads that are attached to one by one. Beyond that, descriptors run out.
const THREADS: usize = 128;

/// How often the list of threads is read again until it stands still.
const TRIES: usize = 5;

/// An event that the kernel counts itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Migrations,
    Switches,
}

impl Kind {
    fn config(self) -> u64 {
        match self {
            // PERF_COUNT_SW_CONTEXT_SWITCHES, PERF_COUNT_SW_CPU_MIGRATIONS.
            Kind::Switches => 3,
            Kind::Migrations => 4,
        }
    }
}

/// Counts an event in all threads of a process, those it starts later included.
#[derive(Debug)]
pub(crate) struct Software(Vec<Event>);

impl Software {
    /// Attaches to a process. What happened before does not count.
    ///
    /// Both kinds of event happen in the kernel. A user who may only count in user mode would
    /// be told zero, so events are never opened that way: they are unavailable then.
    pub(crate) fn attach(
        process: &Process,
        kind: Kind,
    ) -> Result<std::result::Result<Software, Reason>> {
        let wanted = Wanted {
            kind: SOFTWARE,
            config: [kind.config(), 0, 0],
            threads: true,
            ..Wanted::default()
        };
        let mut before = process.threads()?;
        for _ in 0..TRIES {
            if before.len() > THREADS {
                let text = format!(
                    "perf counts are for at most {THREADS} threads, there are {}",
                    before.len()
                );
                return Ok(Err(Reason {
                    why: Why::Refused,
                    text,
                }));
            }
            let opened: io::Result<Vec<Event>> = before
                .iter()
                .map(|&thread| Event::open(wanted, Of::Thread(thread)))
                .filter(|opened| !gone(opened))
                .collect();
            let events = match opened {
                Ok(events) => events,
                Err(error) => return Ok(Err(reason(&error))),
            };
            // A thread that came meanwhile may count with the one that started it, or not.
            let after = process.threads()?;
            if after.iter().all(|thread| before.contains(thread)) {
                return Ok(Ok(Software(events)));
            }
            before = after;
        }
        Ok(Err(Reason {
            why: Why::NotYet,
            text: "the process starts threads faster than they can be attached to".to_owned(),
        }))
    }

    /// How many since it was attached.
    pub(crate) fn read(&self) -> io::Result<u64> {
        let mut sum = 0;
        for event in &self.0 {
            sum += event.read()?.value;
        }
        Ok(sum)
    }
}

fn gone(opened: &io::Result<Event>) -> bool {
    matches!(opened, Err(error) if error.raw_os_error() == Some(libc::ESRCH))
}

/// Why the kernel did not open an event.
pub(crate) fn reason(error: &io::Error) -> Reason {
    let (why, text) = match error.raw_os_error() {
        Some(libc::EACCES | libc::EPERM) => (
            Why::Refused,
            format!(
                "perf_event_open is refused ({error}): it takes kernel.perf_event_paranoid <= 1, or CAP_PERFMON, and a container that allows the call"
            ),
        ),
        Some(libc::EMFILE | libc::ENFILE) => (
            Why::Refused,
            format!("perf_event_open: {error}; raise ulimit -n"),
        ),
        Some(libc::ENOSYS | libc::ENOENT | libc::ENODEV | libc::EOPNOTSUPP) => (
            Why::Absent,
            format!("this kernel or machine does not have the event ({error})"),
        ),
        Some(libc::E2BIG | libc::EINVAL) => (
            Why::Absent,
            format!("this kernel does not know the event or the way it is asked for ({error})"),
        ),
        _ => (Why::Refused, format!("perf_event_open: {error}")),
    };
    Reason { why, text }
}
