//! A target with its sensors and its actuator.

use std::path::Path;
use std::time::{Duration, Instant};

use governor::{BUSY, Decision, Measure, PRESSURE, Readings, THROUGHPUT, TRAFFIC, WAITING};
use placement::CpuSet;
use topology::Machine;

use crate::actuators::Actuator;
use crate::actuators::migrate::Migration;
use crate::error::Result;
use crate::group::target::Group;
use crate::journal::status::Standing;
use crate::sensors::energy::Bill;
use crate::sensors::memory::Memory;
use crate::sensors::pressure::Pressure;
use crate::sensors::throughput::Throughput;
use crate::sensors::traffic::Traffic;
use crate::sensors::waiting::Waiting;
use crate::service::options::{Options, UPKEEP, Wanted};
use crate::system::proc::{self, Identity};

/// Setting the cpus of new threads takes at most one part in this many of the time.
const REST: u32 = 400;

/// How many times in a row setting the cpus may fail before a target is given up.
const PATIENCE: u32 = 20;

/// A target that is governed.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) name: String,
    pub(super) group: Group,
    pub(super) actuator: Actuator,
    pub(super) waiting: Waiting,
    pub(super) pressure: Pressure,
    pub(super) memory: Memory,
    pub(super) migration: Option<Migration>,
    pub(super) throughput: Option<Throughput>,
    pub(super) traffic: Option<Traffic>,
    pub(super) available: CpuSet,
    pub(super) set: CpuSet,
    /// When processor time was last read.
    pub(super) read: Instant,
    pub(super) upkept: Option<Instant>,
    pub(super) applied: Option<Instant>,
    /// The time that setting the cpus of the threads last took.
    pub(super) cost: Duration,
    pub(super) failures: u32,
    pub(super) bill: Bill,
    pub(super) roots: Vec<Identity>,
}

pub(super) fn online(sys: &Path) -> String {
    let list = std::fs::read_to_string(sys.join("devices/system/cpu/online"));
    list.unwrap_or_default().trim().to_owned()
}

/// Processor time of this thread.
pub(super) fn own_time() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into `time`, which is ours.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

impl Unit {
    pub(super) fn new(wanted: &Wanted, options: &Options, machine: &Machine) -> Result<Unit> {
        let group = Group::find(wanted.target.clone())?;
        let actuator = if options.dry_run {
            Actuator::Dry
        } else {
            Actuator::new(options.means, options.exclusive, &group)?
        };
        let throughput = wanted.counter.clone();
        let sensed = options.policy.sensor == governor::Sensor::Throughput;
        Ok(Unit {
            name: wanted.target.to_string(),
            roots: group.roots().map(|root| root.identity).collect(),
            pressure: Pressure::new(group.tree.as_ref()),
            group,
            actuator,
            waiting: Waiting::default(),
            memory: Memory::new(machine, options.policy.half_life),
            migration: if options.migrate && !options.dry_run {
                Some(Migration::new(machine)?)
            } else {
                None
            },
            throughput: throughput
                .filter(|_| sensed)
                .map(|counter| Throughput::new(counter, options.period)),
            traffic: (options.policy.sensor == governor::Sensor::Traffic)
                .then(|| Traffic::new(machine)),
            available: CpuSet::default(),
            set: CpuSet::default(),
            read: Instant::now(),
            upkept: None,
            applied: None,
            cost: Duration::ZERO,
            failures: 0,
            bill: Bill::default(),
        })
    }

    pub(super) fn standing(&self) -> Standing {
        Standing {
            target: self.name.clone(),
            actuator: self.actuator.name().to_owned(),
            processes: self.group.members.len(),
            decisions: 0,
            last: None,
            changes: Vec::new(),
            spent: None,
        }
    }

    pub(super) fn readings(&mut self, time: f64, now: Instant, sys: &Path) -> Readings {
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
        let load = (busy.value, self.set.len());
        readings.set(BUSY, busy);
        let pressure = self.pressure.read();
        let waiting = self.waiting.read(&self.group, pressure.value, load);
        readings.set(WAITING, waiting);
        readings.set(PRESSURE, pressure);
        if let Some(throughput) = &mut self.throughput {
            readings.set(THROUGHPUT, throughput.read(&self.group));
        }
        if let Some(traffic) = &mut self.traffic {
            readings.set(TRAFFIC, traffic.read());
        }
        self.memory.tell(&mut readings);
        readings
    }

    /// Sets the cpus if they are not set yet, or if new threads are due to be found.
    pub(super) fn apply(&mut self, cpus: &CpuSet, now: Instant) -> Result<bool> {
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

    /// Whether there are processes that can no longer be found through their ancestors, and so have to be recorded
    /// themselves.
    pub(super) fn adopt(&mut self) -> bool {
        let orphaned = std::mem::take(&mut self.group.orphaned);
        if orphaned {
            self.roots = self.group.roots().map(|root| root.identity).collect();
        }
        orphaned
    }

    /// Sets the cpus that were decided. Returns `true` if more has become known of the state from before.
    pub(super) fn give(
        &mut self,
        decision: &mut Decision,
        begun: Instant,
        notes: &mut Vec<String>,
    ) -> Result<bool> {
        let result = self.apply(&decision.cpus(), begun);
        decision.decision_seconds = begun.elapsed().as_secs_f64();
        notes.extend(self.actuator.note());
        if self.actuator.refused() > 0 {
            notes.push(format!(
                "threads of {} belong to another user and are left alone; run as root to govern them",
                self.group.target
            ));
        }
        match result {
            Ok(better_known) => {
                self.failures = 0;
                if better_known {
                    self.applied = None;
                }
                Ok(better_known)
            }
            Err(error) => {
                self.failures += 1;
                // Perhaps there are other cpus now.
                self.upkept = None;
                notes.push(format!("{error}; it is tried again"));
                decision.why = format!("{}; it could not be set: {error}", decision.why);
                if self.failures >= PATIENCE {
                    Err(error)
                } else {
                    Ok(false)
                }
            }
        }
    }

    /// Puts it back as it was.
    pub(super) fn restore(&self) -> Result<usize> {
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
