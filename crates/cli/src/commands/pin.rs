//! `atoll pin`: threads on the cpus that a strategy gives them.

use std::io::Write;
use std::time::Instant;

use anyhow::{Context, anyhow};
use clap::{ArgGroup, Args};
use counters::{Process, System};
use placement::apply::{self, Keeper, Options};
use placement::table::{Entry, Table};
use placement::{Classes, CpuSet, Placement, Site, Strategy, Threads};
use serde_json::{Value, json};
use topology::Machine;

use crate::failure::Failure;
use crate::placed;
use crate::terminal::{interrupt, out};

/// The most placements that are listed.
const MOST_LISTED: u128 = 10_000_000;

/// `atoll pin`
#[derive(Args, Debug)]
#[command(group(ArgGroup::new("what").required(true).multiple(true).args(["dry_run", "pid", "command"])))]
pub struct Pin {
    /// os, compact, sparse, shared, random:SEED, exhaustive, or the path of a mapping (a line of cpus
    /// such as 0-3,8 per thread, or what `pin --json` and `tune --json` print)
    #[arg(long)]
    pub strategy: Strategy,
    /// Threads to be placed; more than these start over [default: the cpus there are]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Groups of threads that work on the same data, created one after the other [default: 1, for
    /// shared one for each last-level cache]
    #[arg(long, value_name = "N")]
    pub groups: Option<usize>,
    /// With --dry-run: place on this machine, a shipped name, FILE.xml, 4x4, or an hwloc
    /// synthetic description
    #[arg(long, value_name = "SPEC", default_value = "live")]
    pub machine: String,
    /// Leave so many threads, those created first, on all cpus of the placement
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: usize,
    /// Show the placement and change nothing: with a command or a process, what it would be given
    #[arg(long)]
    pub dry_run: bool,
    /// Place the threads of a running process, until it ends or Ctrl-C, which puts them back
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(i32).range(1..), conflicts_with = "command")]
    pub pid: Option<i32>,
    /// With --pid: place the threads that there are, and leave them so
    #[arg(long, requires = "pid")]
    pub once: bool,
    /// One JSON object; the command's output goes to standard error
    #[arg(long)]
    pub json: bool,
    /// What to run
    #[arg(last = true)]
    pub command: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Pin) -> Result<(), Failure> {
    let site = site(args)?;
    let threads = args.threads.unwrap_or(site.cpus());
    let threads = Threads::in_groups(threads, groups(args, &site, threads))?;
    let classes = Classes::new(&site, &threads)?;
    if args.strategy == Strategy::Exhaustive {
        return exhaustive(args, &site, &threads, &classes);
    }
    let placement = args.strategy.place(&site, &threads)?;
    if args.dry_run {
        return show(args, &site, &threads, &classes, &placement);
    }
    let mut object = object(args, &site, &threads, &classes);
    object["placements"] = placed::sets(&placement);
    match args.pid {
        Some(pid) => keep(args, pid, &placement, object),
        None => once(args, &placement, object),
    }
}

/// The cpus to place threads on: those of the machine or, if something is to run, those that this process may use.
fn site(args: &Pin) -> Result<Site, Failure> {
    let site = Site::new(&Machine::parse(&args.machine)?);
    let alone = args.pid.is_none() && args.command.is_empty();
    if args.dry_run && (alone || args.machine != "live") {
        return Ok(site);
    }
    let live = Site::new(&Machine::live()?).allowed();
    let within = Site::within(site.machine(), &live);
    Ok(within.with_context(|| format!("--machine {} is not this one", args.machine))?)
}

fn groups(args: &Pin, site: &Site, threads: usize) -> usize {
    let default = match args.strategy {
        Strategy::Shared => site.cache_sets().len().min(threads),
        _ => 1,
    };
    args.groups.unwrap_or(default)
}

/// What every form of the command reports.
fn object(args: &Pin, site: &Site, threads: &Threads, classes: &Classes) -> Value {
    json!({
        "strategy": args.strategy.to_string(),
        "placements": [],
        "classes": placed::count(classes),
        "machine": site.machine().name(),
        "threads": threads.count(),
        "groups": threads.by_group().len(),
    })
}

