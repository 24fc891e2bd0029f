//! The loop: look, decide, set, tell.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use petri::Net;
use placement::CpuSet;
use topology::Machine;

use super::actuate::{Actuator, Means};
use super::memory::Memory;
use super::proc::{self, Identity};
use super::record::{self, Entry, Kept, Record, Standing, Status, Undone};
use super::target::{Group, Target};
use super::throughput::{Counter, Throughput};
use super::traffic::Traffic;
use super::waiting::Waiting;
use crate::readings::{BUSY, THROUGHPUT, TRAFFIC, WAITING};
use crate::{
    Action, Decision, Error, Governor, Measure, Member, Policy, Readings, Result, Together,
};

/// How often it is looked up which cpus there are, and whether threads are where they should be.
const UPKEEP: Duration = Duration::from_secs(1);

/// Looking after threads again takes at most one part in so many of the time.
const REST: u32 = 400;

/// The period stretches where a check takes more than one part in so many of it.
const SHARE: u32 = 100;

/// A target whose cpus could not be set so many times in a row is given up.
const PATIENCE: u32 = 20;

/// Those who look on see a state that is at most so old, and each change at once.
const TELL: Duration = Duration::from_millis(500);

/// Decisions that changed something, as they are kept for those who look on.
const CHANGES: usize = 12;

/// A target and its share.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// What is governed.
    pub target: Target,
    /// Its share of scarce cores, beside those of others.
    pub weight: f64,
    /// What counts its work, for the throughput sensor.
    pub counter: Option<Counter>,
}

/// How to govern.
#[derive(Debug, Clone)]
pub struct Options {
    /// How it is decided.
    pub policy: Policy,
    /// The net that decides.
    pub net: Net,
    /// Time between two decisions.
    pub period: Duration,
    /// Decide and tell, change nothing.
    pub dry_run: bool,
    /// How cpus are given.
    pub means: Means,
    /// Where running governors are recorded.
    pub state: PathBuf,
    /// Where the latest state is kept for those who look on: of whichever governor has it, none
    /// between two.
    pub status: Arc<Mutex<Status>>,
    /// Where the kernel tells which cpus are online: `/sys`, or a folder that looks like it.
    pub sys: PathBuf,
    /// What to start as guard: a command that calls [`guard`](super::guard) with the record's path,
    /// which is added, and its standard input. Empty: no guard.
    pub guard: Vec<OsString>,
}

/// A target that is governed.
#[derive(Debug)]
struct Unit {
    name: String,
    group: Group,
    actuator: Actuator,
    waiting: Waiting,
    memory: Memory,
    throughput: Option<Throughput>,
    traffic: Option<Traffic>,
    available: CpuSet,
    set: CpuSet,
    /// When processor time was read last.
    read: Instant,
    upkept: Option<Instant>,
    applied: Option<Instant>,
    /// What looking after the threads took last.
    cost: Duration,
    failures: u32,
    roots: Vec<Identity>,
}

#[derive(Debug)]
enum Brain {
    One(Box<Governor>),
    Many(Together),
}

/// Governs. Dropping it puts everything back.
#[derive(Debug)]
pub struct Live {
    options: Options,
    units: Vec<Unit>,
    brain: Brain,
    kept: Option<Kept>,
    guard: Option<Child>,
    begun: Instant,
    notes: Vec<String>,
    said: BTreeSet<String>,
    status: Arc<Mutex<Status>>,
    online: String,
    upkept: Instant,
    /// When the state was written last.
    told: Option<Instant>,
    /// What a check takes of a processor, on average.
    cost: Duration,
    stretched: bool,
}

impl Live {
    /// Finds the targets; nothing is changed before the first [`check`](Live::check).
    ///
    /// # Errors
    ///
    /// [`Error::NoTarget`] where there is none, [`Error::Governed`] where another governor has one
    /// of its processes, or what the system refuses.
    pub fn begin(wanted: Vec<Wanted>, options: Options) -> Result<Live> {
        let machine = machine()?;
        let mut units: Vec<Unit> = Vec::new();
        for wanted in &wanted {
            units.push(Unit::new(wanted, &options, &machine)?);
        }
        let brain = brain(&wanted, &options, &machine)?;
        let own = std::process::id();
        let governor = Identity::of(own).unwrap_or(Identity { pid: own, start: 0 });
        let status = Status {
            governor: governor.pid,
            start: governor.start,
            period: options.period.as_secs_f64(),
            dry_run: options.dry_run,
            targets: units.iter().map(Unit::standing).collect(),
        };
        let mut live = Live {
            kept: None,
            guard: None,
            begun: Instant::now(),
            notes: Vec::new(),
            said: BTreeSet::new(),
            status: options.status.clone(),
            online: online(&options.sys),
            upkept: Instant::now(),
            told: None,
            cost: Duration::ZERO,
            stretched: false,
            options,
            units,
            brain,
        };
        let kept = Kept::new(&live.options.state, &live.record(governor))?;
        if !live.options.dry_run {
            match record::start_guard(&live.options.guard, &kept.path) {
                Ok(guard) => live.guard = guard,
                Err(error) => {
                    kept.done();
                    return Err(error);
                }
            }
        }
        live.kept = Some(kept);
        *live.status.lock().unwrap_or_else(PoisonError::into_inner) = status;
        Ok(live)
    }

