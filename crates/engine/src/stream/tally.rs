//! What operators did, counted while they run and told afterwards.

use std::fmt::Write;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// How often, and how long, tasks were asleep for one cause.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    times: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Waits {
    /// One more.
    pub fn add(&self, time: Duration) {
        self.times.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds
            .fetch_add(time.as_nanos() as u64, Ordering::Relaxed);
    }

    /// `3 times 1.250 ms`
    pub fn shown(&self) -> String {
        let times = self.times.load(Ordering::Relaxed);
        let time = self.nanoseconds.load(Ordering::Relaxed);
        format!("{times} times {}", milliseconds(time))
    }
}

/// What the tasks of one operator did.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    blocks: AtomicU64,
    rows: AtomicU64,
    busy: AtomicU64,
    working: AtomicUsize,
    most: AtomicUsize,
    /// Blocks taken through the rest of the pipeline at once, for want of room.
    pub inline: AtomicU64,
    /// Asleep for input.
    pub input: Waits,
    /// Asleep for room behind it.
    pub output: Waits,
}

/// Counts one task as working until dropped.
pub(crate) struct Working<'t>(&'t Tally, Instant);

impl Tally {
    /// A task begins to work.
    pub fn work(&self) -> Working<'_> {
        let now = self.working.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(now, Ordering::Relaxed);
        Working(self, Instant::now())
    }

    /// Blocks handed on, and their rows.
    pub fn count(&self, blocks: u64, rows: usize) {
        self.blocks.fetch_add(blocks, Ordering::Relaxed);
        self.rows.fetch_add(rows as u64, Ordering::Relaxed);
    }

    /// One line.
    pub fn line(&self, name: &str, tasks: usize) -> String {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        let mut line = format!(
            "  {name}: {tasks} tasks, at most {} at once; {} blocks, {} rows; busy {}; asleep for input {}, for output {}",
            self.most.load(Ordering::Relaxed),
            read(&self.blocks),
            read(&self.rows),
            milliseconds(read(&self.busy)),
            self.input.shown(),
            self.output.shown(),
        );
        if read(&self.inline) > 0 {
            let _ = write!(
                line,
                "; {} blocks taken to the end for want of room",
                read(&self.inline)
            );
        }
        line
    }
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        let time = self.1.elapsed().as_nanos() as u64;
        self.0.busy.fetch_add(time, Ordering::Relaxed);
        self.0.working.fetch_sub(1, Ordering::Relaxed);
    }
}

/// `1.250 ms`
pub(crate) fn milliseconds(nanoseconds: u64) -> String {
    format!("{:.3} ms", nanoseconds as f64 / 1e6)
}
