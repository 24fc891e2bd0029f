//! The figures of each query, as they are written to the file of raw numbers.

use engine::{Allocation, Executor};
use report::Sample;
use serde::Serialize;

use super::bare::Bare;
use super::host::Spent;
use super::measure::{Measured, Variant, middle};
use super::scope::{Kind, Scope, name};

/// Median, range and quartiles of the runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Span {
    /// The median.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
    /// The lower quartile.
    pub lower: f64,
    /// The upper quartile.
    pub upper: f64,
}

impl Span {
    /// The span of a sample.
    pub fn of(sample: &Sample) -> Span {
        let (least, most) = sample.range();
        let (lower, upper) = sample.quartiles();
        Span {
            median: sample.median(),
            least,
            most,
            lower,
            upper,
        }
    }
}

/// A query run with one size of blocks.
#[derive(Clone, Debug, Serialize)]
pub struct ByBlock {
    /// The executor.
    pub executor: &'static str,
    /// The most rows of a block.
    pub block_rows: usize,
    /// Time.
    pub seconds: Span,
    /// Speed-up over the first executor with blocks of the same size: the median of the ratios within a round.
    pub speed: f64,
    /// Page faults per run.
    pub page_faults: f64,
    /// Blocks allocated in a run, and how often one was reused; none if that is not counted.
    pub blocks: Option<(u64, u64)>,
}

/// A query run by so many threads.
#[derive(Clone, Debug, Serialize)]
pub struct ByThreads {
    /// The executor.
    pub executor: &'static str,
    /// Threads.
    pub threads: usize,
    /// Time.
    pub seconds: Span,
    /// Speed-up over the fewest threads: the median of the ratios within a round.
    pub speedup: f64,
    /// Bytes of pages read per second.
    pub bytes_per_second: f64,
    /// The same as a share of what the bare loop over memory reads with as many threads.
    pub of_bare: f64,
}

/// A bare loop.
#[derive(Clone, Debug, Serialize)]
pub struct ByLoop {
    /// The loop.
    pub bare: Bare,
    /// Threads.
    pub threads: usize,
    /// Bytes or operations per second.
    pub rate: Span,
    /// Speed-up over the fewest threads that were asked for: the median of the ratios within a round. None if there
    /// is no such run.
    pub speedup: f64,
}

/// A query run with reuse of blocks, or without.
#[derive(Clone, Debug, Serialize)]
pub struct Reuse {
    /// The executor.
    pub executor: &'static str,
    /// Whether blocks are reused.
    pub reuse: bool,
    /// Time.
    pub seconds: Span,
    /// Time relative to that with reuse: the median of the ratios within a round.
    pub times: f64,
    /// Blocks allocated in a run; none if that was not counted.
    pub blocks_made: Option<u64>,
    /// How often one was reused.
    pub blocks_reused: Option<u64>,
    /// Page faults per run.
    pub page_faults: f64,
    /// Peak memory of a process that runs only this query; none if that was not measured.
    pub peak_bytes: Option<f64>,
}

/// A query run in one of several ways that are compared.
#[derive(Clone, Debug, Serialize)]
pub struct Compared {
    /// The executor.
    pub executor: &'static str,
    /// What is compared: allocation, channels, threads for a block.
    pub what: &'static str,
    /// This way.
    pub way: String,
    /// Time.
    pub seconds: Span,
    /// Time relative to the first way: the median of the ratios within a round.
    pub times: f64,
    /// Blocks allocated in a run, and how often one was reused.
    pub blocks: Option<(u64, u64)>,
    /// Page faults per run.
    pub page_faults: f64,
}

/// An operator of the fused executor on one thread.
#[derive(Clone, Debug, Serialize)]
pub struct Operator {
    /// The stage it is in.
    pub stage: usize,
    /// The operator.
    pub name: String,
    /// Input rows.
    pub rows: u64,
    /// Operations.
    pub operations: u64,
    /// Bytes read and written.
    pub bytes: u64,
    /// The bytes of pages among them.
    pub page_bytes: u64,
    /// Time.
    pub seconds: f64,
    /// Its share of the time of all operators.
    pub share: f64,
    /// Operations per byte.
    pub intensity: f64,
    /// Operations per second.
    pub rate: f64,
    /// The time that bare loops take for as many bytes (those of pages from memory, the others from the cache), as a
    /// share of the operator's time.
    pub of_roof: f64,
}

