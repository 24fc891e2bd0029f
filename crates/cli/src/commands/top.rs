//! `atoll top`: nodes, cores, load, memory, and what governors decide.

use std::collections::BTreeMap;
use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;
use counters::{CpuLoad, Nodes, Scope, Sensor, System};
use governor_live::{Standing, Status};
use serde_json::{Value, json};
use topology::Machine;

use crate::failure::Failure;
use crate::terminal::{interrupt, out};
use crate::units;

/// Most characters of a line on a terminal.
const WIDTH: usize = 110;

/// The most decisions that are shown of each target.
const CHANGES: usize = 5;

/// `atoll top`
#[derive(Args, Debug)]
pub struct Top {
    /// Time between two looks
    #[arg(long, value_name = "TIME", value_parser = units::parse_seconds, default_value = "1s")]
    pub interval: f64,
    /// Look once, and end
    #[arg(long)]
    pub once: bool,
    /// Only governors that are recorded in this folder [default: all that this user may know of]
    #[arg(long, value_name = "FOLDER")]
    pub state: Option<PathBuf>,
    /// One JSON object, of one look
    #[arg(long)]
    pub json: bool,
}

/// Runs the command.
pub fn run(args: &Top) -> Result<(), Failure> {
    let machine = Machine::live()?;
    let mut load = CpuLoad::new(&System::real(), &Nodes::new(&machine));
    let interval = Duration::from_secs_f64(args.interval);
    let terminal = std::io::stdout().is_terminal() && !args.once;
    let mut out = out::stdout();
    let mut drawn = 0;
    loop {
        let due = Instant::now() + interval;
        while Instant::now() < due {
            if interrupt::asked() {
                interrupt::forget();
                return Ok(());
            }
            std::thread::sleep(Duration::from_millis(20).min(interval));
        }
        let loads = by_cpu(&mut load);
        let statuses = governor_live::statuses(args.state.as_deref());
        if args.json {
            writeln!(out, "{}", object(&machine, &loads, &statuses))?;
            return Ok(out.flush()?);
        }
        let lines = lines(&machine, &loads, &statuses);
        if terminal && drawn > 0 {
            write!(out, "\x1b[{drawn}A\x1b[J")?;
        }
        for line in &lines {
            let most = if terminal { WIDTH } else { usize::MAX };
            writeln!(out, "{}", plain(line).take(most).collect::<String>())?;
        }
        drawn = lines.len();
        out.flush()?;
        if args.once {
            return Ok(());
        }
    }
}

/// Replaces control characters: names of processes and states of other users' governors may hold some.
fn plain(line: &str) -> impl Iterator<Item = char> {
    let plain = |letter: char| if letter.is_control() { '?' } else { letter };
    line.chars().map(plain)
}

/// The load of each cpu, 0..=1, if known.
fn by_cpu(load: &mut CpuLoad) -> BTreeMap<u32, f64> {
    let mut loads = BTreeMap::new();
    for reading in load.read() {
        if let (Scope::Cpu(cpu), Some(value)) = (&reading.scope, reading.value.number()) {
            loads.insert(*cpu, value);
        }
    }
    loads
}

fn object(machine: &Machine, loads: &BTreeMap<u32, f64>, statuses: &[Status]) -> Value {
    let nodes: Vec<Value> = machine
        .nodes()
        .iter()
        .map(|node| {
            let cpus: Vec<Value> = cpus(node)
                .into_iter()
                .map(|cpu| json!({ "cpu": cpu, "load": loads.get(&cpu), "owners": owners(cpu, statuses) }))
                .collect();
            json!({ "node": node.os_index, "cpus": cpus })
        })
        .collect();
    json!({ "nodes": nodes, "governors": statuses })
}

fn cpus(node: &topology::Node) -> Vec<u32> {
    let cores = node.cores.iter();
    cores.flat_map(|core| core.cpus.iter().copied()).collect()
}

fn standings(statuses: &[Status]) -> impl Iterator<Item = &Standing> {
    statuses.iter().flat_map(|status| &status.targets)
}

/// The targets that have a cpu.
fn owners(cpu: u32, statuses: &[Status]) -> Vec<&str> {
    let has = |standing: &&Standing| {
        let last = standing.last.as_ref();
        last.is_some_and(|last| last.cpus.contains(&cpu))
    };
    let owners = standings(statuses).filter(has);
    owners.map(|standing| standing.target.as_str()).collect()
}

fn lines(machine: &Machine, loads: &BTreeMap<u32, f64>, statuses: &[Status]) -> Vec<String> {
    let mut lines = Vec::new();
    let all: Vec<&str> = standings(statuses).map(|s| s.target.as_str()).collect();
    for node in machine.nodes() {
        let mut line = format!("node {:<3}", node.os_index);
        for cpu in cpus(node) {
            let owner = owners(cpu, statuses).first().copied();
            let mark = owner
                .and_then(|owner| all.iter().position(|target| *target == owner))
                .map_or('.', letter);
            let load = match loads.get(&cpu) {
                Some(load) => format!("{:3.0}%", load * 100.0),
                None => "  ?".to_owned(),
            };
            line.push_str(&format!("  {cpu}:{mark}{load}"));
        }
        lines.push(line);
    }
    if statuses.is_empty() {
        lines.push("nothing is governed; atoll govern --help tells how".to_owned());
    }
    let mut at = 0;
    for status in statuses {
        for standing in &status.targets {
            lines.push(String::new());
            lines.extend(target(letter(at), status, standing));
            at += 1;
        }
    }
    lines
}

fn letter(at: usize) -> char {
    char::from(b'A' + (at % 26) as u8)
}

fn target(mark: char, status: &Status, standing: &Standing) -> Vec<String> {
    let by = if status.dry_run {
        "dry run"
    } else {
        &standing.actuator
    };
    let mut lines = vec![format!(
        "{mark} {} ({} processes), governor {}, {by}, every {}",
        standing.target,
        standing.processes,
        status.governor,
        units::seconds(status.period),
    )];
    if let Some(last) = &standing.last {
        let cores = last.cpus.len();
        lines.push(format!(
            "  {} cores ({})  {}  {}  decided in {}",
            cores,
            last.cpus(),
            last.place,
            last.path(),
            units::seconds(last.decision_seconds),
        ));
        for (name, measure) in &last.readings {
            let value = match (measure.value, &measure.unavailable) {
                (Some(bytes), _) if measure.unit == "bytes" => units::bytes(bytes as u64),
                (Some(value), _) => format!("{value:.2} {}", measure.unit),
                (None, Some(why)) => format!("unavailable: {why}"),
                (None, None) => "unavailable".to_owned(),
            };
            lines.push(format!(
                "  {name:<16} {value}  ({}, {} old)",
                measure.source,
                units::seconds(measure.age_seconds)
            ));
        }
    }
    if let Some(spent) = &standing.spent {
        lines.push(format!("  used {spent}"));
    }
    let skip = standing.changes.len().saturating_sub(CHANGES);
    for change in standing.changes.iter().skip(skip) {
        lines.push(format!("  {change}"));
    }
    lines
}
