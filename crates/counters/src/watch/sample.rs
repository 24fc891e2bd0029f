//! One sample of a watched process.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::tasks::Activity;

/// One sample of a [`Watch`](crate::Watch).
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Time since watching began.
    pub at: Duration,
    /// The processes followed, by number.
    pub processes: Vec<Seen>,
    /// Processes followed since this look, by number.
    pub started: Vec<u32>,
    /// Processes that have ended since the last look, by number.
    pub ended: Vec<u32>,
    /// Children that are there and not followed.
    pub unfollowed: Vec<u32>,
}

/// A process in one look.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    /// What it did.
    pub activity: Activity,
    /// Where its memory lies, or why that is not known.
    pub memory: std::result::Result<Memory, String>,
}

/// Where the memory of a process lies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The operating system's numbers.
    pub nodes: Vec<u32>,
    /// Bytes in memory on each of them.
    pub bytes: Vec<u64>,
    /// Whether they are estimates.
    pub sampled: bool,
    /// How long ago that was.
    pub age: Duration,
}

impl Sample {
    /// Cpus kept busy, all processes together; `None` where no process says.
    pub fn load(&self) -> Option<f64> {
        self.sum(|activity| activity.load.value.number())
    }

    /// Threads that waited for a cpu, all processes together.
    pub fn waiting(&self) -> Option<f64> {
        self.sum(|activity| activity.waiting.value.number())
    }

    fn sum(&self, of: impl Fn(&Activity) -> Option<f64>) -> Option<f64> {
        let known = self.processes.iter().filter_map(|seen| of(&seen.activity));
        known.fold(None, |sum, value| Some(sum.unwrap_or(0.0) + value))
    }

    /// How many threads there are.
    pub fn threads(&self) -> usize {
        self.processes
            .iter()
            .map(|seen| seen.activity.threads.len())
            .sum()
    }

    /// Bytes in memory by node, all processes together: pages that several of them map count
    /// for each.
    pub fn memory(&self) -> BTreeMap<u32, u64> {
        let mut sum = BTreeMap::new();
        for memory in self
            .processes
            .iter()
            .filter_map(|seen| seen.memory.as_ref().ok())
        {
            for (node, bytes) in memory.nodes.iter().zip(&memory.bytes) {
                *sum.entry(*node).or_default() += bytes;
            }
        }
        sum
    }

    /// How many threads ran last on each node, those that ran since the last look.
    pub fn running(&self) -> BTreeMap<u32, usize> {
        let mut sum = BTreeMap::new();
        for seen in &self.processes {
            for thread in &seen.activity.threads {
                if let (Some(node), true) =
                    (thread.node, thread.load.is_some_and(|load| load > 0.0))
                {
                    *sum.entry(node).or_default() += 1;
                }
            }
        }
        sum
    }
}