/// Times of one worker in the run of the median time.
#[derive(Clone, Debug, Serialize)]
pub struct Thread {
    /// The executor.
    pub executor: &'static str,
    /// The worker.
    pub thread: usize,
    /// The run's time.
    pub seconds: f64,
    /// How it spent this time.
    #[serde(flatten)]
    pub spent: Spent,
}

/// Times of one task in the run of the median time.
#[derive(Clone, Debug, Serialize)]
pub struct Task {
    /// The executor.
    pub executor: &'static str,
    /// The stage it belongs to.
    pub stage: usize,
    /// The operator.
    pub operator: String,
    /// Its number among the tasks of the operator.
    pub task: usize,
    /// The stage's time.
    pub seconds: f64,
    /// Blocks handed on or taken.
    pub blocks: u64,
    /// Rows.
    pub rows: u64,
    /// Seconds of work.
    pub working: f64,
    /// Seconds asleep for input.
    pub for_input: f64,
    /// Seconds asleep for room in its output.
    pub for_output: f64,
    /// The remaining seconds: ready without a worker, not yet begun, or finished.
    pub for_worker: f64,
}

/// Bytes read under a plan.
#[derive(Clone, Debug, Serialize)]
pub struct ByPlan {
    /// The plan.
    pub plan: &'static str,
    /// Time.
    pub seconds: Span,
    /// Bytes by node of the reader, then by node of the page.
    pub bytes: Vec<Vec<u64>>,
    /// Bytes read from the reader's own node.
    pub local: u64,
    /// Bytes read from other nodes.
    pub remote: u64,
}

/// All figures of one query.
#[derive(Clone, Debug, Serialize)]
pub struct Figures {
    /// What it is called.
    pub query: String,
    /// Rows of its answer.
    pub rows: usize,
    /// Times by block size.
    pub by_block: Vec<ByBlock>,
    /// Times by threads.
    pub by_threads: Vec<ByThreads>,
    /// Times with reuse of blocks and without.
    pub reuse: Vec<Reuse>,
    /// Times by the way blocks are allocated, passed on and shared out.
    pub compared: Vec<Compared>,
    /// Operators, by stage.
    pub operators: Vec<Operator>,
    /// Workers.
    pub threads: Vec<Thread>,
    /// Tasks.
    pub tasks: Vec<Task>,
    /// Plans.
    pub plans: Vec<ByPlan>,
}

fn ratio(of: &Sample, to: &Sample) -> f64 {
    of.ratio(to).median()
}

/// Bare loops at each number of threads.
pub fn loops(scope: &Scope, measured: &Measured) -> Vec<ByLoop> {
    let all = measured.bare.iter();
    all.map(|((bare, threads), rates)| {
        let fewest = scope.threads.first().copied().unwrap_or(1);
        let fewest = measured.bare.get(&(*bare, fewest));
        ByLoop {
            bare: *bare,
            threads: *threads,
            rate: Span::of(rates),
            speedup: fewest.map_or(f64::NAN, |first| ratio(rates, first)),
        }
    })
    .collect()
}

impl Figures {
    /// The figures of one query.
    pub fn new(query: usize, called: &str, scope: &Scope, measured: &Measured) -> Figures {
        let operators = operators(query, measured);
        Figures {
            query: called.to_owned(),
            rows: measured.rows.get(query).copied().unwrap_or(0),
            by_block: by_block(query, scope, measured),
            by_threads: by_threads(query, scope, measured),
            reuse: reuse(query, scope, measured),
            compared: compared(query, measured),
            operators,
            threads: threads(query, measured),
            tasks: tasks(query, measured),
            plans: plans(query, measured),
        }
    }
}

