//! Events of memory controllers, interconnects and packages.

use crate::perf::event::{Event, Of};
use crate::perf::software::reason;
use crate::perf::unit::{self, Pmu};
use crate::{Nodes, Reading, Reason, Scope, Sensor, Source, System, Unit, Value, Why};

/// How a unit's name begins, which event of it, and the name of the reading. Which of them there
/// are, their codes, scales and units, is what sysfs says.
const EVENTS: [(&str, &str, &str); 10] = [
    ("uncore_imc", "cas_count_read", "dram.read"),
    ("uncore_imc", "cas_count_write", "dram.write"),
    ("uncore_imc", "data_reads", "dram.read"),
    ("uncore_imc", "data_writes", "dram.write"),
    ("uncore_imc_free_running", "read", "dram.read"),
    ("uncore_imc_free_running", "write", "dram.write"),
    ("uncore_qpi", "drs_data", "link.data"),
    ("power", "energy-ram", "energy.dram"),
    ("power", "energy-pkg", "energy.package"),
    ("power", "energy-cores", "energy.cores"),
];

/// What memory controllers (`dram.read`, `dram.write`), links between sockets (`link.data`) and
/// packages (`energy.dram`, ...) count, for the whole machine, per unit and node.
///
/// Reads what the kernel describes below `/sys/bus/event_source/devices`. AMD's data fabric is
/// there without descriptions of its events, so it takes [`Uncore::event`].
///
/// Never run on hardware that has them.
#[derive(Debug)]
pub struct Uncore {
    counters: Vec<Counter>,
}

#[derive(Debug)]
struct Counter {
    name: String,
    scope: Scope,
    unit: Unit,
    scale: f64,
    event: Result<Event, Reason>,
}

impl Uncore {
    /// All events that are known here by name; counting begins now.
    pub fn new(system: &System, nodes: &Nodes) -> Uncore {
        let mut uncore = Uncore {
            counters: Vec::new(),
        };
        for unit in unit::names(system) {
            for (prefix, event, name) in EVENTS {
                if !belongs(&unit, prefix) {
                    continue;
                }
                if let Ok(pmu) = Pmu::open(system, &unit)
                    && let Ok(described) = pmu.event(system, event)
                {
                    uncore.add(system, nodes, &unit, &pmu, described, name);
                }
            }
        }
        uncore
    }

    /// Counts an event of a unit, given by the terms of its format, too: such as `amd_df` and
    /// `event=0x07,umask=0x38`.
    #[must_use]
    pub fn event(mut self, system: &System, nodes: &Nodes, unit: &str, terms: &str) -> Uncore {
        let name = format!("{unit}/{terms}/");
        let described = Pmu::open(system, unit).and_then(|pmu| Ok((pmu.terms(terms, &name)?, pmu)));
        match described {
            Ok((described, pmu)) => self.add(system, nodes, unit, &pmu, described, &name),
            Err(reason) => self.counters.push(Counter {
                name,
                scope: Scope::Machine,
                unit: Unit::Events,
                scale: 1.0,
                event: Err(reason),
            }),
        }
        self
    }

    /// One counter per instance of the unit: each is counted through one of the cpus next to it.
    fn add(
        &mut self,
        system: &System,
        nodes: &Nodes,
        unit: &str,
        pmu: &Pmu,
        described: unit::Described,
        name: &str,
    ) {
        let cpus = if pmu.cpus.is_empty() {
            &[0][..]
        } else {
            &pmu.cpus
        };
        for &cpu in cpus {
            let event = if system.is_real() {
                Event::open(described.wanted, Of::Cpu(cpu)).map_err(|error| reason(&error))
            } else {
                Err(Reason {
                    why: Why::Absent,
                    text: "events are counted on the running system only".to_owned(),
                })
            };
            let place = nodes
                .of_cpu(cpu)
                .map_or(format!("cpu {cpu}"), |node| format!("node {node}"));
            self.counters.push(Counter {
                name: name.to_owned(),
                scope: Scope::Part(format!("{unit} at {place}")),
                unit: described.unit,
                scale: described.scale,
                event,
            });
        }
    }
}

/// `uncore_imc_0` is an `uncore_imc`, `uncore_imc_free_running_0` is not.
fn belongs(unit: &str, prefix: &str) -> bool {
    let Some(rest) = unit.strip_prefix(prefix) else {
        return false;
    };
    let rest = rest.strip_prefix('_').unwrap_or(rest);
    rest.bytes().all(|byte| byte.is_ascii_digit())
}

