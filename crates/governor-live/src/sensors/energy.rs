//! The machine's counters of energy and of bytes between nodes, and the use of cores by a target.

use std::time::{Duration, Instant};

use counters::{Nodes, Powercap, Reading, Scope, Sensor, System, Uncore};
use governor::{BUSY, Decision, Machine as Counted, Power, Spent};

use crate::sensors::traffic::link_bytes;

/// How often energy counters are read: they wrap around about once a minute.
const LOOK: Duration = Duration::from_secs(1);

/// The counters, which are those of the whole machine.
pub(crate) struct Meter {
    powercap: Box<dyn Sensor + Send>,
    uncore: Box<dyn Sensor + Send>,
    looked: Option<Instant>,
    /// The links' bytes at the first look.
    links: Option<f64>,
    counted: Counted,
}

impl std::fmt::Debug for Meter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Meter")
            .field("counted", &self.counted)
            .finish_non_exhaustive()
    }
}

impl Meter {
    pub(crate) fn new(machine: &topology::Machine) -> Meter {
        let system = System::real();
        let uncore = Uncore::new(&system, &Nodes::new(machine));
        Meter::of(Box::new(Powercap::new(&system)), Box::new(uncore))
    }

    fn of(powercap: Box<dyn Sensor + Send>, uncore: Box<dyn Sensor + Send>) -> Meter {
        let mut meter = Meter {
            powercap,
            uncore,
            looked: None,
            links: None,
            counted: Counted::default(),
        };
        meter.read();
        meter
    }

    /// Reads the energy counters if they are due.
    pub(crate) fn look(&mut self, now: Instant) {
        if self.looked.is_none_or(|at| now - at >= LOOK) {
            self.looked = Some(now);
            self.read();
        }
    }

    /// The values at the last look.
    pub(crate) fn counted(&self) -> Counted {
        self.counted
    }

    /// Since it was made.
    pub(crate) fn read(&mut self) -> Counted {
        self.counted.joules = joules(&self.powercap.read()).or(self.counted.joules);
        if let Ok(bytes) = link_bytes(&self.uncore.read()) {
            let first = *self.links.get_or_insert(bytes);
            self.counted.link_bytes = Some((bytes - first).max(0.0));
        }
        self.counted
    }
}

/// The energy of all packages and of memory that they do not include; `None` if a package cannot be read.
fn joules(readings: &[Reading]) -> Option<f64> {
    let mut sum = None;
    for reading in readings {
        let Scope::Part(name) = &reading.scope else {
            continue;
        };
        let (package, memory) = match name.split_once('/') {
            None => (name.starts_with("package"), false),
            Some((_, part)) => (false, part == "dram"),
        };
        match reading.value.number() {
            Some(joules) if package || memory => sum = Some(sum.unwrap_or(0.0) + joules),
            None if package => return None,
            _ => {}
        }
    }
    sum
}

/// Adds up the core-seconds that a target had and used.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Bill {
    since: Option<f64>,
    last: f64,
    cores: usize,
    core_seconds: f64,
    used: f64,
    /// Seconds in which the busy time could not be read.
    unread: f64,
}

impl Bill {
    /// Takes a decision; the time before it is counted with the cores from before.
    pub(crate) fn add(&mut self, decision: &Decision) {
        let elapsed = self.upto(decision.time);
        let busy = decision.readings.get(BUSY).and_then(|busy| busy.value);
        match busy {
            Some(busy) => self.used += busy * elapsed,
            None => self.unread += elapsed,
        }
        self.cores = decision.cpus.len();
    }

    fn upto(&mut self, time: f64) -> f64 {
        let since = self.since.get_or_insert(time);
        let elapsed = (time - self.last.max(*since)).max(0.0);
        self.core_seconds += elapsed * self.cores as f64;
        self.last = time;
        elapsed
    }

    /// The sums up to this time.
    pub(crate) fn spent(
        mut self,
        target: &str,
        time: f64,
        power: Power,
        machine: Counted,
    ) -> Spent {
        self.upto(time);
        Spent {
            target: target.to_owned(),
            seconds: time - self.since.unwrap_or(time),
            core_seconds: self.core_seconds,
            used: self.used,
            unread_seconds: self.unread,
            energy: power.energy(self.used, machine.link_bytes),
            power,
            machine,
        }
    }
}

#[cfg(test)]
mod tests {
    use counters::{Source, Unit, Value, Why};
    use governor::{Governor, Measure, Policy, Readings};
    use placement::CpuSet;

    use super::*;

    struct Script(Vec<Vec<Reading>>);