fn by_block(query: usize, scope: &Scope, measured: &Measured) -> Vec<ByBlock> {
    let mut all = Vec::new();
    for executor in &scope.executors {
        for rows in &scope.blocks {
            let own = |executor: Executor| {
                let mut way = scope.usual(executor);
                way.block = Some(*rows);
                measured.of(query, &way)
            };
            let (Some(one), Some(first)) = (own(*executor), own(scope.executors[0])) else {
                continue;
            };
            all.push(ByBlock {
                executor: name(*executor),
                block_rows: *rows,
                seconds: Span::of(&one.seconds),
                speed: ratio(&first.seconds, &one.seconds),
                page_faults: one.faults.median(),
                blocks: one.blocks,
            });
        }
    }
    all
}

fn by_threads(query: usize, scope: &Scope, measured: &Measured) -> Vec<ByThreads> {
    let mut all = Vec::new();
    for executor in &scope.executors {
        let own = |threads: usize| {
            let mut way = scope.usual(*executor);
            way.threads = threads;
            measured.of(query, &way)
        };
        for threads in &scope.threads {
            let (Some(one), Some(first)) = (own(*threads), own(scope.threads[0])) else {
                continue;
            };
            let bytes_per_second = one.bytes as f64 / one.seconds.median();
            all.push(ByThreads {
                executor: name(*executor),
                threads: *threads,
                seconds: Span::of(&one.seconds),
                speedup: ratio(&first.seconds, &one.seconds),
                bytes_per_second,
                of_bare: bytes_per_second / measured.rate(Bare::Memory, *threads),
            });
        }
    }
    all
}

fn reuse(query: usize, scope: &Scope, measured: &Measured) -> Vec<Reuse> {
    let mut all = Vec::new();
    for executor in scope.executors.iter().filter(|e| **e != Executor::Fused) {
        // Both stand in a group of their own, one after the other.
        let mut runs = measured.variants.iter();
        let off =
            runs.find(|one| one.query == query && one.way.executor == *executor && !one.way.reuse);
        let own = |reuse: bool| -> Option<&Variant> {
            let mut runs = measured.variants.iter();
            runs.find(|one| Some(one.group) == off.map(|off| off.group) && one.way.reuse == reuse)
        };
        for reuse in [true, false] {
            let (Some(one), Some(with)) = (own(reuse), own(true)) else {
                continue;
            };
            let memory = measured.memory.iter();
            let mut memory =
                memory.filter(|(q, e, r, _)| (*q, *e, *r) == (query, *executor, reuse));
            all.push(Reuse {
                executor: name(*executor),
                reuse,
                seconds: Span::of(&one.seconds),
                times: ratio(&one.seconds, &with.seconds),
                blocks_made: one.blocks.map(|(made, _)| made),
                blocks_reused: one.blocks.map(|(_, again)| again),
                page_faults: one.faults.median(),
                peak_bytes: memory.next().map(|(_, _, _, peaks)| peaks.median()),
            });
        }
    }
    all
}

fn compared(query: usize, measured: &Measured) -> Vec<Compared> {
    let mut all = Vec::new();
    for one in measured.variants.iter().filter(|one| one.query == query) {
        let what = match one.kind {
            Kind::Allocation => "allocation",
            Kind::Channels => "channels",
            Kind::PerBlock => "threads for a block",
            _ => continue,
        };
        let mut group = measured.variants.iter();
        let Some(first) = group.find(|other| other.group == one.group) else {
            continue;
        };
        all.push(Compared {
            executor: name(one.way.executor),
            what,
            way: called(one),
            seconds: Span::of(&one.seconds),
            times: ratio(&one.seconds, &first.seconds),
            blocks: one.blocks,
            page_faults: one.faults.median(),
        });
    }
    all
}

/// What its way is called among those that it is compared with.
fn called(one: &Variant) -> String {
    let way = &one.way;
    match one.kind {
        Kind::Allocation => match way.allocation {
            Allocation::Set(blocks) => format!("{blocks} blocks at once"),
            Allocation::Fraction(parts) => format!("1/{parts} of all at once"),
            Allocation::Whole => "all at first".to_owned(),
            _ => "one as needed".to_owned(),
        },
        Kind::Channels => {
            let ends = match way.tasks {
                Some((_, 1)) => "one to one",
                Some(_) => "one to many",
                None => "many to many",
            };
            let ring = if way.lock_free { "no locks" } else { "a lock" };
            format!("{ring}, {ends}")
        }
        _ => super::scope::threads(way.per_block),
    }
}

