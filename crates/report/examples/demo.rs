//! Every kind of plot, with made-up numbers: `cargo run -p report --example demo -- demo.html`

use std::path::PathBuf;

use report::{
    Axis, Bars, Cell, Heat, Line, Lines, Point, Report, Roofline, Sample, Spread, Table, Unit,
    command_line,
};

const STRATEGIES: [&str; 5] = [
    "os",
    "compact",
    "sparse",
    "shared",
    "a strategy with a rather long name",
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args_os()
        .nth(1)
        .map_or_else(|| PathBuf::from("demo.html"), PathBuf::from);
    let report = Report::new("Every kind of plot", command_line())
        .lead("A demonstration: all numbers on this page are made up.")
        .machine(topology::Machine::parse("opteron-8387")?)
        .emulated()
        .fact("Workload", "none")
        .section("Bars")
        .text("Shares per strategy, with error bars from the least to the greatest of five runs.")
        .table(table())
        .plot(grouped())
        .plot(stacked())
        .section("Distributions")
        .plot(spread())
        .section("Curves")
        .plot(curves())
        .plot(logarithmic())
        .plot(steps())
        .plot(roofline())
        .section("Matrices")
        .plots([4, 2, 8].map(matrix));
    let written = report.write(&path)?;
    eprintln!("{}\n{}", written.html.display(), written.json.display());
    Ok(())
}

fn share(at: usize, of: usize) -> f64 {
    0.03 + 0.17 * at as f64 + 0.05 * of as f64
}

fn table() -> Table {
    let mut table = Table::new([
        "strategy",
        "DRAM fills",
        "remote",
        "bytes",
        "runs",
        "variation",
    ])
    .caption("Median of 5 runs.");
    for (at, name) in STRATEGIES.iter().enumerate() {
        let remote = Cell::number(share(at, 0), Unit::Share);
        table.row([
            Cell::from(*name),
            Cell::number(1.7e6 * (at + 1) as f64, Unit::Count),
            if at == 0 { remote.strong() } else { remote },
            Cell::number(1e8 * (at + 1) as f64, Unit::Bytes),
            Cell::number(5.0, Unit::Count),
            Cell::number(0.012, Unit::Share),
        ]);
    }
    table
}

fn grouped() -> Bars {
    let mut bars = Bars::new("Remote share of DRAM fills", "remote share", Unit::Share)
        .series(["stream", "Q6", "DuckDB Q1"])
        .up_to(1.0);
    for (at, name) in STRATEGIES.iter().enumerate() {
        let point = |of| Point {
            x: 0.0,
            y: share(at, of),
            low: share(at, of) * 0.9,
            high: share(at, of) * 1.1,
        };
        bars.category(*name, [0, 1, 2].map(point));
    }
    bars
}

fn stacked() -> Bars {
    let mut bars = Bars::new("DRAM fills", "lines filled", Unit::Count)
        .series(["local", "remote"])
        .stacked();
    for (at, name) in STRATEGIES.iter().enumerate() {
        bars.category(*name, [4e6 - 5e5 * at as f64, 7e5 * at as f64]);
    }
    bars
}

fn spread() -> Spread {
    let mut spread = Spread::new("Cost of 40 placements", "remote fills", Unit::Count).from_zero();
    for (at, name) in STRATEGIES.iter().enumerate() {
        let value = |run: usize| 1e6 * (1.0 + at as f64 + ((run * 7919) % 97) as f64 / 60.0);
        spread.category(*name, (0..40).map(value).collect::<Sample>());
    }
    spread
}

fn curves() -> Lines {
    let point = |run: usize, best: f64| {
        let y = best * (1.0 - (-(run as f64) / 6.0).exp());
        Point {
            x: run as f64,
            y,
            low: y - 0.05,
            high: (y + 0.05).min(1.0),
        }
    };
    Lines::new(
        "Gain found after so many runs",
        Axis::new("runs", Unit::Count),
        Axis::new("share of the best gain", Unit::Share).from_zero(),
    )
    .line(Line::new("search", (1..=25).map(|run| point(run, 0.98))))
    .line(Line::new(
        "random draws",
        (1..=25).map(|run| point(run, 0.8)),
    ))
    .mark("best of all 462", 1.0)
}

fn logarithmic() -> Lines {
    let time = |size: i32, by: f64| (4096.0 * 2f64.powi(size), by * 1e-5 * 1.7f64.powi(size));
    Lines::new(
        "Time over size",
        Axis::new("table", Unit::Bytes).log(),
        Axis::new("time", Unit::Seconds).log(),
    )
    .line(Line::new("fused", (0..14).map(|size| time(size, 1.0))))
    .line(Line::new("streaming", (0..14).map(|size| time(size, 2.3))))
}

fn steps() -> Lines {
    let state = |turn: usize, phase: usize| (turn as f64 * 0.5, ((turn * phase) % 7) as f64);
    Lines::new(
        "Cores allocated over time",
        Axis::new("time", Unit::Seconds),
        Axis::new("cores", Unit::Count).from_zero(),
    )
    .line(Line::new("node 0", (0..40).map(|turn| state(turn, 3))).steps())
    .line(Line::new("node 1", (0..40).map(|turn| state(turn, 5))).steps())
}

fn roofline() -> Roofline {
    let mut plot = Roofline::new("Operators under roofs", ["filter", "fold"])
        .bandwidth("memory, 12 GiB/s", 12e9)
        .bandwidth("cache, 60 GiB/s", 6e10)
        .peak("64-bit values", 2e10);
    for at in 0..6 {
        let (intensity, rate) = (0.05 * 1.8f64.powi(at), 2e8 * 1.9f64.powi(at));
        plot.point(
            at as usize % 2,
            format!("{}", at + 1),
            "an operator",
            (intensity, rate),
        );
    }
    plot
}

fn matrix(nodes: usize) -> Heat {
    let value = |from: usize, to: usize| {
        if from == to {
            3e6
        } else {
            4e4 * (1 + from * nodes + to) as f64
        }
    };
    let values: Vec<Vec<f64>> = (0..nodes)
        .map(|from| (0..nodes).map(|to| value(from, to)).collect())
        .collect();
    Heat::nodes(format!("DRAM fills, {nodes} nodes"), Unit::Count, &values)
}
