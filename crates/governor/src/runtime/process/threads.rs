//! Processor time and waiting time of the workers' threads between two looks.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use counters::{Schedstat, clock};

use crate::runtime::control::Busy;

/// The threads of the workers, by number.
#[derive(Debug, Default)]
pub(super) struct Threads {
    known: HashMap<u32, Thread>,
}

#[derive(Debug)]
struct Thread {
    /// The files in which the kernel counts waiting; `None` if it does not.
    file: Option<File>,
    last: Duration,
    seen: bool,
}

impl Threads {
    /// Time in which these threads ran, or were ready to run, since the last look; new threads count from now. `None`
    /// if none of them can be read.
    pub(super) fn read(&mut self, numbers: &[u32]) -> Option<Busy> {
        self.known
            .values_mut()
            .for_each(|thread| thread.seen = false);
        let (mut time, mut waits, mut read) = (Duration::ZERO, 0, 0);
        for number in numbers {
            let new = !self.known.contains_key(number);
            let thread = self.known.entry(*number).or_insert_with(|| open(*number));
            thread.seen = true;
            let Some(now) = thread.time(*number) else {
                continue;
            };
            if !new {
                time += now.saturating_sub(thread.last);
            }
            thread.last = now;
            read += 1;
            waits += usize::from(thread.file.is_some());
        }
        self.known.retain(|_, thread| thread.seen);
        let source = if waits == read {
            format!("cpu clocks and schedstat waits of {read} workers")
        } else {
            format!("cpu clocks of {read} workers")
        };
        (read > 0).then_some(Busy { time, source })
    }
}

fn open(number: u32) -> Thread {
    let own = std::process::id();
    let file = File::open(format!("/proc/{own}/task/{number}/schedstat")).ok();
    // A kernel that does not count writes zeros.
    let counts = |file: &File| stat(file).is_some_and(|stat| stat.counted());
    Thread {
        file: file.filter(counts),
        last: Duration::ZERO,
        seen: true,
    }
}

fn stat(file: &File) -> Option<Schedstat> {
    let mut buffer = [0; 128];
    let bytes = file.read_at(&mut buffer, 0).ok()?;
    Schedstat::parse(&buffer[..bytes], "schedstat").ok()
}

impl Thread {
    fn time(&self, number: u32) -> Option<Duration> {
        let waited = match &self.file {
            Some(file) => Duration::from_nanos(stat(file)?.wait),
            None => Duration::ZERO,
        };
        Some(clock::of_thread(number)? + waited)
    }
}
