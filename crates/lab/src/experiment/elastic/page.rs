//! The report: what was run, its results, and how they came about over time.

use std::collections::{BTreeMap, BTreeSet};

use governor::Power;
use report::{Axis, Bars, Cell, Line, Lines, Point, Report, Sample, Span, Spans, Table, Unit};
use topology::Machine;

use super::load::Done;
use super::options::Elastic;
use super::plan::{Asked, Variant, Workload};
use super::queries::{ROW_BYTES, ROWS};
use super::trial::Trial;
use super::verdict::Series;

/// The most changes that are listed one by one.
const CHANGES: usize = 30;

/// How many threads have a colour of their own, with one for all others.
const COLOURS: usize = 6;

/// How many threads have a row: those that ran longest.
const THREADS: usize = 24;

/// One line per workload and variant: medians over its runs.
pub fn table(all: &[Series<'_>]) -> Table {
    let mut table = Table::new([
        "workload",
        "variant",
        "queries/s",
        "of ungoverned",
        "p99",
        "core-seconds",
        "used",
        "decisions",
        "changes",
        "migrations",
        "J, cores",
        "J, machine",
    ])
    .caption(format!("Medians over the runs; the ratio is of the runs of the same turn; –: not measured. Core-seconds are those that it had, and those that it kept busy. J, cores: joules estimated and not measured, {} W for each core, as an Opteron 8387 of four cores has them by its maker, times the core-seconds used here. J, machine: what the whole machine used meanwhile, where it is counted (powercap).", Power::default().core_watts));
    for one in all {
        let median = |of: &dyn Fn(&Trial) -> f64| one.sample(of).median();
        let base = all
            .iter()
            .find(|other| other.workload == one.workload && other.variant == Variant::Ungoverned);
        let throughput = |series: &Series<'_>| series.sample(|trial| trial.throughput);
        let ratio = base.map_or(f64::NAN, |base| {
            throughput(one).ratio(&throughput(base)).median()
        });
        let slowest = |trial: &Trial| {
            let phases = trial.phases.iter();
            let p99 = phases.filter_map(|told| told.done.p99_seconds);
            p99.fold(f64::NAN, f64::max)
        };
        table.row([
            Cell::from(one.workload.name()),
            Cell::from(one.variant.name()),
            Cell::number(median(&|trial| trial.throughput), Unit::Count),
            Cell::number(ratio, Unit::Ratio),
            Cell::number(median(&slowest), Unit::Seconds),
            Cell::number(median(&|trial| trial.allocated), Unit::Plain),
            Cell::number(median(&Trial::used_seconds), Unit::Plain),
            Cell::number(median(&|trial| trial.decisions as f64), Unit::Count),
            Cell::number(median(&|trial| trial.changes as f64), Unit::Count),
            Cell::number(
                median(&|trial| trial.migrations.map_or(f64::NAN, |count| count as f64)),
                Unit::Count,
            ),
            Cell::number(
                median(&|trial| trial.energy.map_or(f64::NAN, |energy| energy.cpu_joules)),
                Unit::Plain,
            ),
            Cell::number(
                median(&|trial| trial.machine_joules.unwrap_or(f64::NAN)),
                Unit::Plain,
            ),
        ]);
    }
    table
}

/// One line per phase and variant of workloads whose phases differ in what is asked, or by how many: medians over the runs.
pub fn phases(all: &[Series<'_>]) -> Table {
    let mut table = Table::new([
        "workload",
        "phase",
        "variant",
        "queries/s",
        "of ungoverned",
        "median",
        "p99",
    ])
    .caption(
        "Queries answered in a phase by its length, and how long they took; medians over the runs.",
    );
    for workload in series_of(all) {
        let own: Vec<&Series<'_>> = all.iter().filter(|one| one.workload == workload).collect();
        let Some(first) = own.first().and_then(|one| one.runs.first()) else {
            continue;
        };
        for (at, told) in first.phases.iter().enumerate() {
            let rate = |one: &Series<'_>| {
                one.sample(|trial| {
                    trial.phases.get(at).map_or(f64::NAN, |told| {
                        told.done.queries as f64 / (told.to - told.from)
                    })
                })
            };
            let time = |one: &Series<'_>, of: fn(&Done) -> Option<f64>| {
                let of = |trial: &Trial| trial.phases.get(at).and_then(|told| of(&told.done));
                one.sample(|trial| of(trial).unwrap_or(f64::NAN)).median()
            };
            let base = own.iter().find(|one| one.variant == Variant::Ungoverned);
            for one in &own {
                let ratio = base.map_or(f64::NAN, |base| rate(one).ratio(&rate(base)).median());
                table.row([
                    Cell::from(workload.name()),
                    Cell::from(told.phase.name(workload, ROWS)),
                    Cell::from(one.variant.name()),
                    Cell::number(rate(one).median(), Unit::Count),
                    Cell::number(ratio, Unit::Ratio),
                    Cell::number(time(one, |done| done.median_seconds), Unit::Seconds),
                    Cell::number(time(one, |done| done.p99_seconds), Unit::Seconds),
                ]);
            }
        }
    }
    table
}

