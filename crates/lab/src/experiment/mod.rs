//! The experiments: each prints a table, writes a [report](crate::report) and the raw numbers.
//!
//! All of them but `laq` and `elastic` run on an emulated [machine](crate::machine) and count; none of
//! those tells a time. The database under test is another program, unchanged, that reads statements
//! from its standard input: [`drive`]. `laq` (feature `laq`) measures Atoll's engine on the machine at
//! hand, in its own process, so that runs of milliseconds take turns, and so does `plans` (feature `laq`) inside its emulated machine; `elastic` governs a program there.
//!
//! | experiment | rows | question |
//! |---|---|---|
//! | `placement` | T5, T8 | where do the same work's accesses go under each static strategy? |
//! | `exhaustive` | T6, T10, T11 | how good is every placement that differs, and how soon is a good one found? |
//! | `q1-nodes` | M5 | TPC-H Q1 with all of its memory on each node in turn |
//! | `affinity` | M3, M6 | where do Q1's and Q6's accesses go with affinity on and off, and does the engine count the same? |
//! | `plans` | M2, M5, M6 | where do Q6's, Q1's and Q3's accesses go under each plan, affinity on and off, and does the engine count the same? |
//! | `elastic` | E10, E11 | what do workloads do, and what do they cost, with cores that follow the load? |
//! | `elastic-nodes` | E6, E12 | which nodes' memory is read, and where do threads go, with cores that follow the load? |
//! | `pages` | M4 | over which nodes do pages spread, and which threads move, with affinity on and off? |
//! | `laq` | L9, L10 | how do block size, threads, executor and reuse of blocks change what a query takes, and what bounds its operators? |

mod affinity;
mod compared;
mod counted;
mod database;
pub mod drive;
mod elastic;
mod exhaustive;
mod found;
mod guest;
#[cfg(feature = "laq")]
mod laq;
mod options;
mod pages;
mod placement;
#[cfg(feature = "laq")]
mod plans;
mod q1_nodes;
mod table;

use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use clap::{Args, Subcommand};

use crate::kernel::{self, Job};
use crate::report::{Report, Table};
use crate::{Error, Result};

#[cfg(feature = "laq")]
pub use self::laq::Laq;
pub use affinity::Affinity;
pub use database::{Databases, Engine};
pub use elastic::{Elastic, ElasticNodes, Inside, Load};
pub use exhaustive::Exhaustive;
pub use options::Options;
pub use pages::Pages;
pub use placement::{Placements, Workload};
#[cfg(feature = "laq")]
pub use plans::{Plans, PlansInside};
pub use q1_nodes::Q1Nodes;
pub use table::{Costs, Measured, Named};

/// An experiment, as typed.
#[derive(Subcommand, Clone, Debug)]
pub enum Experiment {
    /// The same work under each placement strategy: where its memory accesses go
    Placement(Placements),
    /// TPC-H Q1 with all of its memory on each node in turn
    Q1Nodes(Q1Nodes),
    /// Over which nodes pages spread and which threads move, with affinity on and off
    Pages(Pages),
    /// Where the accesses of TPC-H Q1 and Q6 go with affinity on and off, and what the engine counts
    Affinity(Affinity),
    /// Every placement of threads that differs, and how soon a search finds a good one
    Exhaustive(Exhaustive),
    /// Queries in LAQ by block size, threads and executor, each operator under the machine's roofs
    #[cfg(feature = "laq")]
    Laq(Laq),
    /// Where the accesses of TPC-H Q6, Q1 and Q3 go under each plan, with affinity on and off
    #[cfg(feature = "laq")]
    Plans(Plans),
    /// Cores that follow the load: workloads with a governor and without, in turn, on this machine
    Elastic(Elastic),
    /// Where the accesses of few clients go with cores that follow the load, and how often threads change nodes
    ElasticNodes(ElasticNodes),
    /// Run elastic's trials (used inside emulated machines)
    #[command(hide = true)]
    ElasticInside(Inside),
    /// Run a query under plans, and mark the runs (used inside emulated machines)
    #[cfg(feature = "laq")]
    #[command(hide = true)]
    PlansInside(PlansInside),
    /// Ask queries as told on the standard input (started by elastic)
    #[command(hide = true)]
    Load(Load),
    /// Carry out a plan under placements (used inside emulated machines)
    #[command(hide = true)]
    Kernel(Kernel),
    /// Have a program answer statements, and mark them (used inside emulated machines)
    #[command(hide = true)]
    Drive(Drive),
}

