//! `atoll tune`: a placement near the best, in few runs of a command, and whether it is better than none.

use std::io::Write;

use anyhow::anyhow;
use clap::Args;
use counters::{CoreEvents, Powercap, Process, Scope, Sensor, System, Value as Counted};
use placement::cost;
use placement::search::tuner::{self, Role, Tuner, Verdict};
use placement::search::{Metric, Options, Quantity, Reading, Search, Stop};
use placement::{Placement, Site, Strategy, Threads};
use serde_json::{Value, json};
use topology::Machine;

use crate::failure::Failure;
use crate::placed;
use crate::terminal::out;

/// `atoll tune`
#[derive(Args, Debug)]
#[command(after_help = EXAMPLE)]
pub struct Tune {
    /// What is to be small: time, remote, energy (estimated where the machine does not count it), or weights such as
    /// time=0.7,energy=0.3
    #[arg(long, default_value = "time")]
    pub metric: Metric,
    /// The most placements that are tried; every fourth is followed by a run without placement
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=10_000))]
    pub runs: usize,
    /// Pairs of runs, without placement and with the best one, that decide at the end whether it is
    /// recommended; fewer where they soon say no
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(tuner::LEAST_PAIRS as u64..=1000))]
    pub pairs: usize,
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

const EXAMPLE: &str = "\
The command is run once to warm up, then without placement and on placements that a search asks for, then in
pairs: without placement, and on the best one. It is recommended only if nearly all pairs say that it is better.

Example: find a placement for the four threads of a program, and use it
    atoll tune --threads 4 --json -- ./scan > scan.json
    atoll pin --strategy ./scan.json --threads 4 -- ./scan";

/// What is said where energy is not measured.
const ESTIMATED: &str = "this machine does not count joules: they are estimated from the processor time of the command, by the watts of cores and \
                         memory of the machine's model";

/// Runs the command.
pub fn run(args: &Tune) -> Result<(), Failure> {
    let site = Site::new(&Machine::live()?);
    let threads = Threads::in_groups(args.threads.unwrap_or(site.cores()), args.groups)?;
    let options = Options {
        runs: args.runs,
        seed: args.seed,
        ..Options::default()
    };
    let search = Search::new(&site, &threads, options)?;
    let none = Strategy::Os.place(&site, &threads)?;
    let mut tuner = Tuner::new(search, args.metric.clone(), none.clone(), args.pairs);
    let (mut history, mut estimated) = (Vec::new(), false);
    while let Some((placement, role)) = tuner.ask() {
        let (mut reading, mut missing, busy) = measure(args, &placement)?;
        if missing
            .iter()
            .any(|(quantity, _)| *quantity == Quantity::Energy)
        {
            missing.retain(|(quantity, _)| *quantity != Quantity::Energy);
            let seconds = reading.time.unwrap_or_default();
            reading.energy = Some(cost::estimate(site.machine(), seconds, busy));
            if !std::mem::replace(&mut estimated, true) {
                eprintln!("atoll: {ESTIMATED}");
            }
        }
        check(&args.metric, &reading, &missing)?;
        let cost = tuner.tell(&reading)?;
        progress(args, &tuner, role, &reading, cost);
        history.push(json!({
            "role": name(role),
            "placements": placed::sets(&placement),
            "cost": cost,
            "seconds": reading.time,
            "remote": reading.remote,
            "joules": reading.energy,
        }));
    }
    let mut out = out::stdout();
    if args.json {
        let mut object = object(args, &site, &tuner, &none, history);
        object["energy_estimated"] = estimated.into();
        writeln!(out, "{object}")?;
    } else {
        write!(out, "{}", text(&tuner))?;
    }
    Ok(out.flush()?)
}

/// The purpose of a run, as the file of raw numbers has it. The ratio of a pair is given at its second run.
fn name(role: Role) -> &'static str {
    match role {
        Role::WarmUp => "warm-up",
        Role::Baseline => "baseline",
        Role::Candidate => "candidate",
        Role::PairBaseline(_) => "pair-baseline",
        Role::PairCandidate(_) => "pair-candidate",
    }
}

