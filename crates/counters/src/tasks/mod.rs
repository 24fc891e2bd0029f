//! [`Tasks`]: cpu load, page faults, migrations and context switches of a process and its threads.

mod thread;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::perf::software::{Kind, Software};
use crate::{
    Error, Nodes, Process, Reading, Reason, Result, Scope, Sensor, Source, Stat, System, Unit,
    Value, Why, clock,
};

pub use thread::ThreadActivity;
use thread::{Clock, Thread};

/// `/proc/PID/task/TID/sched` is long: at most so many are read per look, those first that have
/// waited longest.
const SCHED_PER_LOOK: usize = 32;

/// Samples the cpu load, page faults, migrations and context switches of a process and its threads.
///
/// Migrations and switches come from perf where that is allowed, which misses nothing; else from
/// `/proc`, which misses those of threads that come and go between two looks.
///
/// A look costs a file per thread, and another one per thread that ran since the last.
#[derive(Debug)]
pub struct Tasks {
    process: Process,
    nodes: Nodes,
    clock: Clock,
    migrations: std::result::Result<Software, Reason>,
    switches: std::result::Result<Software, Reason>,
    /// When it was attached to.
    base: Stat,
    last: Instant,
    /// Time on a cpu at the last look; `None` where there is no such clock.
    used: Option<Duration>,
    threads: BTreeMap<u32, Thread>,
    /// Of threads that ended.
    gone: Gone,
}

/// What threads that ended have left behind.
#[derive(Debug, Clone, Copy, Default)]
struct Gone {
    threads: u64,
    migrations: u64,
    switches: u64,
}

/// A value with the back end that read it.
#[derive(Debug, Clone, PartialEq)]
pub struct Measured {
    /// The number, or why there is none.
    pub value: Value,
    /// Where it is from.
    pub source: Source,
}

/// What a process did. Counts are since it was attached to; loads since the last look.
#[derive(Debug, Clone, PartialEq)]
pub struct Activity {
    /// Its number.
    pub process: u32,
    /// The name of its command.
    pub name: String,
    /// Cpus it kept busy.
    pub load: Measured,
    /// Threads, on average, that could have run and had no cpu.
    pub waiting: Measured,
    /// Pages that were there already or only had to be zeroed.
    pub minor_faults: u64,
    /// Pages that had to be read.
    pub major_faults: u64,
    /// Moves of a thread to another cpu.
    pub migrations: Measured,
    /// How often a thread was given a cpu.
    pub switches: Measured,
    /// The threads there are, by number.
    pub threads: Vec<ThreadActivity>,
    /// Threads that came since the last look.
    pub started: Vec<u32>,
    /// Threads that have ended since the last look.
    pub ended: Vec<u32>,
}

impl Tasks {
    /// Follows a process from now on.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], or what its files make of it.
    pub fn attach(system: &System, nodes: &Nodes, process: Process) -> Result<Tasks> {
        let attach = |kind| {
            if !system.is_real() {
                return Ok(Err(Reason {
                    why: Why::Absent,
                    text: "events are counted on the running system only".to_owned(),
                }));
            }
            Software::attach(&process, kind)
        };
        let migrations = attach(Kind::Migrations)?;
        let switches = attach(Kind::Switches)?;
        let base = alive(&process)?;
        let clock = Clock::new();
        let mut threads = BTreeMap::new();
        for number in process.threads()? {
            if let Some(mut thread) = Thread::open(&process, number, &clock)? {
                thread.count_migrations(process.migrations(number), false);
                threads.insert(number, thread);
            }
        }
        Ok(Tasks {
            used: system
                .is_real()
                .then(|| clock::of_process(process.pid()))
                .flatten(),
            nodes: nodes.clone(),
            clock,
            migrations,
            switches,
            base,
            last: Instant::now(),
            threads,
            gone: Gone::default(),
            process,
        })
    }

