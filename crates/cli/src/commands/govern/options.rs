//! The arguments of `atoll govern`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Subcommand};
use governor::{Mode, Policy, Power, Sensor, Siblings, Stride};
use governor_live::{Counter, Means, Target};

use crate::failure::Failure;
use crate::units::parse_seconds;

/// `atoll govern`
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Govern {
    /// Instead of governing
    #[command(subcommand)]
    pub what: Option<What>,
    /// A process, and all that descend from it
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub pid: Vec<u32>,
    /// All processes whose command has this name, such as postgres; root, who reaches those of all users, is shown them and asked
    #[arg(long, value_name = "NAME")]
    pub name: Vec<String>,
    /// Do not ask, whoever the processes of a name belong to
    #[arg(long)]
    pub yes: bool,
    /// A control group: its folder, or its path in the hierarchy
    #[arg(long, value_name = "PATH")]
    pub cgroup: Vec<PathBuf>,
    /// A unit of systemd, such as postgresql.service
    #[arg(long, value_name = "UNIT")]
    pub unit: Vec<String>,
    /// Shares of what is scarce, one for each target in the order pid, name, cgroup, unit [default: 1 each]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub weight: Vec<f64>,
    #[command(flatten)]
    pub policy: PolicyOptions,
    /// Where throughput is read: postgres:CONNECTION, mariadb:ARGUMENTS (each also with -rows), atoll or
    /// atoll-statements (what Atoll itself counts), instructions (where the processor counts them), file:PATH or command:SHELL with a number that grows; implies --sensor throughput
    #[arg(long, value_name = "COUNTER")]
    pub throughput: Option<Counter>,
    /// Time between two decisions [default: 100ms; with --throughput what the counter is good for]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub period: Option<Duration>,
    /// How cpus are given: auto, cgroup, systemd, affinity
    #[arg(long, value_name = "HOW", default_value = "auto")]
    pub actuator: Means,
    /// Let nobody else use the cpus that a control group of generation two has (a partition), one given with --cgroup
    /// or made by --actuator cgroup; where that is refused, they are shared as always
    #[arg(long)]
    pub exclusive: bool,
    /// Move pages too: from nodes where it has no core any more to those where it has, some megabytes at a time
    #[arg(long)]
    pub migrate: bool,
    /// Average power of a core in use, for the estimate of energy [default: 18.75, of the text's processor]
    #[arg(long, value_name = "W", value_parser = positive)]
    pub core_watts: Option<f64>,
    /// Energy of a bit that crosses between nodes, in picojoules, for the estimate [default: 10, an assumption]
    #[arg(long, value_name = "PJ", value_parser = positive)]
    pub link_pj: Option<f64>,
    /// Decide and explain, change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// End after so long, and put everything back
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub time: Option<Duration>,
    /// Wait for the target where there is none yet, or no more
    #[arg(long, conflicts_with_all = ["pid", "command"])]
    pub wait: bool,
    /// With a command: so long after its start it is left alone, as programs ask how many cpus
    /// there are before they start their threads
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "500ms")]
    pub settle: Duration,
    /// Write all decisions to a file, for `atoll govern replay`
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,
    /// Serve the state to Prometheus, on an address of this machine such as 127.0.0.1:9187
    #[arg(long, value_name = "ADDRESS")]
    pub metrics: Option<SocketAddr>,
    /// Where running governors are recorded [default: /run/atoll-govern, or the user's own]
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// Show all decisions, not only those that change something
    #[arg(long, short)]
    pub all: bool,
    /// One JSON object for each decision
    #[arg(long)]
    pub json: bool,
    /// Run this, and govern it
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// What else there is.
#[derive(Debug, Subcommand)]
pub enum What {
    /// What a policy would have decided from the readings of a trace
    Replay(Replay),
    /// Put back what governors have changed; those that run are ended
    Undo(Undo),
    /// Print the net that decides how many cores there are
    Net(Net),
    /// Put back what a governor leaves when it ends; started by it
    #[command(hide = true)]
    Guard {
        /// The governor's record
        record: PathBuf,
    },
}

/// `atoll govern replay`
#[derive(Args, Debug)]
pub struct Replay {
    /// What --trace or --json wrote
    pub trace: PathBuf,
    /// The machine, where the trace does not say: a shipped name, FILE.xml, 4x4, or an hwloc description
    #[arg(long, value_name = "SPEC")]
    pub machine: Option<String>,
    #[command(flatten)]
    pub policy: PolicyOptions,
    /// Show all decisions, not only those that change something
    #[arg(long, short)]
    pub all: bool,
    /// One JSON object for each decision
    #[arg(long)]
    pub json: bool,
}

/// `atoll govern undo`
#[derive(Args, Debug)]
pub struct Undo {
    /// Where running governors are recorded [default: /run/atoll-govern, or the user's own]
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// Only what governors have left that were ended before they could put it back; those that run go on
    #[arg(long)]
    pub ended: bool,
    /// One JSON object
    #[arg(long)]
    pub json: bool,
}