fn progress(args: &Tune, tuner: &Tuner, role: Role, reading: &Reading, cost: Option<f64>) {
    let seconds = reading.time.unwrap_or(f64::NAN);
    match (role, cost) {
        (Role::WarmUp, _) => eprintln!("atoll: warm-up: {seconds:.3} s, not counted"),
        (Role::Baseline, None) => eprintln!("atoll: without placement: {seconds:.3} s"),
        (Role::Baseline, Some(cost)) => {
            eprintln!(
                "atoll: without placement: {seconds:.3} s, {cost:.3} times the runs like it before"
            );
        }
        (Role::Candidate, Some(cost)) => {
            let best = tuner.search().best().map_or(f64::NAN, |(_, best)| best);
            eprintln!(
                "atoll: placement {} of at most {}: {cost:.3} times the cost without; best {best:.3}, if it is not luck",
                tuner.search().runs(),
                args.runs
            );
        }
        (Role::PairBaseline(pair) | Role::PairCandidate(pair), Some(cost)) => {
            eprintln!("atoll: pair {}: {cost:.3} times the cost without", pair + 1);
        }
        _ => {}
    }
}

/// Why the search has ended.
fn stopped(search: &Search) -> String {
    match search.stopped() {
        Some(Stop::Gain { expected, noise }) => format!(
            "another run was expected to gain {:.2} %, readings vary by {:.2} %",
            expected * 100.0,
            noise * 100.0
        ),
        Some(Stop::All) => "every placement that differs was run".to_owned(),
        _ => "the runs are used up".to_owned(),
    }
}

/// The result as text.
fn text(tuner: &Tuner) -> String {
    let (search, pairs) = (tuner.search(), tuner.pairs());
    let mut text = format!("{} placements tried ({}); ", search.runs(), stopped(search));
    if let Some((least, most)) = tuner.spread() {
        text += &format!(
            "{} runs without any were {least:.3} to {most:.3} times their median\n",
            tuner.baselines().len()
        );
    }
    let (least, most) = pairs.range();
    text += &format!(
        "in {} of {} pairs the best one has less {}: {:.3} times in the median, {least:.3} to {most:.3}\n",
        pairs.better(),
        pairs.ratios().len(),
        tuner.metric(),
        pairs.median(),
    );
    match (tuner.verdict(), search.best()) {
        (Verdict::Better, Some((best, _))) => {
            for (thread, set) in best.sets().iter().enumerate() {
                text += &format!("thread {thread}: cpu {set}\n");
            }
        }
        _ => {
            text +=
                "no placement is shown to be better than none: leave the threads to the system\n";
        }
    }
    text
}

/// The result as JSON. `placements` holds the recommended placement, in the form that `atoll pin` reads.
fn object(args: &Tune, site: &Site, tuner: &Tuner, none: &Placement, history: Vec<Value>) -> Value {
    let (search, pairs) = (tuner.search(), tuner.pairs());
    let recommended = tuner.verdict() == Verdict::Better;
    let best = search.best();
    let candidate = best.as_ref().map(|(best, cost)| {
        let (least, most) = pairs.range();
        json!({
            "placements": placed::sets(best),
            "cost_in_search": cost,
            "pairs": pairs.ratios(),
            "better": pairs.better(),
            "median": pairs.median(),
            "least": least,
            "greatest": most,
        })
    });
    let placement = match (&best, recommended) {
        (Some((best, _)), true) => best,
        _ => none,
    };
    let base = tuner::middle(tuner.baselines()).unwrap_or_default();
    let (least, most) = tuner.spread().unzip();
    json!({
        "strategy": if recommended { "tuned" } else { "os" },
        "recommended": recommended,
        "placements": placed::sets(placement),
        "candidate": candidate,
        "classes": placed::count(search.classes()),
        "machine": site.machine().name(),
        "threads": placement.threads(),
        "metric": args.metric.to_string(),
        "runs": search.runs(),
        "stopped": stopped(search),
        "baseline": {
            "runs": tuner.baselines().len(),
            "seconds": base.time,
            "remote": base.remote,
            "joules": base.energy,
            "least": least,
            "greatest": most,
        },
        "history": history,
    })
}

/// Quantities without a value, each with the reason.
type Missing = Vec<(Quantity, String)>;

/// Runs the command once; returns its reading, the quantities that could not be read, and seconds of processor time.
fn measure(args: &Tune, placement: &Placement) -> Result<(Reading, Missing, f64), Failure> {
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
    let ran = placed::run(&args.command, placement, args.skip, true, begun)?;
    placed::ended_well(&args.command, &ran)?;
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
        // A zone includes its subzones, and the platform zone includes all.
        let counts = |read: &counters::Reading| match &read.scope {
            Scope::Part(zone) => !zone.contains('/') && zone != "psys",
            _ => true,
        };
        reading.energy = sum(Quantity::Energy, sensor, counts, &mut missing);
    }
    Ok((reading, missing, ran.cpu.as_secs_f64()))
}

/// The sum of a sensor's readings that `count` selects; `None` if one is not available, with the reason in `missing`.
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

/// Fails if a quantity of the metric cannot be measured here, and says why.
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
