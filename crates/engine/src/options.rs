//! Options of a run: executor, block size, NUMA policy, spilling.

use std::path::Path;
use std::sync::Arc;

use io::Device;

use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::profile::ProfileCollector;
use crate::time_line::TimeLine;

/// The NUMA policy: which morsels of a table a worker takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NumaPolicy {
    /// Any: all workers share one queue, wherever the pages lie.
    Obliv,
    /// Those of the worker's own node first, then those of the nearest node that has any left.
    #[default]
    Shard,
    /// Only those of the worker's own node. Each node runs an instance of the engine, with workers and join tables
    /// of its own; data on a node without workers belongs to the nearest node that has some.
    Distr,
}

impl NumaPolicy {
    /// All policies.
    pub const ALL: [NumaPolicy; 3] = [NumaPolicy::Obliv, NumaPolicy::Shard, NumaPolicy::Distr];

    /// The policy's name as users write it: `obliv`, `shard`, `distr`.
    pub fn name(self) -> &'static str {
        match self {
            NumaPolicy::Obliv => "obliv",
            NumaPolicy::Shard => "shard",
            NumaPolicy::Distr => "distr",
        }
    }

    /// The policy of that name, if there is one.
    pub fn named(name: &str) -> Option<NumaPolicy> {
        NumaPolicy::ALL.into_iter().find(|plan| plan.name() == name)
    }
}

/// How many execution blocks are allocated at once when none is free (the LAQ text's question: in one piece, in fractions or in
/// small sets). The columns of a block's rows are read vector by vector, and are no part of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Allocation {
    /// One, whose room grows with its rows.
    #[default]
    Each,
    /// So many, at least 1, each with room for all of its rows.
    Set(usize),
    /// This fraction of all blocks that can be in flight, 2 for half of them.
    Fraction(usize),
    /// All that can be in flight, before the first row.
    Whole,
}

impl Allocation {
    /// Blocks that are allocated at once, of so many that can be in flight.
    pub(crate) fn count(self, flights: usize) -> usize {
        match self {
            Allocation::Each => 1,
            Allocation::Set(blocks) => blocks.max(1),
            Allocation::Fraction(parts) => flights.div_ceil(parts.max(1)).max(1),
            Allocation::Whole => flights.max(1),
        }
    }
}

/// The allowed numbers of rows in an execution block.
pub const BLOCK_ROWS: std::ops::RangeInclusive<usize> = 1_024..=2 << 20;

/// Where a query spills rows that do not fit in the memory limit.
#[derive(Clone, Debug)]
pub enum SpillTo {
    /// A file in this directory, created when it is first needed and removed with the query.
    Directory(Arc<Path>),
    /// This device. Its contents are overwritten.
    Device(Arc<dyn Device>),
}

impl From<&Path> for SpillTo {
    fn from(directory: &Path) -> SpillTo {
        SpillTo::Directory(directory.into())
    }
}

/// How a program is run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Execution {
    /// The executor that runs it.
    pub executor: Executor,
    /// Most rows in a block, within [`BLOCK_ROWS`]; by default what suits the executor. A stored block is always
    /// read whole: a smaller execution block is cut from it, a larger one takes in several.
    pub block_rows: Option<usize>,
    /// The NUMA policy.
    pub numa_policy: NumaPolicy,
    /// Whether all rows of the streaming executor go through the tasks of its operators. Without it a worker takes rows to the
    /// end of the pipeline itself while all workers have work, unless [`block_rows`](Execution::block_rows) or
    /// [`tasks`](Execution::tasks) say otherwise.
    pub hand_over: bool,
    /// Blocks that a channel of the streaming executor holds, at least 1.
    pub queue: usize,
    /// Whether channels use a lock-free queue instead of a ring behind a mutex.
    pub lock_free: bool,
    /// Tasks of each operator of the streaming and staged executors, from the source on; the last entry holds for
    /// all operators after it. By default every operator has as many tasks as there are workers, so that a free
    /// worker can always go to an operator whose input is full.
    pub tasks: Vec<usize>,
    /// How many workers of the staged executor process one block at the same time, at least 1.
    pub per_block: usize,
    /// Blocks in the staged executor's ring, at least 1; by default two for each worker and one more.
    pub ring: Option<usize>,
    /// Whether blocks are reused.
    pub reuse: bool,
    /// How blocks are allocated.
    pub allocation: Allocation,
    /// Whether the fused executor reads all rows of an external source into memory before it processes the first
    /// one. It is the baseline against which reading and processing at the same time is measured.
    pub preload: bool,
    /// Where rows are spilled that do not fit in the memory limit. Without it, a query that would have to spill
    /// fails with [`Error::Memory`].
    pub spill: Option<SpillTo>,
    /// Most rows, or groups, that a worker keeps in memory before it spills them (if [`Execution::spill`] allows
    /// it), even if memory is left. For tests: it makes small inputs spill; of a join that takes several passes the probe side as
    /// well, if the number is even.
    pub max_rows_before_spill: Option<usize>,
    /// A seed by which inner joins get any order instead of a good one: for experiments about how much it matters, and for tests.
    /// Who prepares queries hands it on as [`Query::any_order`](crate::Query::any_order).
    pub any_join_order: Option<u64>,
    /// Collects the profile of the run, if present.
    pub profile: Option<Arc<ProfileCollector>>,
    /// Notes which operator each worker is at, if present.
    pub time_line: Option<Arc<TimeLine>>,
}

impl Default for Execution {
    fn default() -> Execution {
        Execution {
            executor: Executor::Fused,
            block_rows: None,
            numa_policy: NumaPolicy::default(),
            hand_over: false,
            queue: 2,
            lock_free: false,
            tasks: vec![],
            per_block: 1,
            ring: None,
            reuse: true,
            allocation: Allocation::default(),
            preload: false,
            spill: None,
            max_rows_before_spill: None,
            any_join_order: None,
            profile: None,
            time_line: None,
        }
    }
}

impl Execution {
    /// The default options for `executor`.
    pub fn by(executor: Executor) -> Execution {
        Execution {
            executor,
            ..Execution::default()
        }
    }

    /// Checks that every option is in range.
    ///
    /// # Errors
    /// [`Error::Unsupported`], which names the allowed range.
    pub fn check(&self) -> Result<()> {
        let wrong = match self.block_rows {
            Some(rows) if !BLOCK_ROWS.contains(&rows) => {
                format!(
                    "blocks of {rows} rows: they have {} to {}",
                    BLOCK_ROWS.start(),
                    BLOCK_ROWS.end()
                )
            }
            _ if self.queue == 0 => "channels that hold no block".into(),
            _ if self.per_block == 0 => "blocks that nothing processes".into(),
            _ if matches!(
                self.allocation,
                Allocation::Set(0) | Allocation::Fraction(0)
            ) =>
            {
                "allocations of no block".into()
            }
            _ if self.ring == Some(0) => "a ring of no blocks".into(),
            _ if self.tasks.contains(&0) => "operators without a task".into(),
            _ => return Ok(()),
        };
        Err(Error::Unsupported(wrong))
    }
}