/// The workloads, each once.
fn series_of(all: &[Series<'_>]) -> Vec<Workload> {
    let mut workloads: Vec<Workload> = all.iter().map(|one| one.workload).collect();
    workloads.dedup();
    workloads
}

/// The queries and who answers them, as text.
fn asked(elastic: &Elastic) -> Asked {
    match &elastic.client {
        Some(_) => Asked::Client {
            statements: elastic.statement.len(),
        },
        None => Asked::Own { rows: ROWS },
    }
}

/// The whole report, without the raw numbers.
pub fn report(
    elastic: &Elastic,
    machine: &Machine,
    cpus: usize,
    all: &[Series<'_>],
    [table, phases, judged]: [&Table; 3],
    command: &str,
) -> Report {
    let runs = all.iter().map(|one| one.runs.len()).max().unwrap_or(0);
    let asks = match &elastic.client {
        Some(client) => format!(
            "{client}: {}{}",
            elastic.statement.join(" "),
            elastic.pid.map_or(String::new(), |pid| format!(
                " (the server, process {pid}, is governed)"
            ))
        ),
        None => format!(
            "queries of a program of our own over {} of columns",
            Unit::Bytes.show((ROWS * ROW_BYTES) as f64)
        ),
    };
    let mut report = Report::new("Cores that follow the load", command)
        .lead(format!("The same workloads with all cores from beginning to end, and with a governor that looks every {} ms, or later where looking takes long, and then gives and takes cores as a Petri net says; all variants in turn.", elastic.period))
        .machine(machine.clone())
        .fact("Cpus to give", cpus.to_string())
        .fact("Asked", asks)
        .fact("Period", format!("{} ms between two decisions", elastic.period))
        .fact("Runs", format!("{runs} of each variant, in turn"))
        .fact(
            "Ungoverned",
            "the operating system alone; the same sensors are read, and nothing is changed",
        )
        .section("All workloads")
        .table(table.clone())
        .section("Phase by phase")
        .table(phases.clone())
        .section("What is asked for")
        .table(judged.clone());
    for workload in series_of(all) {
        let own: Vec<&Series<'_>> = all.iter().filter(|one| one.workload == workload).collect();
        report = section(report, (workload, asked(elastic)), &own, machine, cpus);
    }
    report
}

/// A workload: its sums, then the first run of each variant over time.
fn section(
    mut report: Report,
    (workload, asked): (Workload, Asked),
    own: &[&Series<'_>],
    machine: &Machine,
    cpus: usize,
) -> Report {
    let firsts: Vec<&Trial> = own
        .iter()
        .filter_map(|one| one.runs.first().copied())
        .collect();
    report = report
        .section(format!("Workload {}", workload.name()))
        .text(format!(
            "Workload {}: {}.",
            workload.name(),
            workload.about(asked)
        ))
        .plot(throughput(workload, own))
        .plot(core_seconds(workload, own))
        .plot(cores_over_time(workload.name(), &firsts, cpus));
    for one in own {
        let Some(first) = one.runs.first() else {
            continue;
        };
        let name = format!("{}, {}", workload.name(), one.variant.name());
        report = report.plot(threads(&name, first, machine));
        if let Some(memory) = memory(&name, first, machine) {
            report = report.plot(memory);
        }
        if one.variant.governed() {
            report = report
                .plot(states(&name, first))
                .table(changes(&name, first));
        }
    }
    report
}

fn point(sample: &Sample) -> Point {
    let (low, high) = sample.range();
    Point {
        x: 0.0,
        y: sample.median(),
        low,
        high,
    }
}

fn throughput(workload: Workload, own: &[&Series<'_>]) -> Bars {
    let title = format!("{}: throughput", workload.name());
    let mut bars = Bars::new(title, "queries per second", Unit::Count);
    for one in own {
        let sample = one.sample(|trial| trial.throughput);
        bars.category(one.variant.name(), [point(&sample)]);
    }
    bars
}

fn core_seconds(workload: Workload, own: &[&Series<'_>]) -> Bars {
    let title = format!("{}: core-seconds", workload.name());
    let mut bars =
        Bars::new(title, "cores times seconds", Unit::Plain).series(["allocated", "used"]);
    for one in own {
        let both = [
            one.sample(|trial| trial.allocated),
            one.sample(Trial::used_seconds),
        ];
        bars.category(one.variant.name(), both.iter().map(point));
    }
    bars
}

/// Cores over time in the first run of each governed variant, and the cpus that the load kept busy when it had all.
pub(super) fn cores_over_time(name: &str, firsts: &[&Trial], cpus: usize) -> Lines {
    let mut lines = Lines::new(
        format!("{name}: cores over time, first run"),
        Axis::new("time", Unit::Seconds).from_zero(),
        Axis::new("cores", Unit::Plain).from_zero(),
    )
    .mark(format!("{cpus} cpus"), cpus as f64);
    for first in firsts {
        let moments = first.moments.iter();
        lines = match first.variant {
            Variant::Governed(..) | Variant::Plain(_) => {
                let cores = moments.map(|moment| (moment.time, moment.cores as f64));
                let last = first.moments.last();
                let last = last.map(|moment| (first.seconds, moment.cores as f64));
                let cores = cores.chain(last);
                lines.line(Line::new(first.variant.name(), cores).steps())
            }
            Variant::Ungoverned => {
                let busy = moments.filter_map(|moment| Some((moment.time, moment.busy?)));
                lines.line(Line::new("cpus busy, ungoverned", busy))
            }
            Variant::Fixed(_) | Variant::Bound(_) => lines,
        };
    }
    lines
}

/// The cpu of each thread over time; if there are too many cpus for colours, its node.
pub(super) fn threads(name: &str, trial: &Trial, machine: &Machine) -> Spans {
    let cpus: BTreeSet<u32> = trial.lives.iter().map(|life| life.cpu).collect();
    let by_node = cpus.len() > 6;
    let places: BTreeSet<u32> = if by_node {
        trial.lives.iter().map(|life| life.node).collect()
    } else {
        cpus
    };
    let places: Vec<u32> = places.into_iter().collect();
    let nodes = machine.nodes().len();
    let node_of = |cpu: u32| {
        let life = trial.lives.iter().find(|life| life.cpu == cpu);
        life.map_or(0, |life| life.node)
    };
    let names = places.iter().map(|place| match (by_node, nodes) {
        (true, _) => format!("node {place}"),
        (false, 1) => format!("cpu {place}"),
        (false, _) => format!("cpu {place} (node {})", node_of(*place)),
    });
    let mut lives: BTreeMap<u32, Vec<Span>> = BTreeMap::new();
    for life in &trial.lives {
        let place = if by_node { life.node } else { life.cpu };
        lives.entry(life.thread).or_default().push(Span {
            from: life.from,
            to: life.to,
            series: places.iter().position(|other| *other == place).unwrap_or(0),
        });
    }
    let mut rows: Vec<(u32, Vec<Span>)> = lives.into_iter().collect();
    let ran = |spans: &[Span]| -> f64 { spans.iter().map(|span| span.to - span.from).sum() };
    rows.sort_by(|a, b| ran(&b.1).total_cmp(&ran(&a.1)));
    let many = rows.len();
    rows.truncate(THREADS);
    rows.sort_by_key(|(thread, _)| *thread);
    let told = if many > THREADS {
        format!("{name}: life spans of the {THREADS} busiest of {many} threads")
    } else {
        format!("{name}: life spans of threads")
    };
    let mut spans = Spans::new(told, "time", Unit::Seconds)
        .series(names)
        .up_to(trial.seconds);
    for (at, (_, row)) in rows.into_iter().enumerate() {
        spans.row(format!("thread {}", at + 1), row);
    }
    spans
}

/// The busiest threads on each cpu over time.
pub(super) fn on_cpus(name: &str, trial: &Trial) -> Spans {
    let mut ran: BTreeMap<u32, f64> = BTreeMap::new();
    for life in &trial.lives {
        *ran.entry(life.thread).or_default() += life.to - life.from;
    }
    let mut busiest: Vec<(u32, f64)> = ran.into_iter().collect();
    busiest.sort_by(|a, b| b.1.total_cmp(&a.1));
    busiest.truncate(COLOURS - 1);
    let series = |thread: u32| busiest.iter().position(|(one, _)| *one == thread);
    let names = (1..=busiest.len()).map(|at| format!("thread {at}, the busiest first"));
    let mut spans = Spans::new(
        format!("{name}: threads by core and node"),
        "time",
        Unit::Seconds,
    )
    .series(names.chain(["others".to_owned()]))
    .up_to(trial.seconds);
    let mut rows: BTreeMap<(u32, u32), Vec<Span>> = BTreeMap::new();
    for life in &trial.lives {
        rows.entry((life.node, life.cpu)).or_default().push(Span {
            from: life.from,
            to: life.to,
            series: series(life.thread).unwrap_or(busiest.len()),
        });
    }
    for ((node, cpu), mut row) in rows {
        // The busiest are drawn last, above what was there at the same time.
        row.sort_by_key(|span| std::cmp::Reverse(span.series));
        spans.row(format!("cpu {cpu} (node {node})"), row);
    }
    spans
}

/// Memory by node over time, if there are several nodes.
pub(super) fn memory(name: &str, trial: &Trial, machine: &Machine) -> Option<Lines> {
    if machine.nodes().len() < 2 {
        return None;
    }
    let mut lines = Lines::new(
        format!("{name}: memory by node"),
        Axis::new("time", Unit::Seconds).from_zero(),
        Axis::new("bytes", Unit::Bytes).from_zero(),
    );
    for node in machine.nodes() {
        let points = trial.moments.iter().filter_map(|moment| {
            let bytes = moment.memory.get(&node.os_index)?;
            Some((moment.time, *bytes))
        });
        lines = lines.line(Line::new(format!("node {}", node.os_index), points));
    }
    Some(lines)
}

/// The states of the net over time, and the cores that followed from them.
pub(super) fn states(name: &str, trial: &Trial) -> Spans {
    let mut spans = Spans::new(
        format!("{name}: transitions over time"),
        "time",
        Unit::Seconds,
    )
    .series(["as many cores", "more", "fewer"])
    .up_to(trial.seconds);
    let mut before = None;
    let mut rows: BTreeMap<&str, Vec<Span>> = BTreeMap::new();
    for (at, moment) in trial.moments.iter().enumerate() {
        let next = trial.moments.get(at + 1);
        let to = next.map_or(trial.seconds, |next| next.time);
        let series = match before.map(|cores: usize| moment.cores.cmp(&cores)) {
            Some(std::cmp::Ordering::Greater) => 1,
            Some(std::cmp::Ordering::Less) => 2,
            _ => 0,
        };
        before = Some(moment.cores);
        rows.entry(moment.place.as_str()).or_default().push(Span {
            from: moment.time,
            to,
            series,
        });
    }
    for place in ["Overload", "Stable", "Idle", "Checks"] {
        if let Some(row) = rows.remove(place) {
            spans.row(place, row);
        }
    }
    for (place, row) in rows {
        spans.row(place, row);
    }
    spans
}

/// The first changes with their reasons.
pub(super) fn changes(name: &str, trial: &Trial) -> Table {
    let all = trial
        .moments
        .iter()
        .filter(|moment| moment.change.is_some());
    let count = all.clone().count();
    let mut table = Table::new(["time", "cores", "why"]).caption(if count > CHANGES {
        format!("{name}: the first {CHANGES} of {count} changes")
    } else {
        format!("{name}: all changes of the first run")
    });
    for moment in all.take(CHANGES) {
        table.row([
            Cell::number(moment.time, Unit::Seconds),
            Cell::number(moment.cores as f64, Unit::Count),
            Cell::from(moment.change.as_deref().unwrap_or_default()),
        ]);
    }
    table
}
