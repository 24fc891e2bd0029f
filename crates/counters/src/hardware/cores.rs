//! Events of the cores, for a process.

use crate::perf::event::{Event, Of, Wanted};
use crate::perf::software::reason;
use crate::perf::unit::Pmu;
use crate::{Process, Reading, Reason, Result, Scope, Sensor, Source, System, Unit, Value, Why};

/// `PERF_TYPE_HARDWARE`
const HARDWARE: u32 = 0;

/// `PERF_COUNT_HW_INSTRUCTIONS`
const INSTRUCTIONS: u64 = 1;

/// `PERF_TYPE_HW_CACHE`
const CACHE: u32 = 3;

/// The generic cache events of `perf_event_open(2)`: cache, operation, result.
const EVENTS: [(&str, u64); 4] = [
    // PERF_COUNT_HW_CACHE_NODE, READ, ACCESS: loads that a node's memory answered.
    ("node.loads", cache(6, 0, 0)),
    // ... and MISS: of these, those that another node's did.
    ("node.load_misses", cache(6, 0, 1)),
    // PERF_COUNT_HW_CACHE_LL, READ.
    ("llc.loads", cache(2, 0, 0)),
    ("llc.load_misses", cache(2, 0, 1)),
];

const fn cache(cache: u64, operation: u64, result: u64) -> u64 {
    cache | operation << 8 | result << 16
}

/// What the cores count for a process: `node.loads`, `node.load_misses` (remote), `llc.loads`
/// and `llc.load_misses`, and events that are asked for by name.
///
/// Never run on hardware that has them.
#[derive(Debug)]
pub struct CoreEvents {
    process: u32,
    events: Vec<(String, std::result::Result<Vec<Event>, Reason>)>,
}

impl CoreEvents {
    /// Of a process and the threads it starts; counting begins now. `more` are events such as
    /// `cpu/event=0xb7,umask=0x1,offcore_rsp=0x3fc0400001/`: a unit below
    /// `/sys/bus/event_source/devices`, and one of its events or terms of its format.
    ///
    /// # Errors
    ///
    /// Where the process has ended. Events that cannot be counted are unavailable.
    pub fn new(system: &System, process: &Process, more: &[&str]) -> Result<CoreEvents> {
        let threads = process.threads()?;
        let mut events = Vec::new();
        for (name, config) in EVENTS {
            let wanted = Wanted {
                kind: CACHE,
                config: [config, 0, 0],
                threads: true,
                ..Wanted::default()
            };
            events.push((name.to_owned(), open(system, &threads, wanted)));
        }
        for name in more {
            let opened = described(system, name).and_then(|mut wanted| {
                wanted.threads = true;
                open(system, &threads, wanted)
            });
            events.push(((*name).to_owned(), opened));
        }
        Ok(CoreEvents {
            process: process.pid(),
            events,
        })
    }

    /// Only `instructions`, completed by a process and the threads it starts; counting begins now.
    ///
    /// # Errors
    ///
    /// As [`new`](CoreEvents::new).
    pub fn instructions(system: &System, process: &Process) -> Result<CoreEvents> {
        let wanted = Wanted {
            kind: HARDWARE,
            config: [INSTRUCTIONS, 0, 0],
            threads: true,
            ..Wanted::default()
        };
        let opened = open(system, &process.threads()?, wanted);
        Ok(CoreEvents {
            process: process.pid(),
            events: vec![("instructions".to_owned(), opened)],
        })
    }
}

/// `UNIT/EVENT/` or `UNIT/TERMS/`.
fn described(system: &System, name: &str) -> std::result::Result<Wanted, Reason> {
    let parts: Vec<&str> = name.split('/').collect();
    let [unit, event, ""] = parts[..] else {
        return Err(Reason {
            why: Why::NotUnderstood,
            text: format!("'{name}' is not such as cpu/event=0xb7,umask=0x1/"),
        });
    };
    let pmu = Pmu::open(system, unit)?;
    let described = pmu.event(system, event).or_else(|none| {
        if event.contains('=') {
            pmu.terms(event, name)
        } else {
            Err(none)
        }
    })?;
    Ok(described.wanted)
}

fn open(
    system: &System,
    threads: &[u32],
    wanted: Wanted,
) -> std::result::Result<Vec<Event>, Reason> {
    if !system.is_real() {
        return Err(Reason {
            why: Why::Absent,
            text: "events are counted on the running system only".to_owned(),
        });
    }
    let opened = threads
        .iter()
        .map(|&thread| Event::open(wanted, Of::Thread(thread)))
        .filter(
            |opened| !matches!(opened, Err(error) if error.raw_os_error() == Some(libc::ESRCH)),
        );
    opened
        .collect::<std::io::Result<Vec<Event>>>()
        .map_err(|error| reason(&error))
}

impl Sensor for CoreEvents {
    fn read(&mut self) -> Vec<Reading> {
        let sum = |events: &[Event]| {
            let mut sum = 0.0;
            for event in events {
                let counted = event.read().map_err(|error| reason(&error))?;
                sum += counted.scaled().ok_or_else(|| Reason {
                    why: Why::NotYet,
                    text: "the event has not had a counter of the core yet".to_owned(),
                })?;
            }
            Ok(sum)
        };
        let reading = |(name, events): &(String, std::result::Result<Vec<Event>, Reason>)| {
            let value = match events.as_deref().map_err(Reason::clone).and_then(sum) {
                Ok(sum) => Value::Number(sum),
                Err(reason) => Value::Unavailable(reason),
            };
            let scope = Scope::Process(self.process);
            Reading::new(name.clone(), value, Unit::Accesses, Source::Core, scope)
        };
        self.events.iter().map(reading).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_and_not_counted_as_zero() {
        let system = System::real();
        let process = Process::open(&system, std::process::id()).unwrap();
        let more = ["nothing/x/", "cpu", "nothing/event=0x1/"];
        let mut events = CoreEvents::new(&system, &process, &more).unwrap();
        let readings = events.read();
        assert_eq!(readings.len(), EVENTS.len() + more.len());
        for reading in &readings[..EVENTS.len()] {
            match &reading.value {
                Value::Unavailable(reason) => assert!(reason.text.len() > 10, "{reading}"),
                counted => assert!(counted.number().is_some_and(|n| n >= 0.0), "{reading}"),
            }
            assert!(reading.to_string().contains("never run on hardware"));
        }
        for reading in &readings[EVENTS.len()..] {
            assert_eq!(reading.value.number(), None, "{reading}");
        }
        assert!(
            readings[4].to_string().contains("nothing"),
            "{}",
            readings[4]
        );
        assert!(
            readings[5].to_string().contains("is not such as"),
            "{}",
            readings[5]
        );
    }

    #[test]
    fn instructions_are_counted_or_it_is_told_why_not() {
        let system = System::real();
        let process = Process::open(&system, std::process::id()).unwrap();
        let mut events = CoreEvents::instructions(&system, &process).unwrap();
        let readings = events.read();
        assert_eq!(readings.len(), 1);
        assert_eq!(readings[0].name, "instructions");
        match &readings[0].value {
            Value::Unavailable(reason) => assert!(reason.text.len() > 10, "{}", readings[0]),
            counted => assert!(counted.number().is_some_and(|n| n > 0.0)),
        }
    }

    #[test]
    fn codes_are_those_of_the_manual() {
        // perf_event_open(2): (cache) | (operation << 8) | (result << 16).
        assert_eq!(
            EVENTS.map(|(_, config)| config),
            [6, 6 | 1 << 16, 2, 2 | 1 << 16]
        );
    }
}
