//! The totals of a watch.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

use crate::Process;
use crate::tasks::{Activity, ThreadActivity};
use crate::watch::sample::{Sample, Seen};

/// The most threads that a summary lists one by one; further ones count in the totals only.
const THREADS: usize = 1024;

/// The totals of a process over the time it was watched.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The process.
    pub process: u32,
    /// The name of its command when watching began.
    pub name: String,
    /// How long it was watched, up to the last look.
    pub watched: Duration,
    /// How many looks there were.
    pub looks: u64,
    /// Most cpus kept busy in one look.
    pub most_load: f64,
    /// Most threads at once.
    pub most_threads: usize,
    /// Threads that started.
    pub threads_started: u64,
    /// Threads that ended.
    pub threads_ended: u64,
    /// Processes that were followed, the first included.
    pub processes: u64,
    /// Of these, how many ended.
    pub processes_ended: u64,
    /// Moves of threads to another cpu; `None` where no look could tell.
    pub migrations: Option<u64>,
    /// How often threads were given a cpu; `None` where no look could tell.
    pub switches: Option<u64>,
    /// Page faults that needed no disk.
    pub minor_faults: u64,
    /// Page faults that did.
    pub major_faults: u64,
    /// Time on cpus by node: a thread's time between two looks counts for the node it is on at
    /// the second. Threads on cpus of no known node are left out.
    pub seconds_by_node: BTreeMap<u32, f64>,
    /// Bytes in memory by node at the first look.
    pub first_memory: BTreeMap<u32, u64>,
    /// Bytes in memory by node at the last look.
    pub last_memory: BTreeMap<u32, u64>,
    /// Threads, ended ones too, by (process, thread).
    pub threads: BTreeMap<(u32, u32), ThreadSummary>,
    /// Cpus times seconds, for the mean.
    used: f64,
    by_process: BTreeMap<u32, Counts>,
}

/// What one thread did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThreadSummary {
    /// What the last look told.
    pub activity: ThreadActivity,
    /// When it was first seen, in seconds since watching began.
    pub first_seconds: f64,
    /// When it was last seen.
    pub last_seconds: f64,
    /// The nodes it was seen to run on, in this order.
    pub nodes: Vec<u32>,
}

/// Counts of a process, as far as the last look at it told.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Counts {
    migrations: Option<u64>,
    switches: Option<u64>,
    minor: u64,
    major: u64,
}

impl Summary {
    pub(super) fn new(process: &Process) -> Summary {
        Summary {
            process: process.pid(),
            name: process.name().to_owned(),
            watched: Duration::ZERO,
            looks: 0,
            most_load: 0.0,
            most_threads: 0,
            threads_started: 0,
            threads_ended: 0,
            processes: 1,
            processes_ended: 0,
            migrations: None,
            switches: None,
            minor_faults: 0,
            major_faults: 0,
            seconds_by_node: BTreeMap::new(),
            first_memory: BTreeMap::new(),
            last_memory: BTreeMap::new(),
            threads: BTreeMap::new(),
            used: 0.0,
            by_process: BTreeMap::new(),
        }
    }

    /// Cpus kept busy on average; `None` before the first look.
    pub fn mean_load(&self) -> Option<f64> {
        let seconds = self.watched.as_secs_f64();
        (seconds > 0.0).then(|| self.used / seconds)
    }

    pub(super) fn started(&mut self, pids: &[u32]) {
        self.processes += pids.len() as u64;
    }

    pub(super) fn ended(&mut self, pids: &[u32]) {
        self.processes_ended += pids.len() as u64;
    }

    pub(super) fn add(&mut self, sample: &Sample) {
        let passed = sample.at.saturating_sub(self.watched).as_secs_f64();
        self.watched = sample.at;
        if let Some(load) = sample.load() {
            self.most_load = self.most_load.max(load);
            self.used += load * passed;
        }
        self.most_threads = self.most_threads.max(sample.threads());
        for seen in &sample.processes {
            self.add_process(seen, sample.at.as_secs_f64(), passed);
        }
        let memory = sample.memory();
        if self.looks == 0 {
            self.first_memory = memory.clone();
        }
        if !memory.is_empty() {
            self.last_memory = memory;
        }
        self.looks += 1;
        self.add_up();
    }

    fn add_process(&mut self, seen: &Seen, at: f64, passed: f64) {
        let activity = &seen.activity;
        let count = |of: &crate::tasks::Measured| of.value.number().map(|count| count as u64);
        let counts = Counts {
            migrations: count(&activity.migrations),
            switches: count(&activity.switches),
            minor: activity.minor_faults,
            major: activity.major_faults,
        };
        let before = self.by_process.entry(activity.process).or_default();
        // What cannot be told any more was told before.
        before.migrations = counts.migrations.or(before.migrations);
        before.switches = counts.switches.or(before.switches);
        (before.minor, before.major) = (counts.minor, counts.major);
        self.threads_started += activity.started.len() as u64;
        self.threads_ended += activity.ended.len() as u64;
        for thread in &activity.threads {
            self.add_thread(activity, thread, at, passed);
        }
    }

    /// `passed` is the time since the last look, in seconds.
    fn add_thread(&mut self, seen: &Activity, thread: &ThreadActivity, at: f64, passed: f64) {
        let seconds = match thread.load {
            Some(load) => load * passed,
            // One that was not there at the last look; of the others nobody knows.
            None if seen.started.binary_search(&thread.thread).is_ok() => thread.seconds,
            None => 0.0,
        };
        if let Some(node) = thread.node {
            *self.seconds_by_node.entry(node).or_default() += seconds;
        }
        let key = (seen.process, thread.thread);
        if !self.threads.contains_key(&key) && self.threads.len() >= THREADS {
            return;
        }
        let entry = self.threads.entry(key).or_insert_with(|| ThreadSummary {
            activity: thread.clone(),
            first_seconds: at,
            last_seconds: at,
            nodes: Vec::new(),
        });
        entry.activity = thread.clone();
        entry.last_seconds = at;
        if let Some(node) = thread.node
            && seconds > 0.0
            && !entry.nodes.contains(&node)
        {
            entry.nodes.push(node);
        }
    }

    fn add_up(&mut self) {
        let sum = |of: fn(&Counts) -> Option<u64>| {
            let known = self.by_process.values().filter_map(of);
            known.fold(None, |sum: Option<u64>, count| {
                Some(sum.unwrap_or(0) + count)
            })
        };
        let (migrations, switches) = (
            sum(|counts| counts.migrations),
            sum(|counts| counts.switches),
        );
        let (minor, major) = (
            sum(|counts| Some(counts.minor)),
            sum(|counts| Some(counts.major)),
        );
        self.migrations = migrations;
        self.switches = switches;
        self.minor_faults = minor.unwrap_or(0);
        self.major_faults = major.unwrap_or(0);
    }
}
