//! The process inside the emulated machine: runs a query under each plan, and marks each run.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clap::Args;
use counters::{Process, System};
use emulator::count::Matrix;
use emulator::roi;
use engine::{Executor, NumaPolicy};
use serde::{Deserialize, Serialize};

use super::super::laq::bench::{Bench, Way};
use super::super::laq::host;
use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::json;

/// `plans-inside`
#[derive(Args, Clone, Debug)]
pub struct PlansInside {
    /// The task, as JSON
    pub task: String,
}

/// What is run in one boot: in each round every variant once, each in a process of its own, so that no memory stays
/// where the run before has left it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    /// The store.
    pub(super) store: PathBuf,
    /// What the query is called.
    pub(super) name: String,
    /// The query in LAQ.
    pub(super) text: String,
    /// The variants: plan and affinity.
    pub(super) variants: Vec<Variant>,
    /// Counted runs of each variant.
    pub(super) runs: usize,
    /// Warm-up runs before each counted run.
    pub(super) warm: usize,
    /// The number of workers.
    pub(super) threads: usize,
    /// Workers of the first run, which brings the pages into memory.
    pub(super) loaders: usize,
    /// Bytes of the buffer pool.
    pub(super) pool: u64,
}

/// A plan, with affinity or without.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Variant {
    /// The plan's name.
    pub(super) plan: String,
    /// Whether workers and pages are bound.
    pub(super) affinity: bool,
}

/// The result of a counted run, as one line of output.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Told {
    /// The variant.
    pub(super) variant: Variant,
    /// Bytes by node of the reader, then of the page, as the engine counts.
    pub(super) engine: Matrix,
    /// How often workers were moved to another cpu since the pages are in memory; `None` if the kernel does not say.
    pub(super) moves: Option<u64>,
    /// The rows, sorted.
    pub(super) rows: Vec<String>,
}

impl PlansInside {
    pub(crate) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let task: Task = json::read(&self.task, "the task")?;
        if let ([variant], 1) = (&task.variants[..], task.runs) {
            let told = once(&task, variant)?;
            return desk.line(&told);
        }
        for _ in 0..task.runs {
            for variant in &task.variants {
                let own = Task {
                    variants: vec![variant.clone()],
                    runs: 1,
                    ..task.clone()
                };
                let told = elsewhere(&own, desk)?;
                desk.say(&told)?;
            }
        }
        Ok(())
    }
}

/// Runs the task in another process of this program, and returns what it prints.
fn elsewhere(task: &Task, desk: &Desk<'_>) -> Result<String> {
    let failed = |why: String| Error::Job { why };
    let words = serde_json::to_string(task).map_err(|error| failed(error.to_string()))?;
    let mut command = Command::new(&desk.lab[0]);
    command
        .args(&desk.lab[1..])
        .args(["plans-inside", &words])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit());
    let ran = command
        .output()
        .map_err(|error| failed(format!("cannot start this program again: {error}")))?;
    if !ran.status.success() {
        return Err(failed(format!("a run failed: {}", ran.status)));
    }
    Ok(String::from_utf8_lossy(&ran.stdout).into_owned())
}

/// Makes one counted run, after the warm-up runs.
fn once(task: &Task, variant: &Variant) -> Result<Told> {
    let plan = NumaPolicy::named(&variant.plan).ok_or_else(|| Error::Job {
        why: format!("there is no plan {}", variant.plan),
    })?;
    let threads = |_| {
        Ok(BTreeSet::from([task.loaders, task.threads])
            .into_iter()
            .collect())
    };
    let store: &Path = &task.store;
    let bench = Bench::open(store, None, Some(task.pool), variant.affinity, threads)?;
    let subject = bench.plan(task.name.clone(), &task.text)?;
    let way = Way {
        plan,
        ..Way::by(Executor::Fused, task.threads)
    };
    let load = Way {
        threads: task.loaders,
        ..way
    };
    bench.run(&subject, &load, None)?;
    let before = moves();
    for _ in 1..task.warm {
        bench.run(&subject, &way, None)?;
    }
    for frames in bench.frames() {
        let bytes = frames.end as usize - frames.start as usize;
        // SAFETY: the memory of the pool, which is mapped and readable as long as the store is open.
        unsafe { roi::window(frames.start, bytes) };
    }
    roi::flush();
    roi::start();
    let ran = bench.run(&subject, &way, None);
    roi::stop();
    let ran = ran?;
    Ok(Told {
        variant: variant.clone(),
        engine: ran.bytes,
        moves: moves().zip(before).map(|(now, before)| now - before),
        rows: ran.rows,
    })
}

/// How often the workers of this process were moved to another cpu so far.
fn moves() -> Option<u64> {
    let process = Process::open(&System::real(), std::process::id()).ok()?;
    let threads = process.threads().ok()?.into_iter();
    threads
        .filter(|thread| host::computes(*thread))
        .map(|thread| process.migrations(thread))
        .sum()
}
