//! Residency as a sensor.

use std::time::{Duration, Instant};

use crate::residency::found::{Look, Residency};
use crate::residency::looker::Looker;
use crate::{Error, Process, Reading, Result, Scope, Sensor, Source, Unit, Value, Why};

/// A look is not repeated before this many times what it took.
const REST: u32 = 50;

/// Bytes of a process in memory per node, `memory.bytes`, and in all nodes.
///
/// However often it is read, looking takes at most a fiftieth of the time: between looks the last
/// one is repeated, with its age.
#[derive(Debug)]
pub struct ProcessMemory {
    looker: Looker,
    process: Process,
    last: Option<Last>,
}

#[derive(Debug)]
struct Last {
    at: Instant,
    took: Duration,
    found: Residency,
}

impl ProcessMemory {
    /// Of this process.
    pub fn new(looker: Looker, process: Process) -> ProcessMemory {
        ProcessMemory {
            looker,
            process,
            last: None,
        }
    }

    /// Where its memory lies, and how old that is.
    ///
    /// # Errors
    ///
    /// As [`Looker::look`].
    pub fn look(&mut self) -> Result<(&Residency, Duration)> {
        let begun = Instant::now();
        let rests = |last: &Last| last.at + last.took * REST > begun;
        if !self.last.as_ref().is_some_and(rests) {
            let found = self.looker.look(&self.process)?;
            self.last = Some(Last {
                at: begun,
                took: begun.elapsed(),
                found,
            });
        }
        match &self.last {
            Some(last) => Ok((&last.found, begun.saturating_duration_since(last.at))),
            None => Err(Error::Ended {
                pid: self.process.pid(),
            }),
        }
    }
}

impl Sensor for ProcessMemory {
    fn read(&mut self) -> Vec<Reading> {
        let process = self.process.pid();
        let name = "memory.bytes";
        let (residency, age) = match self.look() {
            Ok(found) => found,
            Err(error) => {
                let why = match error {
                    Error::Ended { .. } => Why::Ended,
                    Error::Denied { .. } => Why::Refused,
                    Error::NoMemory { .. } => Why::Absent,
                    _ => Why::NotUnderstood,
                };
                let value = Value::unavailable(why, error.to_string());
                let scope = Scope::Process(process);
                return vec![Reading::new(
                    name,
                    value,
                    Unit::Bytes,
                    Source::NumaMaps,
                    scope,
                )];
            }
        };
        let source = match residency.look {
            Look::Walked => Source::NumaMaps,
            Look::Sampled { .. } => Source::MovePages,
        };
        let new = |bytes, scope| {
            let mut reading = Reading::new(name, Value::Count(bytes), Unit::Bytes, source, scope);
            reading.age = age;
            reading
        };
        let mut readings: Vec<Reading> = residency
            .nodes
            .iter()
            .zip(residency.bytes())
            .map(|(&node, bytes)| new(bytes, Scope::Memory { process, node }))
            .collect();
        readings.push(new(residency.total(), Scope::Process(process)));
        readings
    }
}
