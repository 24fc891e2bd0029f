//! `atoll tune`: a placement near the best, in few runs of a command.

use std::io::Write;

use anyhow::{Context, anyhow};
use atoll::Machine;
use clap::Args;
use counters::{CoreEvents, Powercap, Process, Scope, Sensor, System, Value as Counted};
use placement::search::{Metric, Options, Quantity, Reading, Search, Stop};
use placement::{Placement, Site, Strategy, Threads};
use serde_json::{Value, json};

use crate::{Failure, out, pin};

/// `atoll tune`
#[derive(Args, Debug)]
pub struct Tune {
    /// What is to be small: time, remote, energy, or weights such as time=0.7,energy=0.3
    #[arg(long, default_value = "time")]
    pub metric: Metric,
    /// The most runs of the command, beside one without placement
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    pub runs: usize,
    /// Threads to be placed; more than these start over [default: the cores there are]
    #[arg(long, value_name = "N")]
    pub threads: Option<usize>,
    /// Groups of threads that work on the same data, created one after the other
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub groups: usize,
    /// Leave so many threads, those created first, on all cpus of the placement
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub skip: usize,
    /// Of the search
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// One JSON object instead of text
    #[arg(long)]
    pub json: bool,
    /// What to run; its output goes to standard error
    #[arg(last = true, required = true)]
    pub command: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Tune) -> Result<(), Failure> {
    let site = Site::new(&Machine::live()?);
    let threads = Threads::in_groups(args.threads.unwrap_or(site.cores()), args.groups)?;
    let options = Options {
        runs: args.runs,
        seed: args.seed,
        ..Options::default()
    };
    let mut search = Search::new(&site, &threads, options)?;
    let os = Strategy::Os.place(&site, &threads)?;
    let (base, why) = measure(args, &os)?;
    check(&args.metric, &base, &why)?;
    let mut history = Vec::new();
    while let Some(placement) = search.ask() {
        let (reading, _) = measure(args, &placement)?;
        let cost = args.metric.cost(&reading, &base)?;
        search.tell(&placement, cost)?;
        let (_, best) = search.best().context("a search that was told something")?;
        eprintln!(
            "atoll: run {} of at most {}: {:.3} times the cost without placement; best {best:.3}",
            search.runs(),
            args.runs,
            cost
        );
        history.push(json!({
            "placements": pin::sets(&placement),
            "cost": cost,
            "seconds": reading.time,
            "remote": reading.remote,
            "joules": reading.energy,
        }));
    }
    let (best, cost) = search.best().context("the command was never run")?;
    report(args, &site, &search, &best, cost, &base, history)
}

fn report(
    args: &Tune,
    site: &Site,
    search: &Search,
    best: &Placement,
    cost: f64,
    base: &Reading,
    history: Vec<Value>,
) -> Result<(), Failure> {
    let stopped = match search.stopped() {
        Some(Stop::Gain { expected, noise }) => format!(
            "another run is expected to gain {:.2} %, readings vary by {:.2} %",
            expected * 100.0,
            noise * 100.0
        ),
        Some(Stop::All) => "every placement that differs was run".to_owned(),
        _ => "the runs are used up".to_owned(),
    };
    let mut out = out::stdout();
    if args.json {
        let object = json!({
            "strategy": "tuned",
            "placements": pin::sets(best),
            "classes": pin::count(search.classes()),
            "machine": site.machine().name(),
            "threads": best.threads(),
            "metric": args.metric.to_string(),
            "cost": cost,
            "runs": search.runs(),
            "stopped": stopped,
            "baseline": { "seconds": base.time, "remote": base.remote, "joules": base.energy },
            "history": history,
        });
        writeln!(out, "{object}")?;
    } else {
        writeln!(
            out,
            "after {} runs ({stopped}): {} is {cost:.3} times what it is without placement",
            search.runs(),
            args.metric
        )?;
        for (thread, set) in best.sets().iter().enumerate() {
            writeln!(out, "thread {thread}: cpu {set}")?;
        }
        if cost >= 1.0 {
            writeln!(
                out,
                "no placement is better than none: leave the threads to the system"
            )?;
        }
    }
    Ok(out.flush()?)
}

/// Why a quantity has no value, by quantity.
type Missing = Vec<(Quantity, String)>;

/// One run, and what could be read of it.
fn measure(args: &Tune, placement: &Placement) -> Result<(Reading, Missing), Failure> {
    let system = System::real();
    let wanted: Vec<Quantity> = args.metric.quantities().collect();
    let mut energy = wanted
        .contains(&Quantity::Energy)
        .then(|| Powercap::new(&system));
    let mut remote = None;
    let begun = |pid: u32| {
        if wanted.contains(&Quantity::Remote) {
            let process = Process::open(&system, pid);
            remote = process
                .and_then(|process| CoreEvents::new(&system, &process, &[]))
                .ok();
        }
    };
    let ran = pin::run_on(&args.command, placement, args.skip, true, begun)?;
    pin::ended_well(&args.command, &ran)?;
    let mut missing = Missing::new();
    let mut reading = Reading {
        time: Some(ran.time.as_secs_f64()),
        ..Reading::default()
    };
    if wanted.contains(&Quantity::Remote) {
        let sensor = remote.as_mut().map(|sensor| sensor as &mut dyn Sensor);
        let counts = |read: &counters::Reading| read.name == "node.load_misses";
        reading.remote = sum(Quantity::Remote, sensor, counts, &mut missing);
    }
    if wanted.contains(&Quantity::Energy) {
        let sensor = energy.as_mut().map(|sensor| sensor as &mut dyn Sensor);
        // Parts of a zone are in the zone already, and the platform holds all.
        let counts = |read: &counters::Reading| match &read.scope {
            Scope::Part(zone) => !zone.contains('/') && zone != "psys",
            _ => true,
        };
        reading.energy = sum(Quantity::Energy, sensor, counts, &mut missing);
    }
    Ok((reading, missing))
}

/// The sum of those of a sensor's readings that count; `None`, and why, where one is not there.
fn sum(
    quantity: Quantity,
    sensor: Option<&mut dyn Sensor>,
    counts: impl Fn(&counters::Reading) -> bool,
    missing: &mut Missing,
) -> Option<f64> {
    let readings = sensor.map(Sensor::read).unwrap_or_default();
    let mut sum = None;
    for reading in readings.iter().filter(|reading| counts(reading)) {
        match &reading.value {
            Counted::Unavailable(reason) => {
                missing.push((quantity, reason.text.clone()));
                return None;
            }
            value => *sum.get_or_insert(0.0) += value.number().unwrap_or_default(),
        }
    }
    if sum.is_none() {
        missing.push((quantity, "this machine has no counter for it".to_owned()));
    }
    sum
}

/// An error that says why a quantity of the metric cannot be measured here.
fn check(metric: &Metric, base: &Reading, missing: &Missing) -> Result<(), Failure> {
    match (metric.cost(base, base), missing.first()) {
        (Err(error), Some((quantity, why))) => Err(anyhow!(
            "{error}; {} is unavailable here ({why}): choose --metric time, or run on hardware that has it",
            quantity.name()
        )
        .into()),
        (Err(error), None) => Err(error.into()),
        (Ok(_), _) => Ok(()),
    }
}
