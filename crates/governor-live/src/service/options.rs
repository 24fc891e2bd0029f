//! What a governor is told.

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

/// How often it is looked up which cpus there are, and whether threads are where they should be.
pub(super) const UPKEEP: Duration = Duration::from_secs(1);

/// A target and its share.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// What is governed.
    pub target: Target,
    /// Its share of scarce cores, beside those of others.
    pub weight: f64,
    /// What counts its work, for the throughput sensor.
    pub counter: Option<Counter>,
}

/// How to govern.
#[derive(Debug, Clone)]
pub struct Options {
    /// How it is decided.
    pub policy: Policy,
    /// The net that decides.
    pub net: Net,
    /// Time between two decisions.
    pub period: Duration,
    /// Decide and tell, change nothing.
    pub dry_run: bool,
    /// How cpus are given.
    pub means: Means,
    /// Nobody else may use the cpus of a target that is a control group of generation two, or for which one is
    /// made ([`Means::Cgroup`]), where the kernel makes a partition of it.
    pub exclusive: bool,
    /// Pages on nodes where a target has no core are moved to where it has.
    pub migrate: bool,
    /// From what energy is estimated.
    pub power: Power,
    /// Where running governors are recorded.
    pub state: PathBuf,
    /// Where the latest state is kept for those who look on: of whichever governor has it, none
    /// between two.
    pub status: Arc<Mutex<Status>>,
    /// Where the kernel tells which cpus are online: `/sys`, or a folder that looks like it.
    pub sys: PathBuf,
    /// What to start as guard: a command that calls [`guard`](crate::guard) with the record's path,
    /// which is added, and its standard input. Empty: no guard.
    pub guard: Vec<OsString>,
}

impl Options {
    /// Governs this machine by the net of crate `petri`, ten times in a second, by whichever way suits the target:
    /// nothing exclusive, no page moved, no guard.
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