fn show(
    args: &Pin,
    site: &Site,
    threads: &Threads,
    classes: &Classes,
    placement: &Placement,
) -> Result<(), Failure> {
    let own = args
        .pid
        .map(|pid| threads_of(args, pid, placement))
        .transpose()?;
    let mut out = out::stdout();
    if args.json {
        let mut object = object(args, site, threads, classes);
        object["placements"] = placed::sets(placement);
        if let Some(own) = &own {
            object["would_change"] = own
                .iter()
                .map(|(thread, _, cpus)| json!({ "thread": thread, "after": cpus }))
                .collect();
        }
        writeln!(out, "{object}")?;
        return Ok(out.flush()?);
    }
    let number = match classes.count() {
        Some(count) => count.to_string(),
        None => format!("about 10^{:.0}", classes.log10()),
    };
    writeln!(
        out,
        "{} on {}: {} in {}; {}",
        args.strategy,
        site.machine().name(),
        counted(threads.count(), "thread"),
        counted(threads.by_group().len(), "group"),
        match number.as_str() {
            "1" => "all placements are alike".to_owned(),
            _ => format!("{number} placements differ"),
        },
    )?;
    for (thread, (set, node)) in placement
        .sets()
        .iter()
        .zip(placement.nodes(site))
        .enumerate()
    {
        let node = node.map_or_else(String::new, |node| format!(" on node {node}"));
        let group = threads.groups()[thread];
        let cpus = if set.len() == 1 { "cpu" } else { "cpus" };
        writeln!(out, "thread {thread} (group {group}): {cpus} {set}{node}")?;
    }
    if let (Some(own), Some(pid)) = (&own, args.pid) {
        writeln!(out, "process {pid} as it is now; nothing is changed:")?;
        for (thread, name, cpus) in own {
            writeln!(out, "  {thread} ({name}): {cpus}")?;
        }
    }
    if !args.command.is_empty() {
        writeln!(
            out,
            "nothing is run; without --dry-run it is: {}",
            args.command.join(" ")
        )?;
    }
    Ok(out.flush()?)
}

/// The threads of a process in the order of their creation, with their names and the cpus that each would get; skipped
/// threads get all cpus of the placement.
fn threads_of(
    args: &Pin,
    pid: i32,
    placement: &Placement,
) -> Result<Vec<(u32, String, CpuSet)>, Failure> {
    let process = Process::open(&System::real(), u32::try_from(pid)?)?;
    let mut threads = Vec::new();
    for number in process.threads()? {
        // A thread that ends meanwhile is not placed.
        if let Some(stat) = process.thread(number)? {
            threads.push((number, stat.name));
        }
    }
    let sets = placement.sets();
    let cpus = |at: usize| match at.checked_sub(args.skip) {
        Some(at) => sets[at % sets.len()].clone(),
        None => placement.cpus(),
    };
    let threads = threads.into_iter().enumerate();
    Ok(threads
        .map(|(at, (number, name))| (number, name, cpus(at)))
        .collect())
}

/// A count and its noun: `1 thread`, `2 threads`.
fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}

/// Runs a command with its threads placed.
fn once(args: &Pin, placement: &Placement, mut object: Value) -> Result<(), Failure> {
    let ran = placed::run(&args.command, placement, args.skip, args.json, |_| {})?;
    let (placed, most, time) = (ran.placed, ran.most, ran.time.as_secs_f64());
    eprintln!("atoll: {placed} threads placed, at most {most} alive at once, {time:.3} s");
    if placed == 0 {
        eprintln!("atoll: a process with one thread is placed after 0.2 s, and it ended before");
    }
    if ran.refused > 0 {
        eprintln!(
            "atoll: {} threads of other users were left alone",
            ran.refused
        );
    }
    if args.json {
        object["exit"] = json!(ran.status.code());
        object["seconds"] = json!(ran.time.as_secs_f64());
        object["placed"] = json!(ran.placed);
        let mut out = out::stdout();
        writeln!(out, "{object}")?;
        out.flush()?;
    }
    placed::ended_well(&args.command, &ran)
}

