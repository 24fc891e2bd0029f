//! A governor on a thread of this process.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use governor::{Mode, Policy, Sensor};
use governor_live::{Counter, Error, Live, Means, Options, Target, Wanted};
use parking_lot::{Condvar, Mutex};
use pyo3::prelude::*;

use crate::error::{InterfaceError, OperationalError};
use crate::wait::detached;

/// Decisions that are kept.
const KEPT: usize = 1000;

/// What to govern, and how; the options of `atoll govern`.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GovernOptions {
    pid: Option<u32>,
    name: Option<String>,
    cgroup: Option<PathBuf>,
    unit: Option<String>,
    mode: String,
    sensor: Option<String>,
    throughput: Option<String>,
    min_cores: Option<usize>,
    max_cores: Option<usize>,
    reserve: Option<usize>,
    /// Seconds between two decisions.
    period: Option<f64>,
    actuator: String,
    migrate: bool,
    dry_run: bool,
    /// The words that start a guard.
    guard: Vec<OsString>,
}

impl GovernOptions {
    fn target(&self) -> PyResult<Target> {
        let pid = self.pid.map(Target::Pid);
        let name = self.name.clone().map(Target::Name);
        let cgroup = self.cgroup.clone().map(Target::Cgroup);
        let unit = self.unit.clone().map(Target::Unit);
        let mut given = [pid, name, cgroup, unit].into_iter().flatten();
        match (given.next(), given.next()) {
            (Some(Target::Pid(0)), None) => Err(wrong(
                "process 0 cannot be governed: give the number of a process",
            )),
            (Some(target), None) => Ok(target),
            _ => Err(wrong("say what to govern, once: pid, name, cgroup or unit")),
        }
    }

    fn policy(&self) -> PyResult<Policy> {
        let mode: Mode = self.mode.parse().map_err(wrong)?;
        let sensor: Option<Sensor> = match (&self.sensor, &self.throughput) {
            (Some(sensor), _) => Some(sensor.parse().map_err(wrong)?),
            (None, Some(_)) => Some(Sensor::Throughput),
            (None, None) => None,
        };
        let mut policy = Policy::default();
        if let Some(sensor) = sensor.filter(|sensor| *sensor != policy.sensor) {
            policy = policy.thresholds_of(sensor);
        }
        policy.mode = mode;
        policy.min_cores = self.min_cores.unwrap_or(policy.min_cores);
        policy.max_cores = self.max_cores.or(policy.max_cores);
        policy.reserve = self.reserve.unwrap_or(policy.reserve);
        policy.check().map_err(wrong)?;
        Ok(policy)
    }

    fn options(self) -> PyResult<(Wanted, Options)> {
        let target = self.target()?;
        let policy = self.policy()?;
        let counter: Option<Counter> = match &self.throughput {
            Some(counter) => Some(counter.parse().map_err(wrong)?),
            None => None,
        };
        let usual = counter.as_ref().map(Counter::period);
        let mut options = Options::new(policy, governor_live::state_folder()).map_err(wrong)?;
        options.period = match self.period {
            None => usual.unwrap_or(options.period),
            Some(seconds) => Duration::try_from_secs_f64(seconds)
                .ok()
                .filter(|period| !period.is_zero())
                .ok_or_else(|| wrong("period: give seconds above 0"))?,
        };
        options.means = self.actuator.parse::<Means>().map_err(wrong)?;
        options.migrate = self.migrate;
        options.dry_run = self.dry_run;
        options.guard = self.guard;
        let wanted = Wanted {
            target,
            weight: 1.0,
            counter,
        };
        Ok((wanted, options))
    }
}

fn wrong(error: impl ToString) -> PyErr {
    InterfaceError::new_err(error.to_string())
}

/// What the thread tells.
#[derive(Default)]
struct Told {
    stop: bool,
    /// Decisions as JSON, the last ones.
    decisions: VecDeque<String>,
    made: u64,
    notes: Vec<String>,
    /// What was used, as JSON, once it has ended.
    spent: Option<String>,
    /// Why it has ended by itself, and whether that is an error.
    ended: Option<(String, bool)>,
}

