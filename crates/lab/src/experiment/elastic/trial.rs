//! One run as data: what it needs, and everything that is recorded of it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use governor::Energy;
use serde::{Deserialize, Serialize};
use topology::Machine;

use super::load::Done;
use super::moves::Move;
use super::plan::{Phase, Variant, Workload};

/// What a run needs.
pub struct Setting<'a> {
    /// The words that start this lab's commands.
    pub lab: &'a [OsString],
    /// What is started as guard where something else than our own program is governed.
    pub guard: &'a [OsString],
    /// This machine.
    pub machine: &'a Machine,
    /// The cpus there are to give.
    pub cpus: usize,
    /// What is governed, where it is not the clients.
    pub server: Option<u32>,
    /// A database's client, and what it is asked.
    pub command: &'a [String],
    /// See `command`.
    pub statements: &'a [String],
    /// Rows of our own columns, and the cpus on which they are made.
    pub rows: usize,
    /// See `rows`.
    pub made_on: Vec<String>,
    /// The cpus of the governor and of what records, which are not governed; none: wherever the system puts them.
    pub own: Option<placement::CpuSet>,
    /// Time between two decisions.
    pub period: Duration,
    /// Whether the machine is an emulated one: there a decision takes many times as long, and yet the period is not
    /// longer for it; and what cores do there says nothing of energy, so that none is estimated.
    pub emulated: bool,
    /// Time between two looks at threads.
    pub look: Duration,
    /// The phase that is a region of interest to the access counter.
    pub counted: Option<usize>,
    /// Regions are so long, from beginning to end, and the kernel tells moves between cpus.
    pub window: Option<Duration>,
    /// What a query takes alone; found out where it is not known yet.
    pub query_seconds: Option<f64>,
    /// Becomes true when the user wants to end.
    pub stop: &'a AtomicBool,
}

/// What became of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The phase.
    pub phase: Phase,
    /// When it began, in seconds.
    pub from: f64,
    /// When it had ended.
    pub to: f64,
    /// What was answered in it.
    pub done: Done,
}

/// What was decided at a moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// In seconds.
    pub time: f64,
    /// Cores from then on; of an ungoverned run all.
    pub cores: usize,
    /// Cpus kept busy since the moment before.
    pub busy: Option<f64>,
    /// Threads that waited for one.
    pub waiting: Option<f64>,
    /// Stable, Idle, Overload, or Checks where the net did not run.
    pub place: String,
    /// Bytes of memory by node, where that was looked at.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<u32, f64>,
    /// Where cores came or went: the transitions and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// A stretch of a thread's life.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// The thread's number.
    pub thread: u32,
    /// In seconds.
    pub from: f64,
    /// In seconds.
    pub to: f64,
    /// Where it ran.
    pub cpu: u32,
    /// Of that cpu.
    pub node: u32,
}

/// All of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// What was run.
    pub workload: Workload,
    /// Under whom.
    pub variant: Variant,
    /// What a query takes alone.
    pub query_seconds: f64,
    /// How long it took.
    pub seconds: f64,
    /// Queries answered per second.
    pub throughput: f64,
    /// Phase by phase.
    pub phases: Vec<Told>,
    /// Cores that it had, times seconds.
    pub allocated: f64,
    /// Cores that it kept busy, times seconds, from the first decision to the last; `None` where that was not read at
    /// each of them.
    pub used: Option<f64>,
    /// Decisions that were made; none where nobody decided.
    pub decisions: usize,
    /// How many of them changed something.
    pub changes: usize,
    /// Seconds from reading to the cpus' being set, of those.
    pub change_seconds: Vec<f64>,
    /// Threads that were moved to another cpu; `None` where the kernel does not say.
    pub migrations: Option<u64>,
    /// Threads that were seen on another node than the time before; `None` where none was ever seen.
    pub node_moves: Option<u64>,
    /// All moves to another cpu, where the kernel told each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<Vec<Move>>,
    /// When each region of counted accesses began, and when the last one ended, in seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<f64>,
    /// How often threads were given a cpu.
    pub switches: Option<u64>,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// By the text's method, never measured; `None` where the machine is an emulated one, or what was used is not known.
    pub energy: Option<Energy>,
    /// Joules of the whole machine meanwhile, measured, where that is counted.
    #[serde(default)]
    pub machine_joules: Option<f64>,
    /// Of the decisions that were made again from the recorded readings, those that were the same.
    pub replayed: Option<usize>,
    /// What happened when.
    pub moments: Vec<Moment>,
    /// Where threads were when.
    pub lives: Vec<Life>,
}

impl Trial {
    /// Core-seconds that were used; NaN where that was not measured.
    pub(super) fn used_seconds(&self) -> f64 {
        self.used.unwrap_or(f64::NAN)
    }
}