/// Places the threads of a running process.
fn keep(args: &Pin, pid: i32, placement: &Placement, mut object: Value) -> Result<(), Failure> {
    let options = Options {
        skip: args.skip,
        settle: std::time::Duration::ZERO,
        ..Options::default()
    };
    let begun = Instant::now();
    let mut keeper = Keeper::attach(pid, placement, options)?;
    let mut step = keeper.step()?;
    let mut placed = step.placed;
    eprintln!("atoll: {placed} threads of process {pid} placed");
    let first = keeper.changes();
    let mut restored = 0;
    if !args.once {
        eprintln!("atoll: new threads are placed too until Ctrl-C, which puts all back");
        while step.alive > 0 && !interrupt::asked() {
            std::thread::sleep(keeper.pause());
            step = keeper.step()?;
            placed += step.placed;
        }
        let undone = keeper.undo();
        restored = undone.restored;
        eprintln!("atoll: {placed} threads were placed, {restored} put back");
    }
    if args.json {
        let change = |change: &apply::Change| {
            json!({
                "process": change.process,
                "thread": change.thread,
                "before": change.before,
                "after": change.after,
            })
        };
        object["changes"] = first.iter().map(change).collect();
        object["placed"] = json!(placed);
        object["restored"] = json!(restored);
        object["seconds"] = json!(begun.elapsed().as_secs_f64());
        let mut out = out::stdout();
        writeln!(out, "{object}")?;
        out.flush()?;
    }
    Ok(())
}

/// Lists every placement that differs, or runs the command on one after the other.
fn exhaustive(
    args: &Pin,
    site: &Site,
    threads: &Threads,
    classes: &Classes,
) -> Result<(), Failure> {
    let total = classes.count().filter(|count| *count <= MOST_LISTED).with_context(|| {
        format!(
            "about 10^{:.0} placements differ, too many for exhaustive; take random:SEED or tune",
            classes.log10()
        )
    })?;
    if args.pid.is_some() {
        return Err(anyhow!(
            "exhaustive runs a command once on each of {total} placements; give -- COMMAND instead of --pid"
        )
        .into());
    }
    if args.dry_run {
        return list(args, site, threads, classes);
    }
    let mut out = out::stdout();
    let mut table = Table {
        machine: args.machine.clone(),
        threads: threads.count(),
        workload: args.command.join(" "),
        baseline: None,
        placements: Vec::new(),
    };
    let os = Strategy::Os.place(site, threads)?;
    let ran = placed::run(&args.command, &os, args.skip, true, |_| {})?;
    placed::ended_well(&args.command, &ran)?;
    table.baseline = Some(ran.time.as_secs_f64());
    for (at, placement) in classes.iter().enumerate() {
        let ran = placed::run(&args.command, &placement, args.skip, true, |_| {})?;
        placed::ended_well(&args.command, &ran)?;
        let cost = ran.time.as_secs_f64();
        eprintln!("atoll: {} of {total}: {cost:.3} s", at + 1);
        let cpus = placement.sets().iter().flat_map(CpuSet::iter).collect();
        table.placements.push(Entry { cpus, cost });
    }
    let best = table
        .placements
        .iter()
        .min_by(|a, b| a.cost.total_cmp(&b.cost));
    let best = best.context("no placement was run")?;
    if args.json {
        let mut object = object(args, site, threads, classes);
        object["placements"] = best.cpus.iter().map(|cpu| json!([cpu])).collect();
        object["seconds"] = json!(best.cost);
        object["table"] = serde_json::to_value(&table)?;
        writeln!(out, "{object}")?;
    } else {
        let cpus: Vec<String> = best.cpus.iter().map(u32::to_string).collect();
        writeln!(
            out,
            "best of {total}: {:.3} s on cpus {}; without placement {:.3} s",
            best.cost,
            cpus.join(" "),
            table.baseline.unwrap_or_default()
        )?;
    }
    Ok(out.flush()?)
}

/// Lists all placements that differ: a line of cpus for each, or all in one object.
fn list(args: &Pin, site: &Site, threads: &Threads, classes: &Classes) -> Result<(), Failure> {
    let mut out = out::stdout();
    let object = object(args, site, threads, classes).to_string();
    if args.json {
        // The members so far, then the list, which is written piece by piece as it may be long.
        write!(out, "{},\"all\":[", object.trim_end_matches('}'))?;
    }
    let mut comma = "";
    for placement in classes.iter() {
        let cpus: Vec<String> = placement.sets().iter().map(CpuSet::to_string).collect();
        if args.json {
            write!(out, "{comma}[{}]", cpus.join(","))?;
        } else {
            writeln!(out, "{}", cpus.join(" "))?;
        }
        comma = ",";
    }
    if args.json {
        writeln!(out, "]}}")?;
    }
    Ok(out.flush()?)
}
