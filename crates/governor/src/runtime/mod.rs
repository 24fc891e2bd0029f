//! Governing the workers of the own process, by the same policy as other databases.
//!
//! 1. While no statement runs nothing is looked at, and the workers have all of their cpus.
//! 2. A statement begins with all of them ([`Runtime::begin`]). Each period in which statements ran, the
//!    workers' busy time and the bytes that they read are looked at, and the net decides.
//! 3. Load is busy time over the time in which statements ran, so that pauses between short statements
//!    are no reason to take cores away: statements that do not use what they have are.
//! 4. Where none has run for a second, the workers get everything back.
//! 5. Whether it governs or not, it publishes what was counted, for governors of other processes
//!    ([`Counter::Atoll`](crate::live::Counter)).
//!
//! With [`Options::by_throughput`] the bytes that statements read in a second of theirs decide as well: where fewer
//! workers read as much, or more, as with a contended table or a memory that is the limit, these are left.
//!
//! A worker is one thread of a cpu: time in which it could have run and did not is time that
//! others took, and counts as busy. How much more work waits behind workers that are all busy is not
//! known, so that they become up to four times as many at once ([`Stride::Demand`](crate::Stride)).

mod activity;
mod history;
mod sensors;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use placement::CpuSet;
use topology::Machine;

use crate::published::{Counted, Published};
use crate::readings::{BUSY, RESIDENCY, THROUGHPUT};
use crate::{Decision, Error, Governor, Measure, Policy, Readings, Result, Sensor};

pub use activity::Running;
use activity::{Activity, Next};
use history::History;
use sensors::Threads;

/// So long after the last statement the workers get all of their cpus back.
const REST: Duration = Duration::from_secs(1);

/// How often what was counted is published where nothing is governed.
const PUBLISH: Duration = Duration::from_millis(50);

/// The workers of a database in this process.
pub trait Crew: Send + Sync {
    /// The operating system's numbers of their threads.
    fn threads(&self) -> Vec<u32>;

    /// All bytes that they have read so far, by the operating system's number of the node that
    /// these are on. Never falls.
    fn bytes(&self) -> Vec<(u32, u64)>;

    /// From now on the workers run on these cpus of the machine, of which there is one at least.
    ///
    /// # Errors
    ///
    /// Why not, in words; they stay where they are then.
    fn place(&self, cpus: &CpuSet) -> std::result::Result<(), String>;
}

/// How to govern.
#[derive(Debug, Clone)]
pub struct Options {
    /// How it is decided. Cores are released by it and allocated again; a statement begins with all.
    pub policy: Policy,
    /// The machine the cpus are of, which need not be the one this runs on.
    pub machine: Machine,
    /// The cpus that the workers have where nothing was decided.
    pub cpus: CpuSet,
    /// Those there are to choose from.
    pub available: CpuSet,
    /// Between two decisions while statements run.
    pub period: Duration,
}

impl Options {
    /// The default policy, each 50 ms.
    pub fn new(machine: Machine, cpus: CpuSet) -> Options {
        Options {
            policy: Policy {
                // What a statement does changes faster than what a server does.
                confirm_down: 2,
                half_life: 5.0,
                ..Policy::default()
            },
            machine,
            available: cpus.clone(),
            cpus,
            period: Duration::from_millis(50),
        }
    }

    /// The throughput sensor decides how many workers pay, and not their load alone.
    #[must_use]
    pub fn by_throughput(mut self) -> Options {
        self.policy = self.policy.thresholds_of(Sensor::Throughput);
        self
    }
}

