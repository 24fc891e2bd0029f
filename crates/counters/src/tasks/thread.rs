//! One thread over time.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::{Nodes, Process, Reading, Result, Schedstat, Scope, Source, Stat, Unit, Value, clock};

/// What a thread did. Counts are since it was first seen, loads since the last look.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThreadActivity {
    /// Its number.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// The cpu it ran on last.
    pub cpu: Option<u32>,
    /// The node of that cpu.
    pub node: Option<u32>,
    /// Share of the time it had a cpu; `None` at first.
    pub load: Option<f64>,
    /// Share of the time it could have run and had none; `None` at first, and where the kernel
    /// does not say.
    pub waiting: Option<f64>,
    /// Time on a cpu.
    pub seconds: f64,
    /// Moves to another cpu; `None` where the kernel does not say. In a process of many threads
    /// a few looks old.
    pub migrations: Option<u64>,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
}

impl ThreadActivity {
    /// As readings.
    pub(super) fn readings(&self, process: u32) -> Vec<Reading> {
        let scope = Scope::Thread {
            process,
            thread: self.thread,
        };
        let new =
            |name, value, unit, source| Reading::new(name, value, unit, source, scope.clone());
        let mut readings = Vec::new();
        if let Some(load) = self.load {
            readings.push(new(
                "load",
                Value::Number(load),
                Unit::Cpus,
                Source::Schedstat,
            ));
        }
        if let Some(count) = self.migrations {
            let value = Value::Count(count);
            readings.push(new("migrations", value, Unit::Events, Source::Sched));
        }
        readings
    }
}

/// How time on a cpu is read.
#[derive(Debug)]
pub(super) struct Clock {
    ticks: u64,
    /// Whether a thread has had a schedstat.
    precise: std::cell::Cell<bool>,
}

impl Clock {
    pub(super) fn new() -> Clock {
        Clock {
            ticks: clock::ticks_per_second(),
            precise: std::cell::Cell::new(false),
        }
    }

    pub(super) fn of_ticks(&self, ticks: u64) -> Duration {
        let nanoseconds = u128::from(ticks) * 1_000_000_000 / u128::from(self.ticks);
        Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or(u64::MAX))
    }

    pub(super) fn precise(&self) -> bool {
        self.precise.get()
    }
}

/// A thread that is followed.
#[derive(Debug)]
pub(super) struct Thread {
    stat: Stat,
    sched: Option<Schedstat>,
    /// Where counting began.
    base: Base,
    load: Option<f64>,
    waiting: Option<f64>,
    /// As the kernel counts them since the thread started.
    migrations: Option<u64>,
    /// When they were read, and whether it has run since.
    read: Instant,
    ran: bool,
}

/// What was counted when following began.
#[derive(Debug, Clone, Copy, Default)]
struct Base {
    run: Duration,
    slices: u64,
    migrations: Option<u64>,
    minor: u64,
    major: u64,
}

impl Thread {
    /// The thread as it is now; `None` where it has ended.
    pub(super) fn open(process: &Process, number: u32, clock: &Clock) -> Result<Option<Thread>> {
        let sched = process.schedstat(number)?;
        let Some(stat) = process.thread(number)? else {
            return Ok(None);
        };
        if sched.is_some() {
            clock.precise.set(true);
        }
        let mut thread = Thread {
            base: Base {
                slices: sched.map_or(0, |sched| sched.slices),
                minor: stat.minor_faults,
                major: stat.major_faults,
                ..Base::default()
            },
            stat,
            sched,
            load: None,
            waiting: None,
            migrations: None,
            read: Instant::now(),
            ran: true,
        };
        thread.base.run = thread.run(clock);
        Ok(Some(thread))
    }

    /// All that it has done counts, as it has started since following began.
    pub(super) fn starts_at_zero(&mut self) {
        self.base = Base {
            migrations: Some(0),
            ..Base::default()
        };
    }

    /// Time on a cpu since it started.
    fn run(&self, clock: &Clock) -> Duration {
        match self.sched {
            Some(sched) => Duration::from_nanos(sched.run),
            None => clock.of_ticks(self.stat.ticks),
        }
    }

    /// Looks again, `passed` after the last time; says whether it is there still.
    pub(super) fn look(
        &mut self,
        process: &Process,
        number: u32,
        clock: &Clock,
        passed: Duration,
    ) -> Result<bool> {
        let before = self.run(clock);
        let sched = process.schedstat(number)?;
        // What has not run has not changed.
        if sched.is_none() || sched != self.sched {
            let Some(stat) = process.thread(number)? else {
                return Ok(false);
            };
            if stat.start != self.stat.start {
                return Ok(false);
            }
            self.ran |= sched != self.sched || stat.ticks != self.stat.ticks;
            self.stat = stat;
        }
        let waited = sched
            .zip(self.sched)
            .map(|(now, then)| now.wait.saturating_sub(then.wait));
        self.sched = sched;
        if passed.is_zero() {
            return Ok(true);
        }
        let share = |of: Duration| of.as_secs_f64() / passed.as_secs_f64();
        self.load = Some(share(self.run(clock).saturating_sub(before)));
        self.waiting = waited.map(|waited| share(Duration::from_nanos(waited)));
        Ok(true)
    }

    /// Since when its migrations may have changed; `None` where they have not.
    pub(super) fn due(&self) -> Option<Instant> {
        self.ran.then_some(self.read)
    }

    /// Takes what the kernel counted; the first of a thread that was there before is its base.
    pub(super) fn count_migrations(&mut self, counted: Option<u64>, following: bool) {
        self.migrations = counted;
        if !following {
            self.base.migrations = counted;
        }
        self.read = Instant::now();
        self.ran = false;
    }

    pub(super) fn migrations(&self) -> Option<u64> {
        Some(self.migrations?.saturating_sub(self.base.migrations?))
    }

    pub(super) fn switches(&self) -> u64 {
        let slices = self.sched.map_or(0, |sched| sched.slices);
        slices.saturating_sub(self.base.slices)
    }

    pub(super) fn activity(&self, number: u32, nodes: &Nodes, clock: &Clock) -> ThreadActivity {
        ThreadActivity {
            thread: number,
            name: self.stat.name.clone(),
            cpu: self.stat.cpu,
            node: self.stat.cpu.and_then(|cpu| nodes.of_cpu(cpu)),
            load: self.load,
            waiting: self.waiting,
            seconds: self.run(clock).saturating_sub(self.base.run).as_secs_f64(),
            migrations: self.migrations(),
            minor_faults: self.stat.minor_faults.saturating_sub(self.base.minor),
            major_faults: self.stat.major_faults.saturating_sub(self.base.major),
        }
    }
}