    fn record(&self, governor: Identity) -> Record {
        let changing = self.units.iter().filter(|_| !self.options.dry_run);
        let entry = |unit: &Unit| Entry {
            target: unit.group.target.clone(),
            roots: unit.roots.clone(),
            undo: unit.actuator.undo(),
        };
        Record {
            governor,
            entries: changing.map(entry).collect(),
        }
    }

    /// Looks, decides, sets. One decision for each target that is left.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`] when nothing is left to govern; [`Error::Refused`] where cpus could not be
    /// set for long.
    pub fn check(&mut self) -> Result<Vec<Decision>> {
        let begun = Instant::now();
        let used = own_time();
        self.upkeep(begun)?;
        let time = (begun - self.begun).as_secs_f64();
        let mut readings = Vec::new();
        for unit in &mut self.units {
            readings.push(unit.readings(time, begun, &self.options.sys));
        }
        self.tell_missing(&readings);
        let mut decisions = match &mut self.brain {
            Brain::One(governor) => vec![governor.step(&readings[0])?],
            Brain::Many(together) => together.step(&readings)?,
        };
        self.set(&mut decisions, begun)?;
        self.keep_status(&decisions);
        for unit in &mut self.units {
            unit.memory.look(&unit.group, time);
        }
        let cost = own_time().saturating_sub(used);
        self.cost = (self.cost * 7 + cost) / 8;
        Ok(decisions)
    }

    /// How long to wait after a check that began at `begun`: until the next is due.
    pub fn pause(&mut self, begun: Instant) -> Duration {
        let least = self.cost * SHARE;
        if least > self.options.period * 3 / 2 && !self.stretched {
            self.stretched = true;
            let ms = self.cost.as_secs_f64() * 1000.0;
            self.note(format!(
                "a check takes {ms:.1} ms of a processor, so that there is one every {:.1} s at most",
                least.as_secs_f64()
            ));
        }
        let period = self.options.period.max(least);
        period.saturating_sub(begun.elapsed())
    }

    /// What is to be told to people and was not yet, each once.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// The latest state, for those who look on.
    pub fn status(&self) -> Arc<Mutex<Status>> {
        self.status.clone()
    }

    fn note(&mut self, text: String) {
        if self.said.len() < 1000 && self.said.insert(text.clone()) {
            self.notes.push(text);
        }
    }

    /// What need not be done at every check: who is there, which cpus there are.
    fn upkeep(&mut self, now: Instant) -> Result<()> {
        if now - self.upkept >= UPKEEP {
            self.upkept = now;
            let online = online(&self.options.sys);
            if online != self.online {
                self.note(format!(
                    "cpus online are {online} now, no longer {}",
                    self.online
                ));
                self.online = online;
                let machine = machine()?;
                match &mut self.brain {
                    Brain::One(governor) => governor.on(&machine),
                    Brain::Many(together) => together.on(&machine),
                }
                for unit in &mut self.units {
                    unit.upkept = None;
                }
            }
        }
        let mut at = 0;
        while at < self.units.len() {
            let unit = &mut self.units[at];
            unit.group.came = false;
            unit.group.refresh();
            if !unit.group.ended() {
                at += 1;
                continue;
            }
            let unit = self.units.remove(at);
            let what = unit.group.target.to_string();
            unit.restore()?;
            if self.units.is_empty() {
                return Err(Error::Ended { what });
            }
            self.note(format!("{what} has ended; its cores are free"));
            if let Brain::Many(together) = &mut self.brain {
                together.remove(&unit.name);
            }
        }
        Ok(())
    }

