//! Instructions that the cores have completed for a group, where the processor counts them: progress that no database
//! has to tell. A program that waits by spinning completes some as well, which is why it is nobody's default.

use std::collections::HashMap;

use counters::{CoreEvents, Process, Sensor, System, Value};

use crate::group::target::Group;

/// The most processes that are counted: each takes a file per thread.
const PROCESSES: usize = 256;

type Counter = Box<dyn Sensor + Send>;

/// The counters of a group's processes.
pub(crate) struct Instructions {
    open: fn(u32) -> Result<Counter, String>,
    /// The counters, each with its last value.
    found: HashMap<u32, (Counter, f64)>,
    /// Total since the first look; never falls.
    sum: f64,
}

impl Default for Instructions {
    fn default() -> Instructions {
        Instructions {
            open: of_process,
            found: HashMap::new(),
            sum: 0.0,
        }
    }
}

impl std::fmt::Debug for Instructions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("Instructions");
        shown.field("sum", &self.sum).finish_non_exhaustive()
    }
}

fn of_process(pid: u32) -> Result<Counter, String> {
    let system = System::real();
    let process = Process::open(&system, pid);
    let counter = process.and_then(|process| CoreEvents::instructions(&system, &process));
    match counter {
        Ok(counter) => Ok(Box::new(counter)),
        Err(error) => Err(error.to_string()),
    }
}

/// The value of a counter, or why there is none.
fn told(counter: &mut Counter) -> Result<f64, String> {
    let readings = counter.read();
    let value = readings.first().map(|reading| &reading.value);
    match value {
        Some(Value::Unavailable(reason)) => Err(reason.text.clone()),
        Some(value) => value.number().ok_or_else(|| "it is no number".to_owned()),
        None => Err("nothing is counted".to_owned()),
    }
}

impl Instructions {
    /// Instructions completed since the first look, or why that is not known. Those of a process before it was first
    /// seen, and after the last look before its end, are not counted.
    pub(crate) fn read(&mut self, group: &Group) -> Result<f64, String> {
        self.found.retain(|pid, _| group.members.contains_key(pid));
        let mut why = "it has no process".to_owned();
        for pid in group.members.keys().take(PROCESSES) {
            if let Some((counter, last)) = self.found.get_mut(pid) {
                // One that just ends is gone next time.
                let now = told(counter).unwrap_or(*last);
                self.sum += (now - *last).max(0.0);
                *last = now;
                continue;
            }
            let opened = (self.open)(*pid);
            match opened.and_then(|mut counter| Ok((told(&mut counter)?, counter))) {
                Ok((now, counter)) => drop(self.found.insert(*pid, (counter, now))),
                Err(reason) => why = reason,
            }
        }
        if self.found.is_empty() {
            Err(why)
        } else {
            Ok(self.sum)
        }
    }
}

#[cfg(test)]
mod tests {
    use counters::{Reading, Scope, Source, Unit};

    use super::*;
    use crate::group::target::Target;

    /// Ten more with each reading, from its number on.
    struct Grows(u32, f64);

    impl Sensor for Grows {
        fn read(&mut self) -> Vec<Reading> {
            self.1 += 10.0;
            let value = Value::Number(f64::from(self.0) + self.1);
            let scope = Scope::Process(self.0);
            vec![Reading::new(
                "instructions",
                value,
                Unit::Accesses,
                Source::Core,
                scope,
            )]
        }
    }

    fn group(members: &[u32]) -> Group {
        let mut group = Group::find(Target::Pid(std::process::id())).unwrap();
        let one = group.members.values().next().unwrap().clone();
        group.members = members.iter().map(|pid| (*pid, one.clone())).collect();
        group
    }

    #[test]
    fn what_all_complete_is_added_up_and_never_falls() {
        let mut instructions = Instructions {
            open: |pid| match pid {
                7 => Err("not that one".to_owned()),
                pid => Ok(Box::new(Grows(pid, 0.0))),
            },
            ..Instructions::default()
        };
        assert_eq!(instructions.read(&group(&[7])), Err("not that one".into()));
        assert_eq!(instructions.read(&group(&[1, 7])), Ok(0.0));
        assert_eq!(instructions.read(&group(&[1, 2])), Ok(10.0), "2 is new");
        assert_eq!(instructions.read(&group(&[1, 2])), Ok(30.0));
        assert_eq!(instructions.read(&group(&[2])), Ok(40.0), "1 has ended");
        assert!(instructions.read(&group(&[])).is_err());
    }

    /// Where the processor counts none that is said, and never zero.
    #[test]
    fn of_this_machine() {
        let group = Group::find(Target::Pid(std::process::id())).unwrap();
        let mut instructions = Instructions::default();
        match instructions.read(&group) {
            Err(why) => assert!(why.len() > 10, "{why}"),
            Ok(_) => assert!(instructions.read(&group).unwrap() > 0.0),
        }
    }
}
