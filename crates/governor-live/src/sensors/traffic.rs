//! Interconnect traffic over memory-controller traffic (E7), where the processor counts both. What
//! is counted is the whole machine's.

use counters::{Nodes, Reading, Sensor, System, Uncore, Unit, Value};
use governor::Measure;
use topology::Machine;

/// A link's counter without a unit counts flits of so many bytes.
const FLIT: f64 = 8.0;

const UNIT: &str = "ratio";
const SOURCE: &str = "uncore, whole machine";

/// Reads the ratio since the last reading.
pub(crate) struct Traffic {
    sensor: Box<dyn Sensor + Send>,
    last: Option<Bytes>,
}

/// The totals at the last reading.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Bytes {
    link: f64,
    memory: f64,
}

impl Traffic {
    pub(crate) fn new(machine: &Machine) -> Traffic {
        let nodes = Nodes::new(machine);
        Traffic::of(Box::new(Uncore::new(&System::real(), &nodes)))
    }

    fn of(sensor: Box<dyn Sensor + Send>) -> Traffic {
        Traffic { sensor, last: None }
    }

    pub(crate) fn read(&mut self) -> Measure {
        let not = |why: &str| Measure::unavailable(UNIT, SOURCE, why);
        let now = match bytes(&self.sensor.read()) {
            Ok(now) => now,
            Err(why) => return not(&why),
        };
        let Some(last) = self.last.replace(now) else {
            return not("it takes a second look");
        };
        let (link, memory) = (now.link - last.link, now.memory - last.memory);
        if link < 0.0 || memory < 0.0 {
            return not("its counters went back");
        }
        // Nothing at all was read: nothing came from far away.
        let ratio = if memory > 0.0 { link / memory } else { 0.0 };
        Measure::new(ratio, UNIT, SOURCE)
    }
}

impl std::fmt::Debug for Traffic {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Traffic");
        shown.field("last", &self.last).finish_non_exhaustive()
    }
}

/// The sums over all controllers and links, or why there are none: a counter cannot be read, or there is none of a
/// kind.
fn bytes(readings: &[Reading]) -> Result<Bytes, String> {
    Ok(Bytes {
        link: link_bytes(readings)?,
        memory: sum(readings, "dram.", "memory controllers")?,
    })
}

/// The bytes that crossed between nodes.
pub(super) fn link_bytes(readings: &[Reading]) -> Result<f64, String> {
    sum(readings, "link.", "links between nodes")
}

fn sum(readings: &[Reading], kind: &str, what: &str) -> Result<f64, String> {
    let mut sum = None;
    for reading in readings.iter().filter(|one| one.name.starts_with(kind)) {
        let number = match &reading.value {
            Value::Unavailable(reason) => return Err(reason.text.clone()),
            value => value.number().unwrap_or(0.0),
        };
        let by = if reading.unit == Unit::Bytes {
            1.0
        } else {
            FLIT
        };
        sum = Some(sum.unwrap_or(0.0) + number * by);
    }
    sum.ok_or_else(|| format!("no counter of {what} is known here"))
}

#[cfg(test)]
mod tests {
    use counters::{Scope, Source, Why};

    use super::*;

    /// A source that returns one prepared value after the other.
    struct Script(Vec<Vec<Reading>>);

    impl Sensor for Script {
        fn read(&mut self) -> Vec<Reading> {
            self.0.remove(0)
        }
    }

    fn reading(name: &'static str, value: f64, unit: Unit) -> Reading {
        let value = Value::Number(value);
        Reading::new(name, value, unit, Source::Uncore, Scope::Machine)
    }

    fn counted(link: f64, read: f64, write: f64) -> Vec<Reading> {
        vec![
            reading("link.data", link / 16.0, Unit::Unnamed),
            reading("link.data", link / 16.0, Unit::Unnamed),
            reading("dram.read", read, Unit::Bytes),
            reading("dram.write", write, Unit::Bytes),
        ]
    }

    #[test]
    fn the_ratio_is_of_what_was_moved_since() {
        let script = vec![
            counted(1000.0, 500.0, 500.0),
            counted(1300.0, 1000.0, 1000.0),
            counted(1300.0, 1000.0, 1000.0),
            counted(0.0, 0.0, 0.0),
        ];
        let mut traffic = Traffic::of(Box::new(Script(script)));
        let first = traffic.read().unavailable.unwrap();
        assert!(first.contains("second look"), "{first}");
        assert_eq!(traffic.read().value, Some(0.3));
        assert_eq!(traffic.read().value, Some(0.0));
        assert!(traffic.read().unavailable.unwrap().contains("went back"));
    }

    #[test]
    fn what_is_missing_is_no_zero() {
        let why = |readings: Vec<Reading>| {
            let measure = Traffic::of(Box::new(Script(vec![readings]))).read();
            assert_eq!(measure.value, None);
            measure.unavailable.unwrap()
        };
        assert!(why(counted(1.0, 1.0, 1.0).split_off(2)).contains("links"));
        assert!(why(counted(1.0, 1.0, 1.0)[..2].to_vec()).contains("controllers"));
        let mut one = counted(1.0, 1.0, 1.0);
        one[1].value = Value::unavailable(Why::Absent, "not allowed");
        assert_eq!(why(one), "not allowed");
    }
}