/// `atoll govern net`
#[derive(Args, Debug)]
pub struct Net {
    /// In which form
    #[arg(long, value_enum, default_value_t = NetFormat::Toml)]
    pub format: NetFormat,
}

/// Forms of a net.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum NetFormat {
    /// What --net reads
    Toml,
    /// For Graphviz
    Dot,
    /// For other programs on Petri nets
    Pnml,
    /// What each transition takes of each place, what it puts there, and the difference
    Matrix,
}

/// How it is decided.
#[derive(Args, Debug, Clone)]
#[command(next_help_heading = "Policy")]
pub struct PolicyOptions {
    /// Which core is next: sparse (on the next node), dense (a node first), adaptive (where the
    /// pages are) [default: adaptive]
    #[arg(long)]
    pub mode: Option<Mode>,
    /// What decides: load, traffic, throughput [default: load]
    #[arg(long)]
    pub sensor: Option<Sensor>,
    /// The fewest cores [default: 1]
    #[arg(long, value_name = "N")]
    pub min_cores: Option<usize>,
    /// The most cores [default: all]
    #[arg(long, value_name = "N")]
    pub max_cores: Option<usize>,
    /// Leave so many cpus to others [default: 0]
    #[arg(long, value_name = "N")]
    pub reserve: Option<usize>,
    /// Second hardware threads of a core are handed out: last, node (when the node's cores are), never
    #[arg(long)]
    pub siblings: Option<Siblings>,
    /// Release a core at or below this load in per cent, or traffic ratio
    #[arg(long, value_name = "U")]
    pub th_min: Option<f64>,
    /// Allocate a core from this load in per cent on, or traffic ratio
    #[arg(long, value_name = "U")]
    pub th_max: Option<f64>,
    /// The plain net: a core per decision, thresholds 10 and 70, and nothing else
    #[arg(long)]
    pub plain: bool,
    /// A policy as JSON, the fields that differ from the default; options given here win
    #[arg(long, value_name = "FILE")]
    pub policy: Option<PathBuf>,
    /// The net that decides, as TOML; see `atoll govern net`
    #[arg(long, value_name = "FILE")]
    pub net: Option<PathBuf>,
}

impl PolicyOptions {
    /// The policy of the options. What they do not set is as in the file of `--policy`, else as in `before`, else the
    /// default.
    pub fn policy(&self, before: Option<Policy>) -> Result<Policy, Failure> {
        let mut policy = match &self.policy {
            Some(path) => {
                let text = std::fs::read_to_string(path);
                let text = text.with_context(|| format!("cannot read {}", path.display()))?;
                let read = serde_json::from_str(&text);
                read.with_context(|| format!("{} is not a policy", path.display()))?
            }
            None if self.plain => Policy::plain(),
            None => before.unwrap_or_default(),
        };
        if self.plain && self.policy.is_some() {
            policy.stride = Stride::One;
        }
        if let Some(sensor) = self.sensor
            && sensor != policy.sensor
        {
            policy = policy.thresholds_of(sensor);
        }
        policy.mode = self.mode.unwrap_or(policy.mode);
        policy.min_cores = self.min_cores.unwrap_or(policy.min_cores);
        policy.max_cores = self.max_cores.or(policy.max_cores);
        policy.reserve = self.reserve.unwrap_or(policy.reserve);
        policy.siblings = self.siblings.unwrap_or(policy.siblings);
        policy.th_min = self.th_min.unwrap_or(policy.th_min);
        policy.th_max = self.th_max.unwrap_or(policy.th_max);
        policy.slack = policy.slack.min(policy.th_max * 0.99);
        match policy.check() {
            Err(error) if self.policy.is_none() => Err(usage(&error.to_string())),
            checked => Ok(checked.map(|()| policy)?),
        }
    }

    /// The net.
    pub fn net(&self) -> Result<petri::Net, Failure> {
        let Some(path) = &self.net else {
            return Ok(governor::elastic_net()?);
        };
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        let net = petri::Net::parse(&text);
        Ok(net.with_context(|| path.display().to_string())?)
    }
}

impl Govern {
    /// The figures from which energy is estimated.
    pub fn power(&self) -> Power {
        let usual = Power::default();
        Power {
            core_watts: self.core_watts.unwrap_or(usual.core_watts),
            joules_per_bit: self.link_pj.map(|pj| pj * 1e-12).or(usual.joules_per_bit),
        }
    }

    /// All targets that were named, without the command.
    pub fn targets(&self) -> Vec<Target> {
        let pids = self.pid.iter().map(|pid| Target::Pid(*pid));
        let names = self.name.iter().cloned().map(Target::Name);
        let groups = self.cgroup.iter().cloned().map(Target::Cgroup);
        let units = self.unit.iter().cloned().map(Target::Unit);
        pids.chain(names).chain(groups).chain(units).collect()
    }
}

/// An error of usage, in the form of clap's own.
pub fn usage(why: &str) -> Failure {
    eprintln!("atoll: {why}; atoll govern --help tells more");
    Failure::Status(2)
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number.is_finite() => Ok(number),
        _ => Err("take a number above 0".to_owned()),
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_seconds(text).map(Duration::from_secs_f64)
}
