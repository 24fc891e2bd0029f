//! `--executor` and what belongs to each executor.

use atoll::{Allocation, Options};
use clap::{Args, ValueEnum};

use crate::failure::Failure;
use crate::options::resources::{self, Resources};
use crate::units::{parse_allocation, parse_rows};

/// How queries run; see docs/reference/executors.md. All ways give the same answers.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Execution of queries")]
pub struct Execution {
    /// What runs queries
    #[arg(long, value_enum, default_value_t = Executor::Fused)]
    pub executor: Executor,
    /// How often a query is planned that runs again word for word while nothing has changed
    #[arg(long, value_enum, default_value_t = Planning::Once)]
    pub planning: Planning,
    /// Which pieces of a table a thread of Atoll's executors takes [default: what `atoll set` made the store keep, or
    /// shard]
    #[arg(long, value_enum)]
    pub plan: Option<Plan>,
    /// With --executor fused, stream or staged: rows handed on at once, 1Ki to 2Mi [default: 64Ki]
    #[arg(long, value_name = "ROWS", value_parser = parse_rows)]
    pub block: Option<usize>,
    /// With --executor staged: blocks in the ring [default: two for each thread and one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub ring: Option<u16>,
    /// With --executor staged: threads that process one block at the same time [default: 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub per_block: Option<u16>,
    /// With --executor stream: tasks of each operator, from the source on, the last number for all that follow, such
    /// as 1,2,1; with staged: setup and processing [default: one for each thread, which balances them]
    #[arg(long, value_name = "N,...", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub tasks: Vec<u16>,
    /// With --executor stream: blocks that a channel holds [default: 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub queue: Option<u16>,
    /// With --executor stream: what channels are [default: ring]
    #[arg(long, value_enum)]
    pub channel: Option<Channel>,
    /// With --executor stream or staged: whether blocks are used again [default: on]
    #[arg(long, value_enum)]
    pub reuse: Option<Reuse>,
    /// With --executor stream or staged: how many blocks are allocated when none is free: `each` (one, which grows), `set:8` (eight),
    /// `fraction:4` (a fourth of those that can be in flight), `whole` (all of them, before the first row) [default: each]
    #[arg(long, value_name = "HOW", value_parser = parse_allocation)]
    pub allocate: Option<Allocation>,
    /// Join relations in any order, drawn from this seed, instead of a good one: for experiments about how much it matters
    #[arg(long, value_name = "SEED")]
    pub any_join_order: Option<u64>,
}

impl Execution {
    /// An option that was given but has no effect with the chosen executor, and the executors that it is for.
    pub fn idle(&self) -> Option<(&'static str, &'static str)> {
        use Executor::{Staged, Stream};
        let (stream, staged) = (self.executor == Stream, self.executor == Staged);
        let options = [
            (self.ring.is_some(), staged, "--ring", "staged"),
            (
                !self.tasks.is_empty(),
                stream || staged,
                "--tasks",
                "stream or staged",
            ),
            (self.queue.is_some(), stream, "--queue", "stream"),
            (self.channel.is_some(), stream, "--channel", "stream"),
            (self.per_block.is_some(), staged, "--per-block", "staged"),
            (
                self.allocate.is_some(),
                stream || staged,
                "--allocate",
                "stream or staged",
            ),
            (
                self.reuse.is_some(),
                stream || staged,
                "--reuse",
                "stream or staged",
            ),
        ];
        let idle = options
            .into_iter()
            .find(|(given, acts, ..)| *given && !acts);
        idle.map(|(_, _, option, executors)| (option, executors))
    }
}

/// Which pieces of a table a thread takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Plan {
    /// The next one, wherever it lies
    Obliv,
    /// Those of its own node first, then those of the nearest that has any
    #[default]
    Shard,
    /// Those of its own node: each node has workers and join tables of its own, whose results are merged
    Distr,
}

/// What channels are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Channel {
    /// A ring with a plain lock
    #[default]
    Ring,
    /// A queue without locks
    LockFree,
}

/// Whether blocks are used again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Reuse {
    /// Their last consumer gives them back
    #[default]
    On,
    /// Each is made anew
    Off,
}

/// What runs queries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Executor {
    /// Atoll's own algebra, each worker taking rows through a whole pipeline
    #[default]
    Fused,
    /// The same algebra, operators as concurrent tasks with blocks of rows going from one to the next
    Stream,
    /// The same algebra, some tasks setting blocks of a ring up and others processing them
    Staged,
}

/// How often a query is planned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Planning {
    /// Once, as long as planning would come to the same, and it was run in the last seconds
    #[default]
    Once,
    /// Each time that it runs
    Each,
}

/// The library's options for those of a command that runs queries.
///
/// # Errors
/// If an option was given that has no effect with the chosen executor.
pub fn options(
    resources: &Resources,
    execution: &Execution,
    read_only: bool,
) -> Result<Options, Failure> {
    if let Some((option, executors)) = execution.idle() {
        eprintln!(
            "atoll: {option} is for --executor {executors}; leave it out, or choose one of these"
        );
        return Err(Failure::Status(2));
    }
    let mut options = resources::options(resources, read_only);
    options.executor = match execution.executor {
        Executor::Fused => atoll::Executor::Fused,
        Executor::Stream => atoll::Executor::Stream,
        Executor::Staged => atoll::Executor::Staged,
    };
    options.plan_use = match execution.planning {
        Planning::Once => atoll::PlanUse::Repeatedly,
        Planning::Each => atoll::PlanUse::Once,
    };
    options.numa_policy = execution.plan.map(|plan| match plan {
        Plan::Obliv => atoll::NumaPolicy::Obliv,
        Plan::Shard => atoll::NumaPolicy::Shard,
        Plan::Distr => atoll::NumaPolicy::Distr,
    });
    let how = &mut options.execution;
    // Whoever chooses channels wants rows to go through them.
    how.hand_over = execution.queue.is_some()
        || execution.channel.is_some()
        || execution.reuse.is_some()
        || execution.allocate.is_some();
    how.block_rows = execution.block;
    how.ring = execution.ring.map(usize::from);
    how.per_block = execution.per_block.map_or(how.per_block, usize::from);
    how.allocation = execution.allocate.unwrap_or_default();
    how.tasks = execution.tasks.iter().copied().map(usize::from).collect();
    how.queue = execution.queue.map_or(how.queue, usize::from);
    how.lock_free = execution.channel == Some(Channel::LockFree);
    how.reuse = execution.reuse != Some(Reuse::Off);
    how.any_join_order = execution.any_join_order;
    Ok(options)
}