    /// The process that is followed.
    pub fn process(&self) -> &Process {
        &self.process
    }

    /// What it did. Looks that follow each other at once say little: loads are averages over the
    /// time between.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`], or what its files make of it.
    pub fn look(&mut self) -> Result<Activity> {
        let stat = alive(&self.process)?;
        let now = Instant::now();
        let passed = now.saturating_duration_since(self.last);
        let (started, ended) = self.look_at_threads(passed)?;
        let load = self.load(&stat, passed);
        self.last = now;
        let threads: Vec<ThreadActivity> = self
            .threads
            .iter()
            .map(|(number, thread)| thread.activity(*number, &self.nodes, &self.clock))
            .collect();
        let activity = Activity {
            process: self.process.pid(),
            name: stat.name.clone(),
            load,
            waiting: waiting(&threads),
            minor_faults: stat.minor_faults.saturating_sub(self.base.minor_faults),
            major_faults: stat.major_faults.saturating_sub(self.base.major_faults),
            migrations: self.counted(Kind::Migrations),
            switches: self.counted(Kind::Switches),
            threads,
            started,
            ended,
        };
        Ok(activity)
    }

    /// Looks at each thread; gives those that came and those that ended.
    fn look_at_threads(&mut self, passed: Duration) -> Result<(Vec<u32>, Vec<u32>)> {
        let numbers = self.process.threads()?;
        let mut ended = Vec::new();
        let mut leave = |gone: &mut Gone, number: u32, thread: &Thread| {
            gone.threads += 1;
            gone.migrations += thread.migrations().unwrap_or(0);
            gone.switches += thread.switches();
            ended.push(number);
        };
        let gone = &mut self.gone;
        self.threads.retain(|number, thread| {
            let there = numbers.binary_search(number).is_ok();
            if !there {
                leave(gone, *number, thread);
            }
            there
        });
        let mut started = Vec::new();
        for number in numbers {
            if let Some(thread) = self.threads.get_mut(&number) {
                if thread.look(&self.process, number, &self.clock, passed)? {
                    continue;
                }
                // Another thread with its number, or none any more.
                leave(gone, number, thread);
                self.threads.remove(&number);
            }
            if let Some(mut thread) = Thread::open(&self.process, number, &self.clock)? {
                thread.starts_at_zero();
                self.threads.insert(number, thread);
                started.push(number);
            }
        }
        self.read_migrations();
        Ok((started, ended))
    }

    /// Reads the migrations of some of the threads that ran, those first that have waited longest.
    fn read_migrations(&mut self) {
        let mut due: Vec<(Instant, u32)> = self
            .threads
            .iter()
            .filter_map(|(number, thread)| Some((thread.due()?, *number)))
            .collect();
        if due.len() > SCHED_PER_LOOK {
            due.select_nth_unstable(SCHED_PER_LOOK);
            due.truncate(SCHED_PER_LOOK);
        }
        for (_, number) in due {
            let counted = self.process.migrations(number);
            if let Some(thread) = self.threads.get_mut(&number) {
                thread.count_migrations(counted, true);
            }
        }
    }

    /// Cpus kept busy since the last look, ended threads included.
    fn load(&mut self, stat: &Stat, passed: Duration) -> Measured {
        let (used, source) = match self.used {
            Some(_) => (clock::of_process(self.process.pid()), Source::Clock),
            None => (None, Source::Stat),
        };
        let used = used.unwrap_or_else(|| self.clock.of_ticks(stat.ticks));
        let before = self
            .used
            .unwrap_or_else(|| self.clock.of_ticks(self.base.ticks));
        if source == Source::Clock {
            self.used = Some(used);
        } else {
            self.base.ticks = stat.ticks;
        }
        let value = if passed.is_zero() {
            Value::unavailable(Why::NotYet, "no time since the last look")
        } else {
            Value::Number(used.saturating_sub(before).as_secs_f64() / passed.as_secs_f64())
        };
        Measured { value, source }
    }