/// What it noted; what was used, as JSON; why it has ended, and whether that is an error.
type Notes = (Vec<String>, Option<String>, Option<(String, bool)>);

#[derive(Default)]
struct Shared {
    told: Mutex<Told>,
    woken: Condvar,
}

/// A governor that runs until it is stopped or what it governs has ended.
#[pyclass(frozen, module = "atoll._atoll")]
pub(crate) struct Governor {
    process: u32,
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[pymethods]
impl Governor {
    /// Begins to govern.
    #[new]
    fn begin(py: Python<'_>, options: GovernOptions) -> PyResult<Governor> {
        let (wanted, options) = options.options()?;
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        let began = detached(py, || {
            let live = Live::begin(vec![wanted], options)?;
            let thread = std::thread::Builder::new().name("atoll-governor".to_owned());
            let thread = thread.spawn(move || govern(live, &own));
            thread.map_err(|error| Error::Command {
                what: "the governor's thread".to_owned(),
                why: error.to_string(),
            })
        })?;
        let thread = began.map_err(|error| match error {
            Error::Governor(error) => wrong(error),
            error => OperationalError::new_err(error.to_string()),
        })?;
        Ok(Governor {
            process: std::process::id(),
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// The last decisions, as JSON, and how many were made.
    fn decisions(&self, py: Python<'_>) -> (Vec<String>, u64) {
        py.detach(|| {
            let told = self.shared.told.lock();
            (told.decisions.iter().cloned().collect(), told.made)
        })
    }

    /// What it noted; what was used, as JSON; why it has ended by itself, and whether that is an error.
    fn told(&self, py: Python<'_>) -> Notes {
        py.detach(|| {
            let told = self.shared.told.lock();
            (told.notes.clone(), told.spent.clone(), told.ended.clone())
        })
    }

    /// Whether it governs.
    #[getter]
    fn running(&self) -> bool {
        let thread = self.thread.lock();
        self.process == std::process::id()
            && thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Ends it and waits until everything is as before.
    fn stop(&self, py: Python<'_>) {
        // A process that was forked has no such thread, and nothing to put back.
        if self.process == std::process::id() {
            py.detach(|| self.end());
        }
    }
}

impl Governor {
    fn end(&self) {
        self.shared.told.lock().stop = true;
        self.shared.woken.notify_all();
        if let Some(thread) = self.thread.lock().take() {
            // What has panicked has put everything back, by dropping the governor.
            let _ = thread.join();
        }
    }
}

impl Drop for Governor {
    fn drop(&mut self) {
        if self.process == std::process::id() {
            // The thread puts everything back by itself: nobody waits for it with the interpreter.
            self.shared.told.lock().stop = true;
            self.shared.woken.notify_all();
        }
    }
}

/// The thread: decides until it is to stop, and puts everything back.
fn govern(mut live: Live, shared: &Shared) {
    governor_live::hurry();
    loop {
        let begun = Instant::now();
        let checked = live.check();
        let notes = live.notes();
        let mut told = shared.told.lock();
        told.notes.extend(notes);
        match checked {
            Ok(decisions) => {
                for decision in decisions {
                    told.made += 1;
                    told.decisions.extend(serde_json::to_string(&decision).ok());
                }
                let many = told.decisions.len().saturating_sub(KEPT);
                told.decisions.drain(..many);
            }
            Err(error) => {
                let failed = !matches!(error, Error::Ended { .. });
                told.ended = Some((error.to_string(), failed));
                break;
            }
        }
        let due = Instant::now() + live.pause(begun);
        while !told.stop && Instant::now() < due {
            shared.woken.wait_until(&mut told, due);
        }
        if told.stop {
            break;
        }
    }
    let spent = serde_json::to_string(&live.spent()).ok();
    let ended = live.end();
    let mut told = shared.told.lock();
    told.spent = spent;
    if let Err(error) = ended {
        told.ended = Some((error.to_string(), true));
    }
}
