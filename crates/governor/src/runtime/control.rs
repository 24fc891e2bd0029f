//! Decides how many cores the workers have, from what was read of them.

use std::collections::BTreeMap;
use std::time::Duration;

use petri::Net;
use placement::CpuSet;
use topology::Machine;

use crate::error::Result;
use crate::policy::decision::Decision;
use crate::policy::governor::Governor;
use crate::policy::net::elastic_net;
use crate::policy::readings::{BUSY, Measure, RESIDENCY, Readings, THROUGHPUT};
use crate::policy::settings::{Policy, Sensor};

/// How to govern.
#[derive(Debug, Clone)]
pub struct Options {
    /// The policy by which cores are released and allocated again; a statement begins with all of them.
    pub policy: Policy,
    /// The machine that the cpus belong to, which need not be the one this runs on.
    pub machine: Machine,
    /// The cpus that the workers have before any decision.
    pub cpus: CpuSet,
    /// The cpus that there are to choose from.
    pub available: CpuSet,
    /// Time between two decisions while statements run.
    pub period: Duration,
}

impl Options {
    /// The default policy, with a decision every 50 ms.
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

    /// Lets the throughput sensor find how many workers pay off, instead of going by their load alone.
    #[must_use]
    pub fn by_throughput(mut self) -> Options {
        self.policy = self.policy.thresholds_of(Sensor::Throughput);
        self
    }
}

/// Time, summed over all workers.
#[derive(Debug)]
pub(super) struct Busy {
    pub(super) time: Duration,
    /// The sensor that it was read from.
    pub(super) source: String,
}

/// What is read of the workers for a decision.
#[derive(Debug)]
pub(super) struct Look {
    /// The present time, in seconds since a fixed moment.
    pub(super) time: f64,
    /// Time in which statements ran since the last look.
    pub(super) active: Duration,
    /// Busy time of the workers since then; `None` if it cannot be read.
    pub(super) busy: Option<Busy>,
    /// Bytes that they have read in all, by node.
    pub(super) bytes: Vec<(u32, u64)>,
}

/// Decides about the workers.
#[derive(Debug)]
pub(super) struct Control {
    options: Options,
    net: Net,
}

/// State that lasts from one period to the next while statements run.
#[derive(Debug)]
pub(super) struct Stretch {
    governor: Governor,
    /// Bytes read in all, by node, as of the last look.
    bytes: Vec<(u32, u64)>,
    /// Bytes read lately, by node: older ones fade.
    pages: BTreeMap<u32, f64>,
    /// When bytes were last read.
    read: f64,
    /// The cpus that the workers have.
    pub(super) cpus: CpuSet,
}

impl Control {
    /// # Errors
    ///
    /// [`Error::Policy`](crate::Error::Policy) if the options' policy is not consistent.
    pub(super) fn new(options: Options) -> Result<Control> {
        let control = Control {
            net: elastic_net()?,
            options,
        };
        control.governor()?;
        Ok(control)
    }

    pub(super) fn options(&self) -> &Options {
        &self.options
    }

    /// A new governor, whose workers have all cpus.
    fn governor(&self) -> Result<Governor> {
        let policy = self.options.policy.clone();
        let mut governor = Governor::new(policy, &self.options.machine, &self.net)?;
        governor.holds(&self.options.cpus);
        Ok(governor)
    }

    /// Begins a stretch of statements, with workers that have all of their cpus and have read these bytes so far.
    ///
    /// # Errors
    ///
    /// Those of [`new`](Control::new).
    pub(super) fn stretch(&self, time: f64, bytes: Vec<(u32, u64)>) -> Result<Stretch> {
        Ok(Stretch {
            governor: self.governor()?,
            bytes,
            pages: BTreeMap::new(),
            read: time,
            cpus: self.options.cpus.clone(),
        })
    }

    /// Makes one decision. The caller sets the cpus that it names, and then stores them in the stretch's `cpus`.
    ///
    /// # Errors
    ///
    /// None, as the net is this crate's own.
    pub(super) fn decide(&self, stretch: &mut Stretch, look: Look) -> Result<Decision> {
        let readings = self.readings(stretch, look);
        stretch.governor.step(&readings)
    }

    fn readings(&self, stretch: &mut Stretch, look: Look) -> Readings {
        let time = look.time;
        let seconds = look.active.as_secs_f64();
        let mut readings = Readings::new(time, self.options.available.clone());
        readings.set(
            BUSY,
            match look.busy {
                Some(busy) if seconds > 0.0 => {
                    let cpus = busy.time.as_secs_f64() / seconds;
                    Measure::new(cpus.min(stretch.cpus.len() as f64), "cpus", &busy.source)
                }
                _ => Measure::unavailable("cpus", "its workers", "their times cannot be read"),
            },
        );
        let new = self.read(stretch, time, look.bytes);
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

    /// Takes the bytes read since the last look. They, and not all pages in memory, say where the database's data is:
    /// pages that nobody reads are no reason to compute near them.
    fn read(&self, stretch: &mut Stretch, time: f64, now: Vec<(u32, u64)>) -> f64 {
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
}