/// Governs until it is dropped, which gives the workers all cpus back.
#[derive(Debug)]
pub struct Runtime {
    activity: Arc<Activity>,
    history: Arc<Mutex<History>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Runtime {
    /// Starts governing these workers, which have all of the options' `cpus` at this moment; without options, only
    /// publishes what they do.
    ///
    /// # Errors
    ///
    /// [`Error::Policy`]; [`Error::Refused`] where the system gives no thread.
    pub fn start(crew: Arc<dyn Crew>, options: Option<Options>) -> Result<Runtime> {
        let activity = Arc::new(Activity::default());
        let cores = options.as_ref().map_or(0, |options| options.cpus.len());
        let history = Arc::new(Mutex::new(History::new(cores)));
        let mut publish = Publish {
            crew: crew.clone(),
            // Where there is no memory for it nobody can read it.
            to: Published::new().ok(),
        };
        let watch = match options {
            Some(options) => Some(Watch::new(crew, options, history.clone())?),
            None => None,
        };
        let told = activity.clone();
        let thread = thread::Builder::new().name("atoll-govern".into());
        let thread = thread.spawn(move || match watch {
            Some(watch) => watch.run(&told, &mut publish),
            None => publish.run(&told),
        });
        let thread = thread.map_err(|source| Error::Refused {
            what: "starting the thread that governs the workers".to_owned(),
            source,
        })?;
        Ok(Runtime {
            activity,
            history,
            thread: Some(thread),
        })
    }

    /// A statement begins; it ends when what this returns is dropped.
    pub fn begin(&self) -> Running {
        Activity::begin(&self.activity)
    }

    /// What was done since then, in lines for people: the cores over time and each change with its reason.
    pub fn since(&self, began: Instant) -> Vec<String> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.since(began, Instant::now())
    }

    /// The last decisions, oldest first: some hundreds.
    pub fn decisions(&self) -> Vec<Decision> {
        let history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.decisions()
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.activity.stop();
        if let Some(thread) = self.thread.take()
            && thread.thread().id() != thread::current().id()
        {
            // Its panic, if any, has been reported by itself.
            let _ = thread.join();
        }
    }
}

/// What others are told.
struct Publish {
    crew: Arc<dyn Crew>,
    to: Option<Published>,
}

impl Publish {
    fn write(&mut self, activity: &Activity) {
        if let Some(to) = &mut self.to {
            let bytes = self.crew.bytes().iter().map(|(_, bytes)| bytes).sum();
            let statements = activity.ended();
            // It is tried again soon.
            let _ = to.write(Counted { statements, bytes });
        }
    }

    /// Nothing else is to be done.
    fn run(&mut self, activity: &Activity) {
        while activity.wait_for_work() {
            loop {
                let next = activity.wait(PUBLISH, REST);
                self.write(activity);
                match next {
                    Next::Decide(_) | Next::Look => {}
                    Next::Rest => break,
                    Next::Stop => return,
                }
            }
        }
    }
}

/// What the thread does.
struct Watch {
    crew: Arc<dyn Crew>,
    options: Options,
    net: petri::Net,
    history: Arc<Mutex<History>>,
    begun: Instant,
}

/// What is known from one period to the next while statements run.
struct Stretch {
    governor: Governor,
    threads: Threads,
    /// All bytes read, by node, at the last look.
    bytes: Vec<(u32, u64)>,
    /// Those read lately: older ones fade.
    pages: BTreeMap<u32, f64>,
    /// When some were read last.
    read: f64,
    /// What the workers have.
    cpus: CpuSet,
}

impl Watch {
    fn new(crew: Arc<dyn Crew>, options: Options, history: Arc<Mutex<History>>) -> Result<Watch> {
        let watch = Watch {
            crew,
            net: crate::elastic_net()?,
            options,
            history,
            begun: Instant::now(),
        };
        // A policy that cannot be is refused here and not in the thread.
        watch.governor()?;
        Ok(watch)
    }

    /// A governor of workers that have everything.
    fn governor(&self) -> Result<Governor> {
        let policy = self.options.policy.clone();
        let mut governor = Governor::new(policy, &self.options.machine, &self.net)?;
        governor.holds(&self.options.cpus);
        Ok(governor)
    }

    fn run(&self, activity: &Activity, publish: &mut Publish) {
        while activity.wait_for_work() {
            // As it was possible before.
            let Ok(governor) = self.governor() else {
                return;
            };
            let mut stretch = self.stretch(governor);
            loop {
                let next = activity.wait(self.options.period, REST);
                publish.write(activity);
                match next {
                    Next::Decide(active) => self.decide(&mut stretch, active),
                    Next::Look => {}
                    Next::Rest => break,
                    Next::Stop => {
                        self.give_back(&stretch);
                        return;
                    }
                }
            }
            self.give_back(&stretch);
        }
    }