/// `kernel`
#[derive(Args, Clone, Debug)]
pub struct Kernel {
    /// The job, as JSON
    pub job: String,
}

/// `drive`
#[derive(Args, Clone, Debug)]
pub struct Drive {
    /// The task, as JSON
    pub task: String,
}

/// What an experiment needs from whoever calls it.
pub struct Desk<'a> {
    /// The words that start this lab's commands: `["/usr/bin/atoll", "lab"]`. They are run inside
    /// emulated machines, which see the files of this system.
    pub lab: Vec<OsString>,
    /// Atoll's program, where this is it.
    pub database: Option<PathBuf>,
    /// The command that repeats this experiment.
    pub command: String,
    /// The commit that this program is of; `None` where nobody knows.
    pub commit: Option<String>,
    /// Where results go.
    pub out: &'a mut dyn Write,
    /// Where progress goes.
    pub err: &'a mut dyn Write,
    /// The experiment ends soon after this becomes true.
    pub stop: &'a AtomicBool,
}

impl Experiment {
    /// Runs it.
    ///
    /// # Errors
    ///
    /// What the emulated machine, the program under test or the files may give; each names what
    /// failed and what to do.
    pub fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        match self {
            Experiment::Placement(arguments) => arguments.run(desk),
            Experiment::Q1Nodes(arguments) => arguments.run(desk),
            Experiment::Pages(arguments) => arguments.run(desk),
            Experiment::Affinity(arguments) => arguments.run(desk),
            Experiment::Exhaustive(arguments) => arguments.run(desk),
            #[cfg(feature = "laq")]
            Experiment::Laq(arguments) => arguments.run(desk),
            #[cfg(feature = "laq")]
            Experiment::Plans(arguments) => arguments.run(desk),
            #[cfg(feature = "laq")]
            Experiment::PlansInside(arguments) => arguments.run(desk),
            Experiment::Kernel(arguments) => arguments.run(desk),
            Experiment::Drive(arguments) => arguments.run(desk),
            Experiment::Elastic(arguments) => arguments.run(desk),
            Experiment::ElasticNodes(arguments) => arguments.run(desk),
            Experiment::ElasticInside(arguments) => arguments.run(desk),
            Experiment::Load(arguments) => arguments.run(desk),
        }
    }
}

impl Kernel {
    fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let job: Job = parse(&self.job, "the job")?;
        kernel::perform(&job, |ran| desk.line(&ran))
    }
}

impl Drive {
    fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let task: drive::Task = parse(&self.task, "the task")?;
        let told = drive::drive(&task)?;
        desk.line(&told)
    }
}

fn parse<T: serde::de::DeserializeOwned>(text: &str, what: &str) -> Result<T> {
    serde_json::from_str(text).map_err(|error| Error::Job {
        why: format!("{what} is not understood: {error}"),
    })
}

impl Desk<'_> {
    /// One JSON object on a line of its own.
    fn line(&mut self, value: &impl serde::Serialize) -> Result<()> {
        let text = serde_json::to_string(value).map_err(|error| Error::Output {
            source: error.into(),
        })?;
        self.say(&format!("{text}\n"))
    }

    fn say(&mut self, text: &str) -> Result<()> {
        let written = self
            .out
            .write_all(text.as_bytes())
            .and_then(|()| self.out.flush());
        written.map_err(|source| Error::Output { source })
    }

    /// A line about how far it is; that nobody reads it is no error.
    fn progress(&mut self, text: &str) {
        let _ = writeln!(self.err, "atoll lab: {text}");
    }

    /// Ends an experiment: the tables or the JSON object, and the files.
    fn finish(&mut self, path: &Path, json: bool, report: Report, tables: &[&Table]) -> Result<()> {
        let report = report.commit(self.commit.as_deref());
        let written = report.write(path)?;
        if json {
            self.line(&report.json())?;
        } else {
            for table in tables {
                self.say(&format!("{}\n", table.text()))?;
            }
        }
        self.progress(&format!(
            "{} and {}",
            written.html.display(),
            written.json.display()
        ));
        Ok(())
    }
}