    /// A sensor that is missing is told of once.
    fn tell_missing(&mut self, readings: &[Readings]) {
        for readings in readings {
            for (name, measure) in &readings.values {
                if let Some(why) = &measure.unavailable
                    && !why.contains("second look")
                {
                    self.note(format!(
                        "{name} ({}) is not available: {why}",
                        measure.source
                    ));
                }
            }
        }
    }

    fn set(&mut self, decisions: &mut [Decision], begun: Instant) -> Result<()> {
        // Who gives up cores does so before anybody gets them.
        let mut order: Vec<usize> = (0..self.units.len()).collect();
        order.sort_by_key(|at| decisions[*at].action != Action::Release);
        let mut better_known = false;
        let mut notes = Vec::new();
        for at in order {
            let (unit, decision) = (&mut self.units[at], &mut decisions[at]);
            let result = unit.apply(&decision.cpus(), begun);
            decision.decision_seconds = begun.elapsed().as_secs_f64();
            match result {
                Ok(known) => {
                    unit.failures = 0;
                    better_known |= known;
                }
                Err(error) => {
                    unit.failures += 1;
                    // Perhaps there are other cpus now.
                    unit.upkept = None;
                    notes.push(format!("{error}; it is tried again"));
                    decision.why = format!("{}; it could not be set: {error}", decision.why);
                    if unit.failures >= PATIENCE {
                        return Err(error);
                    }
                }
            }
            let refused = unit.actuator.refused();
            if refused > 0 {
                notes.push(format!(
                    "threads of {} belong to another user and are left alone; run as root to govern them",
                    unit.group.target
                ));
            }
        }
        notes.into_iter().for_each(|text| self.note(text));
        if better_known
            && let Some(governor) = Identity::of(std::process::id())
            && let Some(kept) = &self.kept
        {
            kept.write(&self.record(governor))?;
        }
        Ok(())
    }

    fn keep_status(&mut self, decisions: &[Decision]) {
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::take(&mut status.targets);
        let mut changed = old.len() != decisions.len();
        for (unit, decision) in self.units.iter().zip(decisions) {
            let before = old.iter().find(|standing| standing.target == unit.name);
            let mut standing = before.cloned().unwrap_or_else(|| unit.standing());
            standing.processes = unit.group.members.len();
            standing.decisions += 1;
            if !decision.allocated.is_empty() || !decision.released.is_empty() {
                changed = true;
                standing.changes.push(decision.to_string());
                let many = standing.changes.len().saturating_sub(CHANGES);
                standing.changes.drain(..many);
            }
            standing.last = Some(decision.clone());
            status.targets.push(standing);
        }
        let due = self.told.is_none_or(|at| at.elapsed() >= TELL);
        if (changed || due)
            && let Some(kept) = &self.kept
            && let Ok(text) = serde_json::to_vec(&*status)
        {
            // Whoever looks on sees the one before where this fails.
            let _ = record::replace(&kept.status(), &text);
            self.told = Some(Instant::now());
        }
    }

    /// Puts everything back.
    ///
    /// # Errors
    ///
    /// What the system refuses; everything else is back then.
    pub fn end(mut self) -> Result<Vec<Undone>> {
        self.put_back()
    }

    fn put_back(&mut self) -> Result<Vec<Undone>> {
        let mut undone = Vec::new();
        let mut failed = None;
        for unit in std::mem::take(&mut self.units) {
            let target = unit.name.clone();
            match unit.restore() {
                Ok(restored) => undone.push(Undone {
                    governor: std::process::id(),
                    target,
                    restored: Some(restored),
                }),
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => {
                if let Some(kept) = self.kept.take() {
                    kept.done();
                }
                Ok(undone)
            }
        }
    }
}

impl Drop for Live {
    fn drop(&mut self) {
        let _ = self.put_back();
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.targets.clear();
        drop(status);
        if let Some(kept) = &self.kept {
            // What could not be put back stays recorded, for `undo`.
            let _ = std::fs::remove_file(kept.status());
        }
        if let Some(mut guard) = self.guard.take() {
            // It sees the end of its input and ends.
            drop(guard.stdin.take());
            let _ = guard.wait();
        }
    }
}

fn machine() -> Result<Machine> {
    Machine::live().map_err(|error| Error::Command {
        what: "this machine".to_owned(),
        why: error.to_string(),
    })
}

fn online(sys: &Path) -> String {
    let list = std::fs::read_to_string(sys.join("devices/system/cpu/online"));
    list.unwrap_or_default().trim().to_owned()
}

/// Processor time of this thread.
fn own_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into `time`, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn brain(wanted: &[Wanted], options: &Options, machine: &Machine) -> Result<Brain> {
    let governor = || Governor::new(options.policy.clone(), machine, &options.net);
    if wanted.len() == 1 {
        return Ok(Brain::One(Box::new(governor()?)));
    }
    let mut together = Together::new();
    for wanted in wanted {
        together.add(Member {
            name: wanted.target.to_string(),
            weight: wanted.weight,
            governor: governor()?,
        })?;
    }
    Ok(Brain::Many(together))
}

impl Unit {
    fn new(wanted: &Wanted, options: &Options, machine: &Machine) -> Result<Unit> {
        let group = Group::find(wanted.target.clone())?;
        let actuator = match options.dry_run {
            true => Actuator::Dry,
            false => Actuator::new(options.means, &group)?,
        };
        let throughput = wanted.counter.clone();
        let sensed = options.policy.sensor == crate::Sensor::Throughput;
        Ok(Unit {
            name: wanted.target.to_string(),
            roots: group.roots().map(|root| root.identity).collect(),
            group,
            actuator,
            waiting: Waiting::default(),
            memory: Memory::new(machine, options.policy.half_life),
            throughput: throughput
                .filter(|_| sensed)
                .map(|counter| Throughput::new(counter, options.period)),
            traffic: (options.policy.sensor == crate::Sensor::Traffic)
                .then(|| Traffic::new(machine)),
            available: CpuSet::default(),
            set: CpuSet::default(),
            read: Instant::now(),
            upkept: None,
            applied: None,
            cost: Duration::ZERO,
            failures: 0,
        })
    }

