//! How programs are run.

use std::path::Path;
use std::sync::Arc;

use io::Device;

use crate::error::{Error, Result};
use crate::executor::Executor;
use crate::profile::Ledger;

/// Which pieces of a table a worker takes (row M2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// The next one of a single queue, wherever its pages lie.
    Obliv,
    /// Those of its own node first, then those of the nearest node that has any.
    #[default]
    Shard,
    /// Those of its own node, by an instance of the engine for each node, with workers and look-up tables of its own.
    /// What lies on a node without workers goes to the nearest that has some.
    Distr,
}

impl Plan {
    /// All of them.
    pub const ALL: [Plan; 3] = [Plan::Obliv, Plan::Shard, Plan::Distr];

    /// Its name, as users write it: `obliv`, `shard`, `distr`.
    pub fn name(self) -> &'static str {
        match self {
            Plan::Obliv => "obliv",
            Plan::Shard => "shard",
            Plan::Distr => "distr",
        }
    }

    /// The one of that name.
    pub fn named(name: &str) -> Option<Plan> {
        Plan::ALL.into_iter().find(|plan| plan.name() == name)
    }
}

/// Least and most rows of an execution block.
pub const BLOCK_ROWS: std::ops::RangeInclusive<usize> = 2_048..=2 << 20;

/// Where rows go that do not fit in the memory limit.
#[derive(Clone, Debug)]
pub enum SpillTo {
    /// A file in this directory, made when it is needed and gone with the query.
    Directory(Arc<Path>),
    /// This device; its bytes are overwritten.
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
    /// What runs it.
    pub executor: Executor,
    /// Most rows that are handed on at once, within [`BLOCK_ROWS`]; by default what suits the executor. A stored
    /// block is read as a whole: smaller ones are cut from it, of larger ones it is a part.
    pub block_rows: Option<usize>,
    /// Which pieces of a table a worker takes.
    pub plan: Plan,
    /// Blocks that a channel of the streaming executor holds, at least 1.
    pub queue: usize,
    /// Channels without locks, instead of a ring with a plain one.
    pub lock_free: bool,
    /// Tasks of each operator, from the source on, the last for all that follow; by default as many of each as
    /// there are workers, so that an operator whose input is full gets the next one that is free.
    pub tasks: Vec<usize>,
    /// Blocks of the staged executor's ring, at least 1; by default two for each worker and one.
    pub ring: Option<usize>,
    /// Whether blocks are used again (L7).
    pub reuse: bool,
    /// Whether the fused executor has all rows that others decode in memory before it processes the first: what
    /// reading and processing at the same time is compared with.
    pub preload: bool,
    /// Where rows go that do not fit in the memory limit. Without it, a query that needs it fails with
    /// [`Error::Memory`].
    pub spill: Option<SpillTo>,
    /// Rows, or groups, that a worker keeps before it puts them away where [`Execution::spill`] allows it, however
    /// much memory is left: to try with few rows what many do.
    pub room: Option<usize>,
    /// Where what operators did is noted, if somebody asks.
    pub ledger: Option<Arc<Ledger>>,
}

impl Default for Execution {
    fn default() -> Execution {
        Execution {
            executor: Executor::Fused,
            block_rows: None,
            plan: Plan::default(),
            queue: 2,
            lock_free: false,
            tasks: vec![],
            ring: None,
            reuse: true,
            preload: false,
            spill: None,
            room: None,
            ledger: None,
        }
    }
}

impl Execution {
    /// The defaults of `executor`.
    pub fn by(executor: Executor) -> Execution {
        Execution {
            executor,
            ..Execution::default()
        }
    }

    /// Refuses what is out of range.
    ///
    /// # Errors
    /// [`Error::Unsupported`], which says what is allowed.
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
            _ if self.ring == Some(0) => "a ring of no blocks".into(),
            _ if self.tasks.contains(&0) => "operators without a task".into(),
            _ => return Ok(()),
        };
        Err(Error::Unsupported(wrong))
    }
}
