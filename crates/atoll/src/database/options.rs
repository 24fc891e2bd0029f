//! How a database is opened.

use std::time::Duration;

use crate::error::Error;

pub use sql::{Allocation, Execution, Executor, NumaPolicy, PlanUse, TimeLine};
pub use store::{Access, Placement as PoolMemory};

/// Bytes below which a pool or a limit is refused: they could not run one query.
const LEAST_BYTES: u64 = 8 << 20;

/// Bytes in memory that no limit counts: the program itself, stacks, plans, what is on its way between a device and a
/// kernel. The program for tests, the largest one, has 84 MiB of it in memory after `select 1`, most of that its own code.
pub const BASE_BYTES: u64 = 128 << 20;

/// How a [`Database`](crate::Database) is created or opened. All fields have defaults that suit the machine.
///
/// ```
/// let mut options = atoll::Options::default();
/// options.threads = Some(2);
/// options.memory_limit = Some(512 << 20);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Worker threads; by default one for each cpu that this process may use, and one for each node at least.
    pub threads: Option<usize>,
    /// Bytes of the buffer pool; by default a quarter of the memory that this process may use, and of a limit a third, or half if
    /// that leaves statements 512 MiB.
    pub pool_bytes: Option<u64>,
    /// Bytes that pool and statements may use together; by default three quarters of the memory that this
    /// process may use. Sorts and aggregates that need more spill to disk, joins fail.
    pub memory_limit: Option<u64>,
    /// Gives freed memory back to the system. Called when this process has more in memory than the limit and
    /// [`BASE_BYTES`] together; only for programs that open one database.
    pub reclaim: Option<fn()>,
    /// Bytes of a page of a new store: 16, 32 or 64 KiB; by default 64 KiB.
    pub page_size: Option<u32>,
    /// The machine to lay workers and pages out for: a name or description that
    /// [`topology::Machine::parse`] takes; by default the one this runs on.
    pub machine: Option<String>,
    /// The nodes of that machine on whose cpus workers are, and in whose memory pages while any of it is free, by index; by
    /// default all (row M3). They are numbered anew from 0. With them `affinity` must be on.
    pub nodes: Option<Vec<usize>>,
    /// Whether the database may be changed, and whether other processes may do so meanwhile: one writes at a
    /// time, any number reads beside it.
    pub access: Access,
    /// Whether workers are pinned to their cpus and the pool's memory is bound to its nodes (row
    /// M3). Without, the operating system places both; blocks keep their home nodes.
    pub affinity: bool,
    /// From which of its nodes the pool's memory comes, if there are several and `affinity` is on.
    pub pool_memory: PoolMemory,
    /// Whether pages that are not compressed are read where the operating system mapped the store's file, in place
    /// of frames of the pool (row M1).
    pub mapped: bool,
    /// Whether pages are compressed when they are written: off for a store that is going to be mapped.
    pub compress: bool,
    /// Which executor runs queries.
    pub executor: Executor,
    /// How long the plan of a query is used.
    pub plan_use: PlanUse,
    /// How long a statement that writes waits for a transaction of several statements of another session of the same
    /// database; 10 seconds if absent.
    pub lock_timeout: Option<Duration>,
    /// Which pieces of a table a worker takes (row M2); by default as the store says
    /// ([`Database::set_plan`](crate::Database::set_plan)), or else `execution`.
    pub numa_policy: Option<NumaPolicy>,
    /// Whether workers that running statements do not use are taken out of service, and which.
    pub govern: Govern,
    /// How the executors of our own engine do it: rows of a block, blocks of a ring, ... The executor that it
    /// names is not looked at.
    pub execution: Execution,
}

/// Whether the workers are governed (row E, `docs/explanations/governor.md`): a statement begins with all of them, those that it does not
/// use are taken out of service, and back as soon as it does. Which ones follows from where the pages are that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Govern {
    /// On a machine with more than one node.
    #[default]
    Auto,
    /// Always.
    On,
    /// Always, and by throughput too: if fewer workers read as much, fewer are used.
    Throughput,
    /// Never: all workers may run at all times.
    Off,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            threads: None,
            pool_bytes: None,
            memory_limit: None,
            reclaim: None,
            page_size: None,
            machine: None,
            nodes: None,
            access: Access::Write,
            affinity: true,
            pool_memory: PoolMemory::default(),
            mapped: false,
            compress: true,
            executor: Executor::default(),
            plan_use: PlanUse::default(),
            lock_timeout: None,
            numa_policy: None,
            govern: Govern::default(),
            execution: Execution::default(),
        }
    }
}

impl Options {
    /// The defaults, for reading only.
    pub fn read_only() -> Options {
        Options {
            access: Access::Read,
            ..Options::default()
        }
    }

    /// Bytes of the pool and of the limit, where `available` bytes are there to use.
    pub(crate) fn sizes(&self, available: u64) -> Result<Sizes, Error> {
        let limit = self.memory_limit.unwrap_or(available / 4 * 3);
        if limit < LEAST_BYTES {
            return Err(Error::Options(format!(
                "a memory limit of {limit} bytes is too small; raise --memory-limit to {LEAST_BYTES} at least"
            )));
        }
        let pool = self
            .pool_bytes
            .unwrap_or((available / 4).min(pool_within(limit)));
        if pool > available {
            return Err(Error::Options(format!(
                "a pool of {pool} bytes is larger than the {available} bytes of memory this process may use; lower --pool"
            )));
        }
        if pool >= limit {
            return Err(Error::Options(format!(
                "a pool of {pool} bytes leaves nothing of the memory limit of {limit} bytes; lower --pool or raise --memory-limit"
            )));
        }
        Ok(Sizes { pool, limit })
    }
}

/// The pool's part of a limit: half of it, but no more than leaves statements two thirds or [`STATEMENTS`]. A working set that does not
/// fit is read and decompressed again by each query, while few statements come near to their part.
fn pool_within(limit: u64) -> u64 {
    let half = limit / 2;
    (limit / 3).max(half.min(limit.saturating_sub(STATEMENTS)))
}

/// Bytes that statements have beside a pool of half of the limit.
const STATEMENTS: u64 = 512 << 20;

/// What [`Options::sizes`] found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sizes {
    pub pool: u64,
    pub limit: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_shares_of_what_is_there() {
        let sizes = Options::default().sizes(4 << 30).unwrap();
        assert_eq!(
            sizes,
            Sizes {
                pool: 1 << 30,
                limit: 3 << 30
            }
        );
        let limited = Options {
            memory_limit: Some(300 << 20),
            ..Options::default()
        };
        assert_eq!(limited.sizes(4 << 30).unwrap().pool, 100 << 20);
        for (limit, pool) in [
            (512, 170),
            (768, 256),
            (900, 388),
            (1024, 512),
            (2048, 1024),
        ] {
            assert_eq!(pool_within(limit << 20) >> 20, pool, "{limit} MiB");
        }
    }

    #[test]
    fn impossible_sizes_say_which_option_to_change() {
        let refused = |pool, limit| {
            let options = Options {
                pool_bytes: pool,
                memory_limit: limit,
                ..Options::default()
            };
            options.sizes(1 << 30).unwrap_err().to_string()
        };
        assert!(refused(Some(2 << 30), None).contains("lower --pool"));
        assert!(refused(Some(512 << 20), Some(256 << 20)).contains("leaves nothing"));
        assert!(refused(None, Some(1000)).contains("raise --memory-limit"));
    }
}
