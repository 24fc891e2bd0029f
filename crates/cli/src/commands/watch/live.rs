//! What is shown while watching, and the summary in the end.

use std::collections::BTreeMap;
use std::io::Write;

use counters::{Summary, ThreadActivity};

use crate::commands::watch::moment::{End, Moment};
use crate::failure::Failure;
use crate::units::{self, plural};

/// The most threads that are shown on a terminal.
const THREADS: usize = 8;

/// Characters of a bar.
const BAR: usize = 30;

/// The most characters of a line that is redrawn: longer ones could wrap.
const WIDTH: usize = 79;

/// Shows samples: each on a line of its own, or on a terminal all in the same place.
pub struct Screen {
    terminal: bool,
    /// The number of lines that the next sample replaces.
    drawn: usize,
}

impl Screen {
    /// A screen that is redrawn in place on a `terminal`, and grows line by line elsewhere.
    pub fn new(terminal: bool) -> Screen {
        Screen { terminal, drawn: 0 }
    }

    /// Shows a sample; `last` is the one before it.
    pub fn show(
        &mut self,
        out: &mut impl Write,
        last: Option<&Moment>,
        moment: &Moment,
    ) -> Result<(), Failure> {
        let first = line(last, moment);
        if !self.terminal {
            writeln!(out, "{first}")?;
            for event in events(last, moment) {
                writeln!(out, "{event}")?;
            }
            return Ok(());
        }
        // Moves up to where the last sample begins, and clears everything from there on.
        if self.drawn > 0 {
            write!(out, "\x1b[{}A\x1b[J", self.drawn)?;
        }
        // Events are not redrawn.
        for event in events(last, moment) {
            writeln!(out, "{}", cut(&event))?;
        }
        let mut lines = vec![first];
        lines.extend(nodes(moment));
        lines.extend(threads(moment));
        for line in &lines {
            writeln!(out, "{}", cut(line))?;
        }
        self.drawn = lines.len();
        Ok(())
    }
}

fn cut(line: &str) -> String {
    line.chars().take(WIDTH).collect()
}

/// A sample in one line.
fn line(last: Option<&Moment>, moment: &Moment) -> String {
    let sample = &moment.sample;
    let number = |of: Option<f64>| of.map_or("?".to_owned(), |of| format!("{of:.2}"));
    let more = |now: Option<u64>, before: Option<Option<u64>>| match (now, before) {
        (Some(now), None) => format!("+{now}"),
        (Some(now), Some(before)) => format!("+{}", now.saturating_sub(before.unwrap_or(0))),
        (None, _) => "?".to_owned(),
    };
    format!(
        "{:6.1} s  load {}  waiting {}  threads {}  moved {}  faults {}/{}  {}",
        sample.at.as_secs_f64(),
        number(sample.load()),
        number(sample.waiting()),
        sample.threads(),
        more(moment.migrations, last.map(|last| last.migrations)),
        more(
            Some(moment.minor_faults),
            last.map(|last| Some(last.minor_faults))
        ),
        more(
            Some(moment.major_faults),
            last.map(|last| Some(last.major_faults))
        ),
        memory(moment),
    )
}

/// `1.20 GiB (0: 60 %, 1: 40 %)`
fn memory(moment: &Moment) -> String {
    let by_node = moment.sample.memory();
    let total: u64 = by_node.values().sum();
    if total == 0 {
        let why = moment
            .sample
            .processes
            .iter()
            .find_map(|seen| seen.memory.as_ref().err());
        return why.map_or("memory ?".to_owned(), |why| format!("memory ? ({why})"));
    }
    let shares: Vec<String> = by_node
        .iter()
        .map(|(node, bytes)| format!("{node}: {:.0} %", 100.0 * *bytes as f64 / total as f64))
        .collect();
    match shares.len() {
        1 => units::bytes(total),
        _ => format!("{} ({})", units::bytes(total), shares.join(", ")),
    }
}

