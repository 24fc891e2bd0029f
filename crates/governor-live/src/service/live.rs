//! The control loop: read the sensors, decide, set the cpus, report.

use std::collections::BTreeSet;
use std::process::Child;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use governor::{Action, Decision, Governor, Member, Readings, Spent, Together};
use topology::Machine;

use crate::error::{Error, Result};
use crate::journal::guard::start_guard;
use crate::journal::record::{self, Entry, Kept, Record, Undone};
use crate::journal::status::Status;
use crate::sensors::energy::Meter;
use crate::service::options::{Options, UPKEEP, Wanted};
use crate::service::unit::{Unit, online, own_time};
use crate::system::proc::Identity;

/// The period is stretched if a check takes more than one part in this many of it.
const SHARE: u32 = 100;

/// How many times within one check threads are bound whose own cpus were only found in it.
const AGAIN: usize = 3;

/// The greatest age of the published state; changes are published at once.
const TELL: Duration = Duration::from_millis(500);

/// How many decisions that changed something are published.
const CHANGES: usize = 12;

#[derive(Debug)]
enum Brain {
    One(Box<Governor>),
    Many(Together),
}

/// A running governor. Dropping it puts everything back.
#[derive(Debug)]
pub struct Live {
    options: Options,
    units: Vec<Unit>,
    brain: Brain,
    kept: Option<Kept>,
    guard: Option<Child>,
    meter: Meter,
    /// The bills of targets that have ended.
    ended: Vec<Spent>,
    begun: Instant,
    notes: Vec<String>,
    said: BTreeSet<String>,
    status: Arc<Mutex<Status>>,
    online: String,
    upkept: Instant,
    /// When the state was last written.
    told: Option<Instant>,
    /// The mean processor time of a check.
    cost: Duration,
    stretched: bool,
}

impl Live {
    /// Finds the targets; nothing is changed before the first [`check`](Live::check).
    ///
    /// # Errors
    ///
    /// [`Error::NoTarget`] if a target does not exist, [`Error::Governed`] if another governor has one of its
    /// processes, and what the system refuses.
    pub fn begin(wanted: Vec<Wanted>, options: Options) -> Result<Live> {
        let machine = machine()?;
        let mut units: Vec<Unit> = Vec::new();
        for wanted in &wanted {
            let mut unit = Unit::new(wanted, &options, &machine)?;
            unit.memory.first(&unit.group);
            units.push(unit);
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
            meter: Meter::new(&machine),
            ended: Vec::new(),
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
            match start_guard(&live.options.guard, &kept.path) {
                Ok(guard) => live.guard = guard,
                Err(error) => {
                    kept.done();
                    return Err(error);
                }
            }
        }
        live.kept = Some(kept);
        if live.options.exclusive && !live.units.iter().all(|unit| unit.actuator.can_exclude()) {
            live.note("cpus are shared with others: only control groups of generation two, given with --cgroup or made with --actuator cgroup, can have them for themselves".to_owned());
        }
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

    /// Records the state from before anew.
    fn rewrite(&self) -> Result<()> {
        match (Identity::of(std::process::id()), &self.kept) {
            (Some(governor), Some(kept)) => kept.write(&self.record(governor)),
            _ => Ok(()),
        }
    }

    /// Reads the sensors, decides and sets the cpus. Returns one decision for each target that is left.
    ///
    /// # Errors
    ///
    /// [`Error::Ended`] when nothing is left to govern; [`Error::Refused`] if cpus could not be set for long.
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
        self.meter.look(begun);
        for (unit, decision) in self.units.iter_mut().zip(&decisions) {
            unit.bill.add(decision);
        }
        self.migrate(&mut decisions);
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

    /// Notes for the user that were not returned yet.
    pub fn notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// The core-seconds and the energy that each target has used so far, those that have ended included.
    pub fn spent(&mut self) -> Vec<Spent> {
        let machine = self.meter.read();
        let mut all = self.ended.clone();
        all.extend(self.units.iter().map(|unit| self.of_unit(unit, machine)));
        all
    }

    fn of_unit(&self, unit: &Unit, machine: governor::Machine) -> Spent {
        let time = self.begun.elapsed().as_secs_f64();
        unit.bill
            .spent(&unit.name, time, self.options.power, machine)
    }

    /// The latest state.
    pub fn status(&self) -> Arc<Mutex<Status>> {
        self.status.clone()
    }

    fn note(&mut self, text: String) {
        if self.said.len() < 1000 && self.said.insert(text.clone()) {
            self.notes.push(text);
        }
    }

    /// Does what need not be done at every check: looks for processes, and for changed cpus.
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
        let (mut at, mut orphaned) = (0, false);
        while at < self.units.len() {
            let unit = &mut self.units[at];
            unit.group.came = false;
            unit.group.refresh();
            if !unit.group.ended() {
                at += 1;
                orphaned |= unit.adopt();
                continue;
            }
            let unit = self.units.remove(at);
            let machine = self.meter.read();
            self.ended.push(self.of_unit(&unit, machine));
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
        if orphaned { self.rewrite() } else { Ok(()) }
    }

    /// Notes a missing sensor, once.
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
        // One that exchanges cores may give them to one that gets more.
        order.sort_by_key(|at| match decisions[*at].action {
            Action::Release => 0,
            Action::None => 1,
            Action::Allocate => 2,
        });
        let mut notes = Vec::new();
        for _ in 0..AGAIN {
            let mut again = Vec::new();
            for at in order {
                if self.units[at].give(&mut decisions[at], begun, &mut notes)? {
                    again.push(at);
                }
            }
            if again.is_empty() {
                break;
            }
            // What a thread had is recorded before it is changed: then there is a second time.
            self.rewrite()?;
            order = again;
        }
        notes.into_iter().for_each(|text| self.note(text));
        Ok(())
    }

    /// Migrates pages to the nodes of the cores, a bounded number at a time.
    fn migrate(&mut self, decisions: &mut [Decision]) {
        let mut notes = Vec::new();
        for (unit, decision) in self.units.iter_mut().zip(decisions) {
            if let Some(migration) = &mut unit.migration {
                decision.migrated = migration.step(&unit.set, &unit.group);
                notes.extend(migration.note());
            }
        }
        notes.into_iter().for_each(|text| self.note(text));
    }

    fn keep_status(&mut self, decisions: &[Decision]) {
        let machine = self.meter.counted();
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        let old = std::mem::take(&mut status.targets);
        let mut changed = old.len() != decisions.len();
        for (unit, decision) in self.units.iter().zip(decisions) {
            let before = old.iter().find(|standing| standing.target == unit.name);
            let mut standing = before.cloned().unwrap_or_else(|| unit.standing());
            standing.processes = unit.group.members.len();
            standing.decisions += 1;
            if decision.changed() {
                changed = true;
                standing.changes.push(decision.to_string());
                let many = standing.changes.len().saturating_sub(CHANGES);
                standing.changes.drain(..many);
            }
            standing.last = Some(decision.clone());
            standing.spent = Some(self.of_unit(unit, machine));
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
    /// What the system refuses; everything else is put back even then.
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