impl Sensor for Uncore {
    fn read(&mut self) -> Vec<Reading> {
        let source = Source::Uncore;
        if self.counters.is_empty() {
            let text = "the kernel describes no counters of memory controllers or links (/sys/bus/event_source/devices; virtual machines show none)";
            let missing = |(name, unit)| {
                let value = Value::unavailable(Why::Absent, text);
                Reading::new(name, value, unit, source, Scope::Machine)
            };
            return [
                ("dram.read", Unit::Bytes),
                ("dram.write", Unit::Bytes),
                ("link.data", Unit::Unnamed),
                ("energy.dram", Unit::Joules),
            ]
            .map(missing)
            .to_vec();
        }
        let read = |counter: &Counter| {
            let event = counter.event.as_ref().map_err(Reason::clone)?;
            let counted = event.read().map_err(|error| reason(&error))?;
            counted.scaled().ok_or_else(|| Reason {
                why: Why::NotYet,
                text: "the event has not had a counter yet".to_owned(),
            })
        };
        let reading = |counter: &Counter| {
            let value = match read(counter) {
                Ok(count) => Value::Number(count * counter.scale),
                Err(reason) => Value::Unavailable(reason),
            };
            let name = counter.name.clone();
            Reading::new(name, value, counter.unit, source, counter.scope.clone())
        };
        self.counters.iter().map(reading).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Nodes {
        Nodes::new(&topology::Machine::parse("2x2").unwrap())
    }

    #[test]
    fn instances_are_told_from_families() {
        assert!(belongs("uncore_imc_0", "uncore_imc") && belongs("uncore_imc", "uncore_imc"));
        assert!(!belongs("uncore_imc_free_running_0", "uncore_imc"));
        assert!(belongs(
            "uncore_imc_free_running_11",
            "uncore_imc_free_running"
        ));
        assert!(!belongs("powerful", "power") && belongs("power", "power"));
    }

    /// Files follow Documentation/ABI/testing/sysfs-bus-event_source-devices-{format,events}; the
    /// numbers in them are generated, as no machine was recorded.
    #[test]
    fn units_are_found_by_what_sysfs_says() {
        let folder = tempfile::tempdir().unwrap();
        let devices = folder.path().join("sys/bus/event_source/devices");
        for unit in ["uncore_imc_0", "uncore_imc_1", "uncore_cha_0", "amd_df"] {
            for (name, text) in [
                ("type", "12\n"),
                ("cpumask", "0,2\n"),
                ("format/event", "config:0-7\n"),
                ("format/umask", "config:8-15\n"),
                ("events/cas_count_read", "event=0x04,umask=0x03\n"),
                ("events/cas_count_read.unit", "MiB\n"),
                ("events/cas_count_read.scale", "2.0\n"),
            ] {
                let path = devices.join(unit).join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                std::fs::write(path, text).unwrap();
            }
        }
        let system = System::at(folder.path());
        let mut uncore = Uncore::new(&system, &nodes()).event(
            &system,
            &nodes(),
            "amd_df",
            "event=0x07,umask=0x38",
        );
        assert_eq!(uncore.counters[0].scale, 2.0 * 1024.0 * 1024.0);
        let readings = uncore.read();
        let told: Vec<_> = readings
            .iter()
            .map(|r| (r.name.as_ref(), r.scope.to_string(), r.unit))
            .collect();
        let part = |unit: &str, node| format!("{unit} at node {node}");
        assert_eq!(
            told,
            [
                ("dram.read", part("uncore_imc_0", 0), Unit::Bytes),
                ("dram.read", part("uncore_imc_0", 1), Unit::Bytes),
                ("dram.read", part("uncore_imc_1", 0), Unit::Bytes),
                ("dram.read", part("uncore_imc_1", 1), Unit::Bytes),
                (
                    "amd_df/event=0x07,umask=0x38/",
                    part("amd_df", 0),
                    Unit::Events
                ),
                (
                    "amd_df/event=0x07,umask=0x38/",
                    part("amd_df", 1),
                    Unit::Events
                ),
            ]
        );
        assert!(
            readings
                .iter()
                .all(|reading| reading.value.number().is_none())
        );
    }

    #[test]
    fn of_this_machine() {
        let system = System::real();
        let mut uncore = Uncore::new(&system, &nodes()).event(&system, &nodes(), "nothing", "x=1");
        let readings = uncore.read();
        assert!(!readings.is_empty());
        assert!(
            readings
                .iter()
                .any(|reading| reading.to_string().contains("nothing"))
        );
    }
}
