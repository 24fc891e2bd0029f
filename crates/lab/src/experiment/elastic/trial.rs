//! One run as data: its parameters, and everything that is recorded of it.

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

/// The parameters of a run.
pub struct Setting<'a> {
    /// The words that start this lab's commands.
    pub lab: &'a [OsString],
    /// The command of the guard, if something other than our own program is governed.
    pub guard: &'a [OsString],
    /// The machine at hand.
    pub machine: &'a Machine,
    /// The cpus to hand out.
    pub cpus: usize,
    /// The target of the governor, if it is not the clients.
    pub server: Option<u32>,
    /// A database's client, and the statements for it.
    pub command: &'a [String],
    /// See `command`.
    pub statements: &'a [String],
    /// Rows of our own columns, and the cpus on which they are made.
    pub rows: usize,
    /// See `rows`.
    pub made_on: Vec<String>,
    /// The cpus of the governor and the recorder, which are not governed; none: any.
    pub own: Option<placement::CpuSet>,
    /// Time between two decisions.
    pub period: Duration,
    /// Whether the machine is emulated. There a decision takes many times as long, and the period is kept
    /// nevertheless; and energy is not estimated.
    pub emulated: bool,
    /// Time between two looks at threads.
    pub look: Duration,
    /// The phase that is a region of interest to the access counter.
    pub counted: Option<usize>,
    /// The length of regions, into which the whole run is divided; the kernel's reports of thread migrations are
    /// recorded as well.
    pub window: Option<Duration>,
    /// Seconds that a query takes alone; measured if not known yet.
    pub query_seconds: Option<f64>,
    /// Becomes true when the user wants to end.
    pub stop: &'a AtomicBool,
}

/// The results of a phase.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Told {
    /// The phase.
    pub phase: Phase,
    /// When it began, in seconds.
    pub from: f64,
    /// When it had ended.
    pub to: f64,
    /// The queries answered in it.
    pub done: Done,
}

/// A decision and the readings at its time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// In seconds.
    pub time: f64,
    /// Cores from then on; without a governor, all.
    pub cores: usize,
    /// Cpus kept busy since the moment before.
    pub busy: Option<f64>,
    /// Threads that waited for a cpu.
    pub waiting: Option<f64>,
    /// The state of the net: Stable, Idle, Overload; or Checks if the net did not run.
    pub place: String,
    /// Bytes of memory by node, if that was read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub memory: BTreeMap<u32, f64>,
    /// If the cores changed: the transitions and the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
}

/// A stretch of time that a thread spent on a cpu.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Life {
    /// The thread's number.
    pub thread: u32,
    /// In seconds.
    pub from: f64,
    /// In seconds.
    pub to: f64,
    /// The cpu.
    pub cpu: u32,
    /// The node of that cpu.
    pub node: u32,
}

/// Everything recorded of one run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// The workload.
    pub workload: Workload,
    /// The variant.
    pub variant: Variant,
    /// Seconds that a query takes alone.
    pub query_seconds: f64,
    /// Its length in seconds.
    pub seconds: f64,
    /// Queries answered per second.
    pub throughput: f64,
    /// The results by phase.
    pub phases: Vec<Told>,
    /// Cores that it had, in core-seconds.
    pub allocated: f64,
    /// Cores that it kept busy, in core-seconds, from the first decision to the last; `None` if a reading is missing.
    pub used: Option<f64>,
    /// The number of decisions; 0 without a governor.
    pub decisions: usize,
    /// How many of them changed something.
    pub changes: usize,
    /// For each of those, seconds from reading the sensors until the cpus were set.
    pub change_seconds: Vec<f64>,
    /// Thread migrations to another cpu; `None` if the kernel does not say.
    pub migrations: Option<u64>,
    /// Threads that were sampled on another node than the time before; `None` if none was ever seen.
    pub node_moves: Option<u64>,
    /// All thread migrations, if the kernel reported each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moves: Option<Vec<Move>>,
    /// When each region of counted accesses began, and when the last one ended, in seconds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub windows: Vec<f64>,
    /// Context switches.
    pub switches: Option<u64>,
    /// Minor page faults.
    pub minor_faults: u64,
    /// Energy estimated by the text's method, never measured; `None` on an emulated machine, or if the use of cores
    /// is unknown.
    pub energy: Option<Energy>,
    /// Measured joules of the whole machine over the same time, if counted.
    #[serde(default)]
    pub machine_joules: Option<f64>,
    /// How many decisions a replay of the recorded readings repeated.
    pub replayed: Option<usize>,
    /// The decisions over time.
    pub moments: Vec<Moment>,
    /// The cpus of threads over time.
    pub lives: Vec<Life>,
}

impl Trial {
    /// Queries answered in the last phase, which is the counted one; NaN if there is none.
    pub(super) fn last_queries(&self) -> f64 {
        self.phases
            .last()
            .map_or(f64::NAN, |told| told.done.queries as f64)
    }

    /// Cores at the end; NaN if nothing was decided.
    pub(super) fn last_cores(&self) -> f64 {
        self.moments
            .last()
            .map_or(f64::NAN, |moment| moment.cores as f64)
    }

    /// Core-seconds used; NaN if not measured.
    pub(super) fn used_seconds(&self) -> f64 {
        self.used.unwrap_or(f64::NAN)
    }
}
