//! Decisions as files: recorded, and decided again with another policy.

use std::io::{BufRead, Write};

use petri::Net;
use placement::CpuSet;
use serde::{Deserialize, Serialize};
use topology::Machine;

use crate::error::{Error, Result};
use crate::policy::decision::Decision;
use crate::policy::governor::Governor;
use crate::policy::readings::{BUSY, Measure, Readings, WAITING};
use crate::policy::settings::Policy;

/// The longest line of a trace, in bytes.
pub const MAX_LINE: usize = 1 << 20;

/// How the last line of `atoll govern --json` begins, which is no decision.
const SPENT: &[u8] = br#"{"spent":"#;

/// The first line of a trace: where and how the decisions were made.
///
/// As JSON: `{"trace": 1, "machine", "policy"}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// The version of the format, 1.
    pub trace: u32,
    /// A description that [`Machine::parse`] accepts, if there is one for the machine.
    pub machine: String,
    /// How the database was governed.
    pub policy: Policy,
}

impl Head {
    /// The head of a trace that begins now. A machine whose cpus are numbered node by node, with equally many cores
    /// on each, is written as `4x4`; others by their name.
    pub fn new(machine: &Machine, policy: &Policy) -> Head {
        let nodes = machine.nodes();
        let grid = format!("{}x{}", nodes.len(), nodes[0].cores.len());
        let cpus = |machine: &Machine| -> Vec<Vec<u32>> {
            let of = |node: &topology::Node| -> Vec<u32> {
                node.cores
                    .iter()
                    .flat_map(|core| core.cpus.clone())
                    .collect()
            };
            machine.nodes().iter().map(of).collect()
        };
        let same = Machine::parse(&grid).is_ok_and(|like| cpus(&like) == cpus(machine));
        Head {
            trace: 1,
            machine: if same {
                grid
            } else {
                machine.name().to_owned()
            },
            policy: policy.clone(),
        }
    }
}

/// A recorded trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Its first line, if it has one.
    pub head: Option<Head>,
    /// The decisions, in order.
    pub decisions: Vec<Decision>,
}

impl Trace {
    /// Reads a trace: a [`Head`], which may be missing, then one [`Decision`] per line.
    ///
    /// # Errors
    ///
    /// [`Error::Trace`] with the line.
    pub fn read(mut from: impl BufRead) -> Result<Trace> {
        let mut trace = Trace {
            head: None,
            decisions: Vec::new(),
        };
        let mut line = Vec::new();
        for number in 1.. {
            let wrong = |why: String| Error::Trace { line: number, why };
            line.clear();
            let mut limited = std::io::Read::take(&mut from, MAX_LINE as u64 + 1);
            let bytes = limited.read_until(b'\n', &mut line);
            if bytes.map_err(|error| wrong(error.to_string()))? == 0 {
                break;
            }
            if line.len() > MAX_LINE {
                return Err(wrong(format!("it is longer than {MAX_LINE} bytes")));
            }
            if line.trim_ascii().is_empty() {
                continue;
            }
            if trace.head.is_none()
                && trace.decisions.is_empty()
                && let Ok(head) = serde_json::from_slice::<Head>(&line)
            {
                if head.trace != 1 {
                    return Err(wrong(format!("version {} is not known", head.trace)));
                }
                trace.head = Some(head);
                continue;
            }
            if line.starts_with(SPENT) {
                continue;
            }
            let decision: Decision =
                serde_json::from_slice(&line).map_err(|error| wrong(no_decision(&error)))?;
            if trace
                .decisions
                .last()
                .is_some_and(|last| decision.time < last.time)
            {
                return Err(wrong("its time goes back".to_owned()));
            }
            trace.decisions.push(decision);
        }
        Ok(trace)
    }

    /// Writes it so that [`read`](Trace::read) gives it again.
    ///
    /// # Errors
    ///
    /// Those of the writer.
    pub fn write(&self, mut to: impl Write) -> std::io::Result<()> {
        if let Some(head) = &self.head {
            serde_json::to_writer(&mut to, head)?;
            to.write_all(b"\n")?;
        }
        for decision in &self.decisions {
            serde_json::to_writer(&mut to, decision)?;
            to.write_all(b"\n")?;
        }
        Ok(())
    }
}

/// The message of an error with its column, but without the line, which [`Error::Trace`] has.
fn no_decision(error: &serde_json::Error) -> String {
    let told = error.to_string();
    let what = told.split(" at line ").next().unwrap_or(&told);
    format!("it is no decision: {what} at column {}", error.column())
}

/// What a policy would have decided from the readings of a trace.
///
/// With the policy of the trace the decisions are the recorded ones. If the number of cores differs from the recorded
/// one, the busy cpus are estimated: those that were busy and the threads that waited, up to the number of cores.
///
/// # Errors
///
/// [`Error::Trace`] for a list of cpus that is not understood, and those of the governor.
pub fn replay(
    trace: &Trace,
    policy: Policy,
    machine: &Machine,
    net: &Net,
) -> Result<Vec<Decision>> {
    let mut governor = Governor::new(policy, machine, net)?;
    let mut decisions = Vec::new();
    for (at, recorded) in trace.decisions.iter().enumerate() {
        let wrong = |error: placement::Error| Error::Trace {
            line: at + 1 + usize::from(trace.head.is_some()),
            why: error.to_string(),
        };
        let available = match recorded.available.trim() {
            "" => CpuSet::default(),
            list => list.parse().map_err(wrong)?,
        };
        let mut readings = Readings::new(recorded.time, available);
        readings.values.clone_from(&recorded.readings);
        let cores = governor.cpus().len();
        if cores != recorded.cores_before && cores > 0 {
            estimate(&mut readings, cores);
        }
        decisions.push(governor.step(&readings)?);
    }
    Ok(decisions)
}

/// Estimates the busy cpus for another number of cores.
fn estimate(readings: &mut Readings, cores: usize) {
    let Some(busy) = readings.number(BUSY) else {
        return;
    };
    let waiting = readings.number(WAITING).unwrap_or(0.0);
    let demand = busy + waiting;
    let busy = demand.min(cores as f64);
    readings.set(BUSY, Measure::new(busy, "cpus", "replay, estimated"));
    if waiting > 0.0 || demand > busy {
        let left = Measure::new(demand - busy, "threads", "replay, estimated");
        readings.set(WAITING, left);
    }
}
