//! Tallies: what tasks of operators count while they run.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::profile::{OperatorProfile, Task};

/// How often, and how long, tasks slept for one reason.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    times: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Waits {
    /// Adds one wait.
    pub fn add(&self, time: Duration) {
        self.times.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds
            .fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// The number of waits, and their nanoseconds.
    fn both(&self) -> (u64, u64) {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        (read(&self.times), read(&self.nanoseconds))
    }
}

/// How many tasks of an operator work at the same time.
#[derive(Debug, Default)]
struct Concurrency {
    working: AtomicUsize,
    most: AtomicUsize,
}

/// The counters of one task.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    blocks: AtomicU64,
    rows: AtomicU64,
    busy: AtomicU64,
    together: Arc<Concurrency>,
    /// Blocks taken to the end of the pipeline by this task because the channel was full.
    pub inline: AtomicU64,
    /// Pieces of the source, or blocks, taken to the end of the pipeline by this task because no worker was without work.
    pub kept: AtomicU64,
    /// Waits for input.
    pub input: Waits,
    /// Waits for room in the output channel.
    pub output: Waits,
}

/// Counts a task as working until it is dropped.
pub(crate) struct Working<'t>(&'t Tally, Instant);

/// The tallies of all tasks of an operator.
#[derive(Clone, Debug)]
pub(crate) struct Tallies(Arc<[Arc<Tally>]>);

impl Tallies {
    /// The tallies of `tasks` tasks, all zero.
    pub fn new(tasks: usize) -> Tallies {
        let together = Arc::new(Concurrency::default());
        let one = || {
            Arc::new(Tally {
                together: together.clone(),
                ..Tally::default()
            })
        };
        Tallies(std::iter::repeat_with(one).take(tasks).collect())
    }

    /// The tally of each task.
    pub fn each(&self) -> impl Iterator<Item = &Arc<Tally>> {
        self.0.iter()
    }

    fn sum(&self, of: impl Fn(&Tally) -> u64) -> u64 {
        self.0.iter().map(|tally| of(tally)).sum()
    }

    /// The report line of the operator: all tasks together.
    pub fn line(&self, name: &str) -> String {
        let read = |of: fn(&Tally) -> &AtomicU64| self.sum(|t| of(t).load(Ordering::Relaxed));
        let waits = |of: fn(&Tally) -> &Waits| {
            let times = self.sum(|t| of(t).both().0);
            let time = milliseconds(self.sum(|t| of(t).both().1));
            format!("{times} times {time}")
        };
        let together = self.0.first().map(|tally| &tally.together);
        let mut line = format!(
            "  {name}: {} tasks, at most {} at once; {} blocks, {} rows; busy {}; asleep for input {}, for output {}",
            self.0.len(),
            together.map_or(0, |all| all.most.load(Ordering::Relaxed)),
            read(|t| &t.blocks),
            read(|t| &t.rows),
            milliseconds(read(|t| &t.busy)),
            waits(|t| &t.input),
            waits(|t| &t.output),
        );
        let inline = read(|t| &t.inline);
        if inline > 0 {
            let _ = write!(line, "; {inline} blocks taken to the end for want of room");
        }
        let kept = read(|t| &t.kept);
        if kept > 0 {
            let _ = write!(line, "; {kept} taken to the end as all workers were busy");
        }
        line
    }

    /// The profile of the operator, task by task.
    pub fn operator(&self, name: &str) -> OperatorProfile {
        let tasks = self.0.iter().map(|tally| {
            let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
            let (input, output) = (tally.input.both(), tally.output.both());
            Task {
                blocks: read(&tally.blocks),
                rows: read(&tally.rows),
                busy: read(&tally.busy) as f64 / 1e9,
                for_input: input.1 as f64 / 1e9,
                times_for_input: input.0,
                for_output: output.1 as f64 / 1e9,
                times_for_output: output.0,
            }
        });
        OperatorProfile {
            name: name.to_owned(),
            tasks: tasks.collect(),
        }
    }
}

impl Tally {
    /// Begins to count the task as working.
    pub fn work(&self) -> Working<'_> {
        let now = self.together.working.fetch_add(1, Ordering::Relaxed) + 1;
        self.together.most.fetch_max(now, Ordering::Relaxed);
        Working(self, Instant::now())
    }

    /// Counts blocks passed on, and their rows.
    pub fn count(&self, blocks: u64, rows: usize) {
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let time = self.1.elapsed().as_nanos() as u64;
        self.0.busy.fetch_add(time, Ordering::Relaxed);
        self.0.together.working.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Nanoseconds as, for example, `1.250 ms`.
pub(crate) fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.3} ms", nanoseconds as f64 / 1e6)
}