    fn stretch(&self, governor: Governor) -> Stretch {
        let mut threads = Threads::default();
        // The first look is what the next is compared with.
        threads.read(&self.crew.threads());
        Stretch {
            governor,
            threads,
            bytes: self.crew.bytes(),
            pages: BTreeMap::new(),
            read: self.begun.elapsed().as_secs_f64(),
            cpus: self.options.cpus.clone(),
        }
    }

    /// One decision, about `active` time in which statements ran.
    fn decide(&self, stretch: &mut Stretch, active: Duration) {
        let begun = Instant::now();
        let readings = self.readings(stretch, active);
        let mut decision = match stretch.governor.step(&readings) {
            Ok(decision) => decision,
            // The net is this crate's own.
            Err(_) => return,
        };
        let cpus = decision.cpus();
        if cpus != stretch.cpus && !cpus.is_empty() {
            match self.crew.place(&cpus) {
                Ok(()) => stretch.cpus = cpus,
                Err(why) => decision.why = format!("{}; it could not be set: {why}", decision.why),
            }
        }
        decision.decision_seconds = begun.elapsed().as_secs_f64();
        self.told(decision, stretch.cpus.len());
    }

    fn readings(&self, stretch: &mut Stretch, active: Duration) -> Readings {
        let time = self.begun.elapsed().as_secs_f64();
        let seconds = active.as_secs_f64();
        let mut readings = Readings::new(time, self.options.available.clone());
        let busy = stretch.threads.read(&self.crew.threads());
        readings.set(
            BUSY,
            match busy {
                Some(busy) if seconds > 0.0 => {
                    let cpus = busy.time.as_secs_f64() / seconds;
                    Measure::new(cpus.min(stretch.cpus.len() as f64), "cpus", &busy.source)
                }
                _ => Measure::unavailable("cpus", "its workers", "their times cannot be read"),
            },
        );
        let new = self.read(stretch, time);
        if seconds > 0.0 {
            let source = "Atoll's own counter";
            let rate = Measure::new(new / seconds, "bytes per second", source);
            readings.set(THROUGHPUT, rate);
        }
        for (node, bytes) in &stretch.pages {
            let mut measure = Measure::new(bytes.round(), "bytes", "read by its statements");
            measure.age_seconds = ((time - stretch.read) * 1000.0).round() / 1000.0;
            readings.set(&format!("{RESIDENCY}{node}"), measure);
        }
        readings
    }

    /// Bytes read since the last look. Where they are is where its pages are: what is in memory and not read
    /// is no reason to compute there.
    fn read(&self, stretch: &mut Stretch, time: f64) -> f64 {
        let now = self.crew.bytes();
        let before: BTreeMap<u32, u64> = stretch.bytes.iter().copied().collect();
        let new = |(node, bytes): &(u32, u64)| {
            let old = before.get(node).copied().unwrap_or(0);
            (*node, bytes.saturating_sub(old) as f64)
        };
        let new: Vec<(u32, f64)> = now.iter().map(new).collect();
        stretch.bytes = now;
        let sum: f64 = new.iter().map(|(_, bytes)| bytes).sum();
        if sum > 0.0 {
            let fade = (-(time - stretch.read) / self.options.policy.half_life).exp2();
            stretch.pages.values_mut().for_each(|bytes| *bytes *= fade);
            stretch.read = time;
            for (node, bytes) in new {
                *stretch.pages.entry(node).or_default() += bytes;
            }
        }
        sum
    }

    /// All cpus are the workers' again.
    fn give_back(&self, stretch: &Stretch) {
        let cores = self.options.cpus.len();
        if stretch.cpus != self.options.cpus && self.crew.place(&self.options.cpus).is_ok() {
            let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
            history.reset(cores);
        }
    }

    fn told(&self, decision: Decision, cores: usize) {
        let mut history = self.history.lock().unwrap_or_else(PoisonError::into_inner);
        history.add(Instant::now(), decision, cores);
    }
}
