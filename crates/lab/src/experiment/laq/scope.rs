//! The configurations that are compared.

use engine::{Allocation, Executor, NumaPolicy};

use super::bench::Way;

/// Plans by name.
pub const PLANS: [(&str, NumaPolicy); 3] = [
    ("obliv", NumaPolicy::Obliv),
    ("shard", NumaPolicy::Shard),
    ("distr", NumaPolicy::Distr),
];

/// The configurations that are compared.
#[derive(Clone, Debug)]
pub struct Scope {
    /// The executors.
    pub executors: Vec<Executor>,
    /// Sizes of blocks, in rows.
    pub blocks: Vec<usize>,
    /// Numbers of threads.
    pub threads: Vec<usize>,
    /// Rounds.
    pub repeat: usize,
    /// Bytes that the bare loop over memory reads; `None`: chosen for the machine.
    pub field: Option<usize>,
}

/// What the configurations of a group differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The rows of a block.
    Blocks,
    /// The number of threads.
    Threads,
    /// Whether blocks are reused.
    Reuse,
    /// How blocks are allocated.
    Allocation,
    /// What channels are, and how many tasks send and receive.
    Channels,
    /// How many threads process one block.
    PerBlock,
}

/// Ways to allocate.
fn allocations(way: Way) -> Vec<Way> {
    use Allocation::{Each, Fraction, Set, Whole};
    let all = [Each, Set(4), Fraction(2), Whole];
    all.map(|allocation| Way { allocation, ..way }).to_vec()
}

/// Both kinds of channels, from many tasks to many, from one to many, and from one to one.
fn channels(way: Way) -> Vec<Way> {
    let tasks = [None, Some((1, way.threads)), Some((1, 1))];
    let kinds = |tasks| {
        [false, true].map(|lock_free| Way {
            tasks,
            lock_free,
            ..way
        })
    };
    tasks.map(kinds).concat()
}

/// The executor's name on the command line.
pub fn name(executor: Executor) -> &'static str {
    match executor {
        Executor::Stream => "stream",
        Executor::Staged => "staged",
        _ => "fused",
    }
}

impl Scope {
    /// How `executor` is run with the most threads and its own size of blocks.
    pub fn usual(&self, executor: Executor) -> Way {
        Way::by(executor, self.threads.last().copied().unwrap_or(1))
    }

    /// All configurations of one query, in groups of those that are compared with each other.
    pub fn ways(&self) -> Vec<(Kind, Vec<Way>)> {
        let all = || self.executors.iter().map(|executor| self.usual(*executor));
        let mut groups: Vec<(Kind, Vec<Way>)> = Vec::new();
        for rows in &self.blocks {
            let block = Some(*rows);
            let own = all().map(|way| Way { block, ..way });
            groups.push((Kind::Blocks, own.collect()));
        }
        for threads in &self.threads {
            let threads = *threads;
            let own = all().map(|way| Way { threads, ..way });
            groups.push((Kind::Threads, own.collect()));
        }
        for way in all().filter(|way| way.executor != Executor::Fused) {
            let reuse = [true, false].map(|reuse| Way { reuse, ..way });
            groups.push((Kind::Reuse, reuse.to_vec()));
            groups.push((Kind::Allocation, allocations(way)));
            groups.push(match way.executor {
                Executor::Stream => (Kind::Channels, channels(way)),
                _ => {
                    let own = [1, 2, 4].map(|per_block| Way { per_block, ..way });
                    (Kind::PerBlock, own.to_vec())
                }
            });
        }
        groups
    }
}

/// `2 threads`
pub fn threads(count: usize) -> String {
    format!("{count} thread{}", if count == 1 { "" } else { "s" })
}
