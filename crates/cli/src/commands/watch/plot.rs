//! The page with plots.

use std::collections::BTreeMap;
use std::path::Path;

use counters::{Summary, ThreadSummary};
use report::{Axis, Bars, Cell, Line, Lines, Report, Table, Unit, Written, command_line_of};
use serde_json::{Value, json};
use topology::Machine;

use crate::commands::watch::moment::Moment;
use crate::program;
use crate::units::{self, plural};
use crate::version::COMMIT;

/// The most threads whose sequence of cpus is kept.
const FOLLOWED: usize = 1024;

/// The most threads whose sequence of cpus is drawn.
const DRAWN: usize = 8;

/// The most threads that are listed.
const LISTED: usize = 40;

/// The most samples that are kept: whenever there are as many, every second one is dropped.
const KEPT: usize = 20_000;

/// What is kept of the samples.
#[derive(Clone, Debug, Default)]
pub struct History {
    looks: Vec<Kept>,
    /// The number of samples between two that are kept.
    skip: usize,
    skipped: usize,
    /// By (process, thread).
    ways: BTreeMap<(u32, u32), Way>,
}

/// (Seconds, cpu) of a thread, whenever it changed.
type Way = Vec<(f64, u32)>;

/// A sample without its threads.
#[derive(Clone, Debug)]
struct Kept {
    seconds: f64,
    load: Option<f64>,
    waiting: Option<f64>,
    threads: usize,
    migrations: Option<u64>,
    minor_faults: u64,
    major_faults: u64,
    memory: BTreeMap<u32, u64>,
    running: BTreeMap<u32, usize>,
}

impl History {
    pub fn add(&mut self, moment: &Moment) {
        self.follow(moment);
        self.skipped += 1;
        if self.skipped <= self.skip {
            return;
        }
        self.skipped = 0;
        let sample = &moment.sample;
        self.looks.push(Kept {
            seconds: sample.at.as_secs_f64(),
            load: sample.load(),
            waiting: sample.waiting(),
            threads: sample.threads(),
            migrations: moment.migrations,
            minor_faults: moment.minor_faults,
            major_faults: moment.major_faults,
            memory: sample.memory(),
            running: sample.running(),
        });
        if self.looks.len() >= KEPT {
            let mut at = 0;
            self.looks.retain(|_| {
                at += 1;
                at % 2 == 0
            });
            self.skip = self.skip * 2 + 1;
        }
    }

    fn follow(&mut self, moment: &Moment) {
        let at = moment.sample.at.as_secs_f64();
        for seen in &moment.sample.processes {
            for thread in &seen.activity.threads {
                let key = (seen.activity.process, thread.thread);
                let Some(cpu) = thread.cpu else { continue };
                if !self.ways.contains_key(&key) && self.ways.len() >= FOLLOWED {
                    continue;
                }
                let way = self.ways.entry(key).or_default();
                if way.last().is_none_or(|(_, last)| *last != cpu) && way.len() < KEPT {
                    way.push((at, cpu));
                }
            }
        }
    }

    fn json(&self) -> Value {
        let look = |kept: &Kept| {
            json!({
                "seconds": kept.seconds,
                "load": kept.load,
                "waiting": kept.waiting,
                "threads": kept.threads,
                "migrations": kept.migrations,
                "minor_faults": kept.minor_faults,
                "major_faults": kept.major_faults,
                "memory": { "nodes": kept.memory.keys().collect::<Vec<_>>(), "bytes": kept.memory.values().collect::<Vec<_>>() },
                "running": { "nodes": kept.running.keys().collect::<Vec<_>>(), "threads": kept.running.values().collect::<Vec<_>>() },
            })
        };
        self.looks.iter().map(look).collect()
    }
}

/// Writes the page; `told` is the summary as JSON.
pub fn write(
    path: &Path,
    machine: Machine,
    history: &History,
    summary: &Summary,
    told: &Value,
) -> anyhow::Result<Written> {
    let load = summary.mean_load();
    let load = load.map_or("an unknown load".to_owned(), |load| {
        format!("{load:.2} cpus on average")
    });
    let migrations = summary
        .migrations
        .map_or("an unknown number of migrations".to_owned(), |count| {
            plural(count as usize, "migration")
        });
    let mut report = Report::new(
        format!("{} ({}) over time", summary.name, summary.process),
        command_line_of(program::words()),
    )
    .lead(format!(
        "{load}, {migrations}, {} of memory at last.",
        units::bytes(summary.last_memory.values().sum())
    ))
    .commit(Some(COMMIT))
    .machine(machine)
    .fact("watched", units::seconds(summary.watched.as_secs_f64()))
    .fact("looks", summary.looks.to_string())
    .fact(
        "threads",
        format!(
            "{} at most, {} started, {} ended",
            summary.most_threads, summary.threads_started, summary.threads_ended
        ),
    );
    if let Some(name) = emulator::inside() {
        report = report.emulated().fact("emulated machine", name);
    }
    report = report.section("Over time");
    for plot in over_time(history) {
        report = report.plot(plot);
    }
    report = report
        .section("By node")
        .plot(by_node(
            "Time on cpus",
            "seconds",
            Unit::Seconds,
            &summary.seconds_by_node,
        ))
        .plot(by_node(
            "Memory at last",
            "bytes",
            Unit::Bytes,
            &summary
                .last_memory
                .iter()
                .map(|(node, bytes)| (*node, *bytes as f64))
                .collect(),
        ))
        .section("Threads")
        .table(threads(summary));
    let results = json!({ "summary": told, "looks": history.json() });
    Ok(report.results(results).write(path)?)
}

