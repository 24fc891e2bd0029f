//! Options of a governor.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use governor::{Policy, Power};
use petri::Net;

use crate::actuators::Means;
use crate::error::Result;
use crate::group::target::Target;
use crate::journal::status::Status;
use crate::sensors::throughput::Counter;

/// How often the cpus of the machine and the affinities of threads are checked.
pub(super) const UPKEEP: Duration = Duration::from_secs(1);

/// A target and its weight.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The target.
    pub target: Target,
    /// Its weight when cores are scarce, relative to the others' weights.
    pub weight: f64,
    /// The counter of its work, for the throughput sensor.
    pub counter: Option<Counter>,
}

/// How a governor decides and acts.
#[derive(Debug, Clone)]
pub struct Options {
    /// The policy.
    pub policy: Policy,
    /// The net that decides.
    pub net: Net,
    /// Time between two decisions.
    pub period: Duration,
    /// A dry run: decide and report, change nothing.
    pub dry_run: bool,
    /// The way in which targets are given their cpus.
    pub means: Means,
    /// Cpus are exclusive: nobody else may use those of a target that is a control group of version 2, or for which
    /// one is made ([`Means::Cgroup`]), if the kernel makes it a partition.
    pub exclusive: bool,
    /// Pages on nodes where a target has no core are migrated to nodes where it has.
    pub migrate: bool,
    /// The parameters of the estimate of energy.
    pub power: Power,
    /// The folder in which running governors are recorded.
    pub state: PathBuf,
    /// The file of the latest state, for programs that display it. Governors that follow one another may use the same
    /// file, which is missing in between.
    pub status: Arc<Mutex<Status>>,
    /// The folder in which the kernel lists the online cpus: `/sys`, or a copy for tests.
    pub sys: PathBuf,
    /// The command that is started as guard. It calls [`guard`](crate::guard) with the record's path, which is
    /// appended to the command, and with its standard input. Empty: no guard.
    pub guard: Vec<OsString>,
}

impl Options {
    /// Options for this machine: the net of crate `petri`, ten decisions per second, the way that suits the target,
    /// no exclusive cpus, no page migration, no guard.
    ///
    /// # Errors
    ///
    /// None, as the net is tested.
    pub fn new(policy: Policy, state: PathBuf) -> Result<Options> {
        Ok(Options {
            policy,
            net: governor::elastic_net()?,
            period: Duration::from_millis(100),
            dry_run: false,
            means: Means::default(),
            exclusive: false,
            migrate: false,
            power: Power::default(),
            state,
            status: Arc::default(),
            sys: "/sys".into(),
            guard: Vec::new(),
        })
    }
}