fn operators(query: usize, measured: &Measured) -> Vec<Operator> {
    let runs = &measured.operators[query];
    let kernels = |run: &super::measure::Seen| -> Vec<(usize, engine::profile::Kernel)> {
        let records = run.records.iter();
        let all =
            records.flat_map(|record| record.kernels.iter().map(|k| (record.stage, k.clone())));
        all.collect()
    };
    let Some(first) = runs.first().map(kernels) else {
        return vec![];
    };
    let times: Vec<Vec<f64>> = runs
        .iter()
        .map(kernels)
        .filter(|own| own.len() == first.len())
        .map(|own| own.iter().map(|(_, kernel)| kernel.seconds).collect())
        .collect();
    let median = |at: usize| times.iter().map(|own| own[at]).collect::<Sample>().median();
    let total: f64 = (0..first.len()).map(median).sum();
    let (memory, cache) = (
        measured.rate(Bare::Memory, 1),
        measured.rate(Bare::Cache, 1),
    );
    let figures = first.into_iter().enumerate().map(|(at, (stage, kernel))| {
        let seconds = median(at);
        let (operations, bytes) = (kernel.operations as f64, kernel.bytes as f64);
        let pages = kernel.page_bytes as f64;
        Operator {
            stage,
            name: plain(&kernel.name),
            rows: kernel.rows,
            operations: kernel.operations,
            bytes: kernel.bytes,
            page_bytes: kernel.page_bytes,
            seconds,
            share: seconds / total,
            intensity: operations / bytes,
            rate: operations / seconds,
            of_roof: (pages / memory + (bytes - pages) / cache) / seconds,
        }
    });
    figures.collect()
}

/// An operator's name without the tables of its columns.
pub(super) fn plain(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for char in name.chars() {
        let word = out.rfind(|c: char| !c.is_alphanumeric() && c != '_');
        let start = word.map_or(0, |at| at + 1);
        // Not the point of a number.
        let table = out[start..].starts_with(|c: char| c.is_alphabetic());
        match char {
            '.' if table => out.truncate(start),
            char => out.push(char),
        }
    }
    out
}

fn threads(query: usize, measured: &Measured) -> Vec<Thread> {
    let mut all = Vec::new();
    for (executor, runs) in &measured.waits[query] {
        let Some(run) = middle(runs) else { continue };
        all.extend(run.spent.iter().enumerate().map(|(thread, spent)| Thread {
            executor: name(*executor),
            thread,
            seconds: run.seconds,
            spent: *spent,
        }));
    }
    all
}

fn tasks(query: usize, measured: &Measured) -> Vec<Task> {
    let mut all = Vec::new();
    for (executor, runs) in &measured.waits[query] {
        let Some(run) = middle(runs) else { continue };
        for record in &run.records {
            for operator in &record.operators {
                all.extend(operator.tasks.iter().enumerate().map(|(task, did)| Task {
                    executor: name(*executor),
                    stage: record.stage,
                    operator: operator.name.clone(),
                    task,
                    seconds: record.seconds,
                    blocks: did.blocks,
                    rows: did.rows,
                    working: did.busy,
                    for_input: did.for_input,
                    for_output: did.for_output,
                    for_worker:
                        (record.seconds - did.busy - did.for_input - did.for_output).max(0.0),
                }));
            }
        }
    }
    all
}

fn plans(query: usize, measured: &Measured) -> Vec<ByPlan> {
    let mut all = Vec::new();
    for (plan, runs) in &measured.plans[query] {
        let Some(run) = middle(runs) else { continue };
        let nodes = run.bytes.iter().enumerate();
        let local: u64 = nodes.map(|(node, row)| row[node]).sum();
        let total: u64 = run.bytes.iter().flatten().sum();
        all.push(ByPlan {
            plan,
            seconds: Span::of(&runs.iter().map(|run| run.seconds).collect()),
            bytes: run.bytes.clone(),
            local,
            remote: total - local,
        });
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_columns() {
        let long = "filter codes of t (lineitem.l_tax >= 0.05, t2.x < 1.5)";
        assert_eq!(plain(long), "filter codes of t (l_tax >= 0.05, x < 1.5)");
        assert_eq!(plain(""), "");
    }
}