fn time() -> Axis {
    Axis::new("since watching began", Unit::Seconds).from_zero()
}

fn over_time(history: &History) -> Vec<Lines> {
    let looks = &history.looks;
    let known = |of: fn(&Kept) -> Option<f64>| {
        looks
            .iter()
            .filter_map(move |kept| Some((kept.seconds, of(kept)?)))
    };
    let load = Lines::new("Load", time(), Axis::new("cpus", Unit::Plain).from_zero())
        .line(Line::new("busy", known(|kept| kept.load)))
        .line(Line::new("waiting for a cpu", known(|kept| kept.waiting)));
    let counts = Lines::new(
        "Migrations since watching began",
        time(),
        Axis::new("moves", Unit::Count).from_zero(),
    )
    .line(Line::new(
        "migrations",
        known(|kept| kept.migrations.map(|count| count as f64)),
    ));
    let faults = Lines::new(
        "Page faults since watching began",
        time(),
        Axis::new("faults", Unit::Count).from_zero(),
    )
    .line(Line::new(
        "minor",
        known(|kept| Some(kept.minor_faults as f64)),
    ))
    .line(Line::new(
        "major",
        known(|kept| Some(kept.major_faults as f64)),
    ));
    let mut memory = Lines::new(
        "Memory by node",
        time(),
        Axis::new("bytes in memory", Unit::Bytes).from_zero(),
    );
    let mut running = Lines::new(
        "Threads by the node they ran on",
        time(),
        Axis::new("threads", Unit::Plain).from_zero(),
    );
    let mut nodes: Vec<u32> = looks
        .iter()
        .flat_map(|kept| kept.memory.keys().chain(kept.running.keys()))
        .copied()
        .collect();
    nodes.sort_unstable();
    nodes.dedup();
    for node in nodes {
        let name = format!("node {node}");
        let bytes = |kept: &Kept| Some((kept.seconds, *kept.memory.get(&node)? as f64));
        memory = memory.line(Line::new(&name, looks.iter().filter_map(bytes)));
        let threads = |kept: &Kept| {
            let count = kept.running.get(&node).copied().unwrap_or(0);
            (kept.seconds, count as f64)
        };
        running = running.line(Line::new(name, looks.iter().map(threads)).steps());
    }
    let mut plots = vec![load, counts, faults, memory, running];
    plots.extend(ways(history));
    plots
}

/// Plots the cpus over time, of the threads that were on most of them.
fn ways(history: &History) -> Option<Lines> {
    let end = history.looks.last()?.seconds;
    let mut ways: Vec<(&(u32, u32), &Way)> = history.ways.iter().collect();
    ways.sort_by_key(|(_, way)| std::cmp::Reverse(way.len()));
    let mut plot = Lines::new(
        "Cpus of the threads that moved most",
        time(),
        Axis::new("cpu", Unit::Plain).from_zero(),
    );
    for ((_, thread), way) in ways.into_iter().take(DRAWN) {
        let mut points: Vec<(f64, f64)> =
            way.iter().map(|(at, cpu)| (*at, f64::from(*cpu))).collect();
        if let Some(&(_, cpu)) = points.last() {
            points.push((end, cpu));
        }
        plot = plot.line(Line::new(format!("thread {thread}"), points).steps());
    }
    Some(plot)
}

fn by_node(title: &str, axis: &str, unit: Unit, values: &BTreeMap<u32, f64>) -> Bars {
    let mut bars = Bars::new(title, axis, unit);
    for (node, value) in values {
        bars.category(format!("node {node}"), [*value]);
    }
    bars
}

/// A table of the threads with the most processor time.
fn threads(summary: &Summary) -> Table {
    let mut table = Table::new([
        "thread",
        "name",
        "time",
        "migrations",
        "nodes",
        "seen from",
        "to",
    ]);
    let mut all: Vec<(&(u32, u32), &ThreadSummary)> = summary.threads.iter().collect();
    all.sort_by(|a, b| b.1.activity.seconds.total_cmp(&a.1.activity.seconds));
    let count = all.len();
    for ((_, number), thread) in all.into_iter().take(LISTED) {
        let activity = &thread.activity;
        let nodes: Vec<String> = thread.nodes.iter().map(u32::to_string).collect();
        table.row([
            Cell::from(number.to_string()),
            Cell::from(activity.name.clone()),
            Cell::number(activity.seconds, Unit::Seconds),
            activity.migrations.map_or(Cell::from("unknown"), |count| {
                Cell::number(count as f64, Unit::Count)
            }),
            Cell::from(nodes.join(", ")),
            Cell::number(thread.first_seconds, Unit::Seconds),
            Cell::number(thread.last_seconds, Unit::Seconds),
        ]);
    }
    if count > LISTED {
        table = table.caption(format!("The {LISTED} with most time of {count} threads"));
    }
    table
}
