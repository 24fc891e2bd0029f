//! The experiments: each prints a table, writes a [`report`] and the raw numbers.
//!
//! All of them but `arrays`, `laq`, `elastic` and `pool` run on an [emulated machine](emulator), where they count accesses and measure
//! no times. The database under test is another program, unchanged, that reads statements from its standard input:
//! [`drive`](crate::workload::drive). `laq` (feature `laq`) measures Atoll's engine on the machine at hand, in its
//! own process, so that runs of milliseconds take turns. `plans` (feature `laq`) does the same inside its emulated
//! machine. `elastic` governs a program on the machine at hand. `arrays` counts by a model, on any
//! machine. `model` times bare loops on it. `pool` measures the buffer pool on it, in its own process.
//!
//! | experiment | rows | question |
//! |---|---|---|
//! | `figures` | all | what did each figure of the texts show, what repeats it here, and how did that go last? |
//! | `placement` | T5, T8 | where do the same work's accesses go under each static strategy? |
//! | `arrays` | T4, T5, T8 to T11 | where do the bytes of queries over arrays come from by chunks, selectivity and mapping, and what does a scheduler made for them do? |
//! | `model` | T8 to T11, E12 | how near does the model that makes time and energy of counts come to bare loops, and what does it know of the texts' machines? |
//! | `exhaustive` | T6, T10, T11 | how good is every placement that differs, and how soon is a good one found? |
//! | `q1-nodes` | M5 | TPC-H Q1 with all of its memory on each node in turn |
//! | `affinity` | M3, M6 | where do Q1's and Q6's accesses go with affinity on and off, and does the engine count the same? |
//! | `plans` | M2, M5, M6 | where do Q6's, Q1's and Q3's accesses go under each plan, affinity on and off, and does the engine count the same? |
//! | `elastic` | E10, E11 | what do workloads do, and what do they cost, with cores that follow the load? |
//! | `elastic-nodes` | E6, E12 | which nodes' memory is read, and where do threads go, with cores that follow the load? |
//! | `pages` | M4 | over which nodes do pages spread, and which threads move, with affinity on and off? |
//! | `pool` | B10, B11, B12 | what do passes, page size, threads, partitions, NUMA mode and prefetching do to a scan of raw pages? |
//! | `laq` | L9, L10 | how do block size, threads, executor and reuse of blocks change what a query takes, and what bounds its operators? |

mod affinity;
mod arrays;
mod elastic;
mod exhaustive;
mod figures;
#[cfg(feature = "laq")]
mod laq;
mod model;
mod pages;
mod placement;
#[cfg(feature = "laq")]
mod plans;
mod pool;
mod q1_nodes;

use clap::{Args, Subcommand};

#[cfg(feature = "laq")]
pub use self::laq::{Laq, time_line};
pub use self::model::Model;
pub use self::pages::Pages;
pub use affinity::Affinity;
pub use arrays::Arrays;
pub use elastic::{Elastic, ElasticNodes, Inside, Load};
pub use exhaustive::{Costs, Exhaustive, Measured, Named};
pub use figures::Figures;
pub use placement::{Placements, Workload};
#[cfg(feature = "laq")]
pub use plans::{Plans, PlansInside};
pub use pool::Pool;
pub use q1_nodes::Q1Nodes;

use crate::desk::Desk;
use crate::error::Result;
use crate::json;
use crate::workload::drive;
use crate::workload::kernel::{self, Job};

/// An experiment, as typed.
#[derive(Subcommand, Clone, Debug)]
pub enum Experiment {
    /// All figures and tables of the texts: what they showed, what repeats them here, and the last results
    Figures(Figures),
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
    /// Queries over arrays by chunks, selectivity and mapping of threads, and the scheduler for them: the figures of the
    /// text on array databases
    Arrays(Arrays),
    /// The model of time and energy: what it says of bare loops, beside what they take here, and its facts of the texts'
    /// machines
    Model(Model),
    /// A scan of raw pages by passes, page size, threads, partitions, NUMA mode and prefetching: the figures of SMILE
    Pool(Pool),
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

impl Experiment {
    /// Runs the experiment.
    ///
    /// # Errors
    ///
    /// Those of the emulated machine, the program under test and the files; each names what failed and what to do.
    pub fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        match self {
            Experiment::Figures(arguments) => arguments.run(desk),
            Experiment::Placement(arguments) => arguments.run(desk),
            Experiment::Q1Nodes(arguments) => arguments.run(desk),
            Experiment::Pages(arguments) => arguments.run(desk),
            Experiment::Arrays(arguments) => arguments.run(desk),
            Experiment::Model(arguments) => arguments.run(desk),
            Experiment::Pool(arguments) => arguments.run(desk),
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
        let job: Job = json::read(&self.job, "the job")?;
        kernel::perform(&job, |ran| desk.line(&ran))
    }
}

impl Drive {
    fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let task: drive::Task = json::read(&self.task, "the task")?;
        let told = drive::drive(&task)?;
        desk.line(&told)
    }
}