    /// Of the whole process since it was attached to.
    fn counted(&self, kind: Kind) -> Measured {
        let perf = match kind {
            Kind::Migrations => &self.migrations,
            Kind::Switches => &self.switches,
        };
        if let Ok(perf) = perf
            && let Ok(count) = perf.read()
        {
            return Measured {
                value: Value::Count(count),
                source: Source::Software,
            };
        }
        let threads = self.threads.values();
        let (sum, source) = match kind {
            Kind::Migrations => (
                threads
                    .map(Thread::migrations)
                    .try_fold(self.gone.migrations, |sum, count| Some(sum + count?)),
                Source::Sched,
            ),
            Kind::Switches => (
                self.clock
                    .precise()
                    .then(|| self.gone.switches + threads.map(Thread::switches).sum::<u64>()),
                Source::Schedstat,
            ),
        };
        let value = sum.map_or_else(
            || {
                Value::unavailable(
                    Why::Absent,
                    format!("this kernel does not say ({})", source.name()),
                )
            },
            Value::Count,
        );
        Measured { value, source }
    }

    /// Why perf does not count, where it does not.
    pub fn without_perf(&self) -> Option<&Reason> {
        self.migrations.as_ref().err()
    }
}

fn waiting(threads: &[ThreadActivity]) -> Measured {
    let sum: Option<f64> = threads.iter().map(|thread| thread.waiting).sum();
    let value = sum.map_or_else(
        || Value::unavailable(Why::NotYet, "no two looks at the same threads yet"),
        Value::Number,
    );
    Measured {
        value,
        source: Source::Schedstat,
    }
}

/// The process, unless it has ended.
fn alive(process: &Process) -> Result<Stat> {
    let stat = process.stat()?;
    if stat.ended() {
        return Err(Error::Ended { pid: process.pid() });
    }
    Ok(stat)
}

impl Activity {
    /// As readings, those of threads last.
    pub fn readings(&self) -> Vec<Reading> {
        let scope = Scope::Process(self.process);
        let new = |name, of: &Measured, unit| {
            Reading::new(name, of.value.clone(), unit, of.source, scope.clone())
        };
        let stat = |count| Measured {
            value: Value::Count(count),
            source: Source::Stat,
        };
        let mut readings = vec![
            new("load", &self.load, Unit::Cpus),
            new("waiting", &self.waiting, Unit::Tasks),
            new("faults.minor", &stat(self.minor_faults), Unit::Events),
            new("faults.major", &stat(self.major_faults), Unit::Events),
            new("migrations", &self.migrations, Unit::Events),
            new("switches", &self.switches, Unit::Events),
            new("threads", &stat(self.threads.len() as u64), Unit::Tasks),
        ];
        for thread in &self.threads {
            readings.extend(thread.readings(self.process));
        }
        readings
    }
}

impl Sensor for Tasks {
    fn read(&mut self) -> Vec<Reading> {
        match self.look() {
            Ok(activity) => activity.readings(),
            Err(error) => {
                let why = match &error {
                    Error::Ended { .. } => Why::Ended,
                    Error::Denied { .. } => Why::Refused,
                    _ => Why::NotUnderstood,
                };
                let missing = |(name, unit, source)| {
                    let value = Value::unavailable(why, error.to_string());
                    let scope = Scope::Process(self.process.pid());
                    Reading::new(name, value, unit, source, scope)
                };
                [
                    ("load", Unit::Cpus, Source::Clock),
                    ("waiting", Unit::Tasks, Source::Schedstat),
                    ("faults.minor", Unit::Events, Source::Stat),
                    ("faults.major", Unit::Events, Source::Stat),
                    ("migrations", Unit::Events, Source::Sched),
                    ("switches", Unit::Events, Source::Schedstat),
                    ("threads", Unit::Tasks, Source::Stat),
                ]
                .map(missing)
                .to_vec()
            }
        }
    }
}