    impl Sensor for Script {
        fn read(&mut self) -> Vec<Reading> {
            match self.0.len() {
                1 => self.0[0].clone(),
                _ => self.0.remove(0),
            }
        }
    }

    fn zone(name: &str, value: Value) -> Reading {
        let scope = Scope::Part(name.to_owned());
        Reading::new("energy", value, Unit::Joules, Source::Powercap, scope)
    }

    fn zones(first: f64) -> Vec<Reading> {
        let number = |value| Value::Number(value);
        vec![
            zone("package-0", number(first)),
            zone("package-0/core", number(0.7)),
            zone("package-0/dram", number(0.25)),
            zone("package-1", number(2.0)),
            zone("psys", number(100.0)),
        ]
    }

    fn link(bytes: f64) -> Vec<Reading> {
        let value = Value::Number(bytes);
        vec![Reading::new(
            "link.data",
            value,
            Unit::Bytes,
            Source::Uncore,
            Scope::Machine,
        )]
    }

    #[test]
    fn packages_and_memory_are_summed_and_parts_are_not_counted_twice() {
        assert_eq!(joules(&zones(1.0)), Some(3.25));
        assert_eq!(joules(&[]), None, "no zone is not no energy");
        let mut refused = zones(1.0);
        refused[3].value = Value::unavailable(Why::Refused, "only root may read it");
        assert_eq!(
            joules(&refused),
            None,
            "half of the machine is not the machine"
        );
    }

    #[test]
    fn bytes_between_nodes_are_those_since_it_was_made() {
        let energy = Script(vec![zones(0.0), zones(4.0)]);
        let links = Script(vec![link(1000.0), link(1700.0)]);
        let mut meter = Meter::of(Box::new(energy), Box::new(links));
        let counted = meter.read();
        assert_eq!(counted.link_bytes, Some(700.0));
        assert_eq!(counted.joules, Some(6.25));
        let mut none = Meter::of(
            Box::new(Script(vec![vec![]])),
            Box::new(Script(vec![vec![]])),
        );
        assert_eq!(none.read(), Counted::default());
    }

    #[test]
    fn a_bill_is_of_the_cores_it_had_and_those_it_used() {
        let machine = topology::Machine::parse("1x4").unwrap();
        let net = governor::elastic_net().unwrap();
        let mut governor = Governor::new(Policy::plain(), &machine, &net).unwrap();
        let all: CpuSet = (0..4).collect();
        let mut bill = Bill::default();
        // It starts with one, and gets a second at the first look at a load of 100 %.
        for (time, busy) in [(5.0, 0.0), (6.0, 1.0), (8.0, 1.5)] {
            let busy = Measure::new(busy, "cpus", "test");
            let readings = Readings::new(time, all.clone()).with(BUSY, busy);
            bill.add(&governor.step(&readings).unwrap());
        }
        assert_eq!(governor.cpus().len(), 3);
        let power = Power::default();
        let spent = bill.spent("t", 9.0, power, Counted::default());
        assert_eq!(
            (spent.seconds, spent.core_seconds, spent.used),
            (4.0, 1.0 + 2.0 * 2.0 + 3.0, 4.0)
        );
        assert_eq!(spent.energy.cpu_joules, 4.0 * power.core_watts);
        assert_eq!(spent.unread_seconds, 0.0);
        let never = Bill::default().spent("t", 9.0, power, Counted::default());
        assert_eq!((never.seconds, never.used), (0.0, 0.0));
    }

    #[test]
    fn what_could_not_be_read_is_told_and_no_zero() {
        let machine = topology::Machine::parse("1x4").unwrap();
        let net = governor::elastic_net().unwrap();
        let mut governor = Governor::new(Policy::plain(), &machine, &net).unwrap();
        let all: CpuSet = (0..4).collect();
        let mut bill = Bill::default();
        for (time, busy) in [(0.0, Some(1.0)), (2.0, None), (3.0, Some(1.0))] {
            let readings = Readings::new(time, all.clone());
            let decided = Measure::new(1.0, "cpus", "test");
            let mut decision = governor.step(&readings.with(BUSY, decided)).unwrap();
            let told = busy.map_or(Measure::unavailable("cpus", "test", "gone"), |busy| {
                Measure::new(busy, "cpus", "test")
            });
            decision.readings.insert(BUSY.to_owned(), told);
            bill.add(&decision);
        }
        let spent = bill.spent("t", 3.0, Power::default(), Counted::default());
        assert_eq!((spent.used, spent.unread_seconds), (1.0, 2.0));
        let told = spent.to_string();
        assert!(told.contains("not be read for 2.0 s"), "{told}");
    }
}