/// Lines about processes that started or ended since the last sample.
fn events(last: Option<&Moment>, moment: &Moment) -> Vec<String> {
    let sample = &moment.sample;
    let known = last.map_or(&[][..], |last| &last.sample.unfollowed);
    let unfollowed: Vec<u32> = sample
        .unfollowed
        .iter()
        .filter(|pid| !known.contains(pid))
        .copied()
        .collect();
    let at = sample.at.as_secs_f64();
    let told = |pids: &[u32], what: &str| {
        let some: Vec<String> = pids.iter().take(5).map(u32::to_string).collect();
        let more = if pids.len() > 5 { ", ..." } else { "" };
        (!pids.is_empty()).then(|| format!("{at:6.1} s  {what}: {}{more}", some.join(", ")))
    };
    [
        told(&sample.started, "processes started"),
        told(&sample.ended, "processes ended"),
        told(
            &unfollowed,
            "children, not followed (--children follows them)",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A line for each node: memory, and the threads that ran there.
fn nodes(moment: &Moment) -> Vec<String> {
    let memory = moment.sample.memory();
    let running = moment.sample.running();
    let total: u64 = memory.values().sum();
    let mut all: Vec<u32> = memory.keys().chain(running.keys()).copied().collect();
    all.sort_unstable();
    all.dedup();
    let line = |node: &u32| {
        let bytes = memory.get(node).copied().unwrap_or(0);
        let length = (u128::from(bytes) * BAR as u128).div_ceil(u128::from(total.max(1)));
        format!(
            "  node {node:<3} {:<BAR$} {:>9}  {} ran",
            "█".repeat(length as usize),
            units::bytes(bytes),
            plural(running.get(node).copied().unwrap_or(0), "thread"),
        )
    };
    all.iter().map(line).collect()
}

/// A line for each thread, the busiest first.
fn threads(moment: &Moment) -> Vec<String> {
    let seen = moment.sample.processes.iter();
    let mut all: Vec<&ThreadActivity> = seen.flat_map(|seen| &seen.activity.threads).collect();
    let load = |thread: &ThreadActivity| thread.load.unwrap_or(0.0);
    all.sort_by(|a, b| load(b).total_cmp(&load(a)));
    let line = |thread: &&ThreadActivity| {
        let place = |of: Option<u32>| of.map_or("?".to_owned(), |of| of.to_string());
        format!(
            "  {:>9} {:<16} {:>4.0} %  cpu {:<4} node {:<3} moved {}",
            thread.thread,
            thread.name.escape_debug().to_string(),
            100.0 * load(thread),
            place(thread.cpu),
            place(thread.node),
            thread.migrations.map_or("?".to_owned(), units::count),
        )
    };
    let mut lines: Vec<String> = all.iter().take(THREADS).map(line).collect();
    if all.len() > THREADS {
        lines.push(format!(
            "  and {} more",
            plural(all.len() - THREADS, "thread")
        ));
    }
    lines
}

/// Writes the summary.
pub fn summary(out: &mut impl Write, summary: &Summary, end: End) -> Result<(), Failure> {
    let why = match end {
        End::Ended => "the process ended",
        End::Time => "the time was over",
        End::Interrupted => "interrupted",
    };
    writeln!(
        out,
        "{} ({}) watched for {}, {}: {why}",
        summary.name,
        summary.process,
        units::seconds(summary.watched.as_secs_f64()),
        plural(summary.looks as usize, "look"),
    )?;
    let Some(load) = summary.mean_load() else {
        return Ok(());
    };
    for (name, value) in figures(summary, load) {
        writeln!(out, "  {name:<11} {value}")?;
    }
    if summary.processes > 1 {
        writeln!(
            out,
            "  {:<11} {}, {} ended",
            "processes",
            units::count(summary.processes),
            units::count(summary.processes_ended)
        )?;
    }
    Ok(())
}

/// The figures of the summary, by name.
fn figures(summary: &Summary, load: f64) -> [(&'static str, String); 7] {
    let count = |of: Option<u64>| of.map_or("unknown".to_owned(), units::count);
    [
        (
            "load",
            format!(
                "{load:.2} cpus on average, {:.2} at most",
                summary.most_load
            ),
        ),
        (
            "threads",
            format!(
                "{} at most, {} started, {} ended",
                summary.most_threads,
                units::count(summary.threads_started),
                units::count(summary.threads_ended)
            ),
        ),
        (
            "migrations",
            format!("{}{}", count(summary.migrations), movers(summary)),
        ),
        ("switches", count(summary.switches)),
        (
            "faults",
            format!(
                "{} minor, {} major",
                units::count(summary.minor_faults),
                units::count(summary.major_faults)
            ),
        ),
        ("cpu time", times(&summary.seconds_by_node)),
        (
            "memory",
            format!(
                "{} at first, {} at last",
                places(&summary.first_memory),
                places(&summary.last_memory)
            ),
        ),
    ]
}

/// The threads that moved most.
fn movers(summary: &Summary) -> String {
    let mut all: Vec<(u64, &ThreadActivity)> = summary
        .threads
        .values()
        .filter_map(|thread| Some((thread.activity.migrations?, &thread.activity)))
        .filter(|(count, _)| *count > 0)
        .collect();
    all.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    if all.is_empty() {
        return String::new();
    }
    let told: Vec<String> = all
        .iter()
        .take(3)
        .map(|(count, thread)| {
            let name = thread.name.escape_debug();
            format!("{name} ({}) {}", thread.thread, units::count(*count))
        })
        .collect();
    let more = if all.len() > 3 { ", ..." } else { "" };
    format!(", most: {}{more}", told.join(", "))
}

fn times(by_node: &BTreeMap<u32, f64>) -> String {
    let told: Vec<String> = by_node
        .iter()
        .map(|(node, seconds)| format!("{} on node {node}", units::seconds(*seconds)))
        .collect();
    if told.is_empty() {
        "unknown".to_owned()
    } else {
        told.join(", ")
    }
}

fn places(by_node: &BTreeMap<u32, u64>) -> String {
    let told: Vec<String> = by_node
        .iter()
        .map(|(node, bytes)| format!("{} on node {node}", units::bytes(*bytes)))
        .collect();
    if told.is_empty() {
        "unknown".to_owned()
    } else {
        told.join(" and ")
    }
}