    fn standing(&self) -> Standing {
        Standing {
            target: self.name.clone(),
            actuator: self.actuator.name().to_owned(),
            processes: self.group.members.len(),
            decisions: 0,
            last: None,
            changes: Vec::new(),
        }
    }

    fn readings(&mut self, time: f64, now: Instant, sys: &Path) -> Readings {
        let present = self.actuator.present(&self.group);
        let changed = !self.set.is_empty() && present.is_some_and(|present| present != self.set);
        if changed || self.upkept.is_none_or(|at| now - at >= UPKEEP) {
            self.upkept = Some(now);
            let online: Option<CpuSet> = online(sys).parse().ok();
            let allowed = self.actuator.allowed(&self.group);
            self.available = match (allowed, online) {
                (Some(allowed), Some(online)) => {
                    allowed.iter().filter(|cpu| online.contains(*cpu)).collect()
                }
                (allowed, online) => allowed.or(online).unwrap_or_default(),
            };
            if changed {
                // Somebody else has set them: they are set again.
                self.applied = None;
            }
        }
        let mut readings = Readings::new(time, self.available.clone());
        let elapsed = self.read.elapsed().as_secs_f64();
        self.read = Instant::now();
        let busy = match self.group.used() {
            Some(used) if elapsed > 0.0 => {
                Measure::new(used.time.as_secs_f64() / elapsed, "cpus", used.source)
            }
            _ => Measure::unavailable("cpus", "cpu clocks", "it takes a second look"),
        };
        readings.set(BUSY, busy);
        readings.set(WAITING, self.waiting.read(&self.group));
        if let Some(throughput) = &mut self.throughput {
            readings.set(THROUGHPUT, throughput.read(&self.group));
        }
        if let Some(traffic) = &mut self.traffic {
            readings.set(TRAFFIC, traffic.read());
        }
        self.memory.tell(&mut readings);
        readings
    }

    /// Sets the cpus where they are not set, or it is time to look after threads that came.
    fn apply(&mut self, cpus: &CpuSet, now: Instant) -> Result<bool> {
        if cpus.is_empty() {
            return Ok(false);
        }
        let rest = UPKEEP.max(self.cost * REST);
        let due = self.applied.is_none_or(|at| now - at >= rest);
        if *cpus == self.set && !due && self.failures == 0 {
            return Ok(false);
        }
        let before = own_time();
        let known = self.actuator.set(cpus, &self.group)?;
        self.cost = own_time().saturating_sub(before);
        self.set = cpus.clone();
        self.applied = Some(now);
        Ok(known)
    }

    /// Puts it back as it was.
    fn restore(&self) -> Result<usize> {
        let mut processes: Vec<Identity> =
            self.group.members.values().map(|m| m.identity).collect();
        // Those that came since.
        for pid in self.group.members.keys() {
            for thread in proc::threads(*pid) {
                let children = proc::children(*pid, thread).into_iter();
                processes.extend(children.filter_map(Identity::of));
            }
        }
        processes.sort_unstable();
        processes.dedup();
        self.actuator.undo().run(processes.into_iter())
    }
}
