//! The model of a machine's time (`placement::cost`), held against bare loops on the machine at hand, and the facts that it has of the
//! texts' machines (rows T8 to T11, E12).

mod loops;

use std::sync::atomic::Ordering;

use clap::Args;
use placement::cost::{Cost, Model as Machinery, Work};
use report::{Cell, Report, Sample, Table, Unit};
use serde::Serialize;
use serde_json::json;
use topology::{Machine, Rates, SHIPPED};

use self::loops::{Loops, cycles};
use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::options::folder_is_there;

/// Bytes that a thread reads: several times what caches hold.
const BYTES: usize = 256 << 20;
const QUICK: usize = 32 << 20;
/// Steps of the loop that tells the clock.
const HIDING: u32 = 16;
/// The most threads.
const THREADS: usize = 64;

/// `model`
#[derive(Args, Clone, Debug)]
pub struct Model {
    /// Threads [default: the cpus of this machine, at most 64]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub threads: Option<u16>,
    /// Runs of each loop [default: 7, with --quick 2]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub runs: Option<u64>,
    /// Less data and fewer runs: says whether it works, not how much
    #[arg(long)]
    pub quick: bool,
    /// Write the report to this file; the raw numbers go beside it, ending in .json
    #[arg(long, value_name = "FILE.html", default_value = "lab-model.html")]
    pub report: std::path::PathBuf,
    /// One JSON object instead of tables
    #[arg(long)]
    pub json: bool,
}

/// A loop, as the model has it and as it was.
#[derive(Debug, Serialize)]
struct Held {
    what: String,
    model: Cost,
    measured: Sample,
}

impl Held {
    fn ratio(&self) -> f64 {
        self.model.seconds / self.measured.median()
    }
}

impl Model {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        folder_is_there(&self.report)?;
        let machine = Machine::live()?;
        let threads = self
            .threads
            .map_or(machine.cpus().min(THREADS), usize::from);
        let runs = self.runs.unwrap_or(if self.quick { 2 } else { 7 }) as usize;
        let bytes = if self.quick { QUICK } else { BYTES };
        step(
            desk,
            &format!(
                "{} of words for each of {threads} threads",
                Unit::Bytes.show(bytes as f64)
            ),
        )?;
        let stop = desk.stop;
        let loops = Loops::new(threads, bytes, stop)?;
        let (tell, held) = all(threads);
        let mut times = vec![Sample::default(); tell.len() + held.len()];
        // All in turn, as the speed of a machine drifts. The first round fills caches and raises the clock.
        for round in 0..=runs {
            step(desk, &format!("round {round} of {runs}"))?;
            for (own, times) in tell.iter().chain(&held).zip(&mut times) {
                let time = own.run(&loops);
                if stop.load(Ordering::Relaxed) {
                    return Err(Error::Interrupted);
                }
                if round > 0 {
                    times.push(time);
                }
            }
        }
        let rates = rates(&times, loops.bytes(), threads, machine.nodes().len());
        let machine = machine.with_rates(rates);
        let model = Machinery::new(&machine);
        let held = held.iter().zip(times.split_off(tell.len()));
        let held = held.map(|(own, measured)| Held {
            what: own.what(),
            model: own.cost(&model, loops.bytes()),
            measured,
        });
        let held: Vec<Held> = held.collect();
        let tables = [facts(&machine), compared(&held)];
        let ratios: Vec<f64> = held.iter().map(Held::ratio).collect();
        let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
        let most = ratios.iter().copied().fold(0.0, f64::max);
        let report = Report::new("The model of time and energy", &desk.command)
            .lead("What the model of a machine's time says of bare loops, beside what they take here, and the facts that it has of the machines of the texts.")
            .machine(machine.clone())
            .fact("Loops", format!("{} of 64-bit words for each of {threads} threads; {runs} rounds in which all take turns, after one that does not count", Unit::Bytes.show(bytes as f64)))
            .section("Held against bare loops")
            .text(format!("Latency, the bandwidth of one thread and of all, the rate of caches and the clock are measured by loops of their own; the loops below are then computed. The model is between {} and {} of what they take.", Unit::Share.show(least), Unit::Share.show(most)))
            .table(tables[1].clone())
            .section("Facts")
            .text("Latencies, lines in flight and idle power of the texts' machines are assumptions, all else is of the texts and of makers' data; the files in crates/topology/machines say which. This machine's power is that of a typical server.")
            .table(tables[0].clone())
            .results(json!({ "rates": rates, "held": held }));
        desk.finish(&self.report, self.json, report, &[&tables[1], &tables[0]])
    }
}

/// Tells of a step, and ends where the user has asked for it.
fn step(desk: &mut Desk<'_>, text: &str) -> Result<()> {
    if desk.stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    desk.progress(text);
    Ok(())
}

/// What a loop does.
#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// Visits lines in no order.
    Latency,
    /// Reads out of the cache.
    Cached,
    /// Reads parts of the words of each thread.
    Memory(Vec<f64>),
}

/// A loop with so many steps of computing for each word.
struct Loop {
    kind: Kind,
    steps: u32,
}

impl Loop {
    fn run(&self, loops: &Loops<'_>) -> f64 {
        match &self.kind {
            Kind::Latency => loops.latency(),
            Kind::Cached => loops.cached(self.steps),
            Kind::Memory(parts) => loops.memory(parts, self.steps),
        }
    }

    fn what(&self) -> String {
        let steps = self.steps;
        match &self.kind {
            Kind::Latency => "lines in no order".to_owned(),
            Kind::Cached => format!("one thread, from its cache, {steps} steps a word"),
            Kind::Memory(parts) if parts.len() == 1 => {
                format!("one thread, from memory, {steps} steps a word")
            }
            Kind::Memory(parts) => {
                let is_even = parts.iter().all(|part| *part == parts[0]);
                let how = if is_even {
                    "the same of each"
                } else {
                    "four times as much of one"
                };
                format!(
                    "{} threads, from memory, {how}, {steps} steps a word",
                    parts.len()
                )
            }
        }
    }

    /// What the model makes of it.
    fn cost(&self, model: &Machinery, bytes: f64) -> Cost {
        let cycles = cycles(self.steps) / 8.0;
        let works: Vec<Work> = match &self.kind {
            Kind::Latency => vec![],
            Kind::Cached => vec![Work::new(0).cached(bytes).cycles(cycles * bytes)],
            Kind::Memory(parts) => {
                let own = parts.iter().map(|part| part * bytes);
                own.map(|own| Work::new(0).memory(0, own).cycles(cycles * own))
                    .collect()
            }
        };
        model.cost(&works)
    }
}

/// The loops that tell rates, and those that the model is held against.
fn all(threads: usize) -> (Vec<Loop>, Vec<Loop>) {
    let one = || Kind::Memory(vec![1.0]);
    let with = |kind: Kind, steps: u32| Loop { kind, steps };
    let tell = vec![
        with(Kind::Latency, 0),
        with(one(), 0),
        with(Kind::Memory(vec![1.0; threads]), 0),
        with(Kind::Cached, 0),
        // So many steps hide what reading takes.
        with(Kind::Cached, HIDING),
    ];
    let mut held = Vec::new();
    for steps in [1, 2, 4, 8] {
        held.extend([with(one(), steps), with(Kind::Cached, steps)]);
    }
    if threads > 1 {
        let mut uneven = vec![0.25; threads];
        uneven[0] = 1.0;
        for steps in [0, 2] {
            held.push(with(Kind::Memory(uneven.clone()), steps));
        }
        held.push(with(Kind::Memory(vec![1.0; threads]), 2));
    }
    (tell, held)
}

/// The rates that the loops tell; of what they do not, those of a typical machine.
fn rates(times: &[Sample], bytes: f64, threads: usize, nodes: usize) -> Rates {
    let whole = |value: f64| (value.round() as u32).max(1);
    let median = |at: usize| times[at].median();
    let (latency, one) = (median(0), bytes / median(1));
    let together = threads as f64 * bytes / median(2);
    Rates {
        clock_mhz: whole(bytes / 8.0 * cycles(HIDING) / median(4) / 1e6),
        latency_ns: whole(latency * 1e9),
        lines: whole(one * latency / 64.0),
        cache_mb: whole(bytes / median(3) / 1e6),
        memory_mb: whole(together.max(one) / nodes as f64 / 1e6),
        ..Rates::TYPICAL
    }
}

fn compared(all: &[Held]) -> Table {
    let mut table = Table::new(["loop", "model", "measured", "least", "most", "model / measured"])
        .caption("Times of the slowest thread, medians. Where threads share a core, what they compute takes longer than by the model, which gives each its own.");
    for held in all {
        let (least, most) = held.measured.range();
        table.row([
            Cell::from(held.what.as_str()),
            Cell::number(held.model.seconds, Unit::Seconds),
            Cell::number(held.measured.median(), Unit::Seconds),
            Cell::number(least, Unit::Seconds),
            Cell::number(most, Unit::Seconds),
            Cell::number(held.ratio(), Unit::Ratio),
        ]);
    }
    table
}

/// The facts of the machines of the texts, and of this one.
fn facts(here: &Machine) -> Table {
    let mut table = Table::new(["machine", "factor", "latency", "in flight", "memory", "link", "clock", "core", "pJ a bit"])
        .caption("Factor: how many times as long the nearest other node's memory takes to answer. In flight: lines that a core waits for. Memory: bytes a second of a node. Core: watts, working and idle. pJ a bit: of memory and of a link.");
    let shipped = SHIPPED.iter().filter_map(|name| Machine::parse(name).ok());
    for machine in shipped.chain([here.clone()]) {
        let Some(rates) = machine.rates() else {
            continue;
        };
        let model = Machinery::new(&machine);
        let near = machine.nearest(0);
        let factor = near
            .get(1)
            .map_or(f64::NAN, |other| model.factor(0, *other));
        let per_second = |mb: u32| Cell::written(format!("{:.1} GB/s", f64::from(mb) / 1e3));
        let watts = |mw: u32| f64::from(mw) / 1e3;
        table.row([
            Cell::from(machine.name()),
            Cell::number(factor, Unit::Ratio),
            Cell::number(f64::from(rates.latency_ns) / 1e9, Unit::Seconds),
            Cell::number(f64::from(rates.lines), Unit::Count),
            per_second(rates.memory_mb),
            per_second(rates.link_mb),
            Cell::written(format!("{:.1} GHz", f64::from(rates.clock_mhz) / 1e3)),
            Cell::written(format!(
                "{:.1} and {:.1} W",
                watts(rates.core_mw),
                watts(rates.idle_mw)
            )),
            Cell::written(format!("{} and {}", rates.memory_pj, rates.link_pj)),
        ]);
    }
    table
}
