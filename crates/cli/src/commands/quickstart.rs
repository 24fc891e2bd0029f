//! `atoll quickstart`: builds a TPC-H store, runs the queries, shows where their bytes came from.

use std::io::Write;
use std::path::{Path, PathBuf};

use atoll::tpch::{self, Present};
use atoll::{Database, Session};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};

use crate::failure::Failure;
use crate::options::execution::{self, Execution};
use crate::options::resources::Resources;
use crate::store::{database, files};
use crate::terminal::progress::Display;
use crate::terminal::{interrupt, out};
use crate::units;

/// `atoll quickstart`
#[derive(Args, Debug)]
pub struct Quickstart {
    /// TPC-H scale factor: 1 is about 1 GB of raw data
    #[arg(long, default_value_t = 1.0, value_name = "SCALE", value_parser = parse_scale)]
    pub scale: f64,
    /// The store to build or to reuse [default: tpch-SCALE.atoll]
    #[arg(long, value_name = "PATH")]
    pub store: Option<PathBuf>,
    /// Timed runs of each query, after one that warms up; the median is shown
    #[arg(long, default_value_t = 3, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub repeat: u32,
    #[command(flatten)]
    pub resources: Resources,
    #[command(flatten)]
    pub execution: Execution,
    /// One JSON object instead of a table
    #[arg(long)]
    pub json: bool,
}

/// How one query ran.
struct Run {
    query: usize,
    rows: usize,
    /// Median of the hot runs.
    seconds: f64,
    bytes: u64,
    local_bytes: u64,
}

/// The store that the queries ran on.
struct Built {
    path: PathBuf,
    store_bytes: u64,
    raw_bytes: u64,
    load_seconds: f64,
    reused: bool,
}

/// Runs the command.
pub fn run(args: &Quickstart) -> Result<(), Failure> {
    let path = args
        .store
        .clone()
        .unwrap_or_else(|| PathBuf::from(format!("tpch-{}.atoll", args.scale)));
    let existed = path.exists();
    let options = execution::options(&args.resources, &args.execution, false)?;
    let database = database::open_or_create(&path, &options)?;
    let built = match build(args, &database, &path) {
        Ok(built) => built,
        Err(failure) => {
            drop(database);
            // A store that was made for a failed load is empty.
            if !existed {
                files::remove(&path);
            }
            return Err(failure);
        }
    };
    let ran = queries(args, &database.session()).map(|runs| (built, runs));
    let closed = database.close();
    let (mut built, runs) = ran?;
    closed?;
    // Sizes are those of the closed store: what a user finds on the disk.
    built.store_bytes = files::bytes(&path);
    let mut out = out::stdout();
    if args.json {
        writeln!(out, "{}", json(args, &built, &runs))?;
    } else {
        print(&mut out, &built, &runs)?;
    }
    Ok(out.flush()?)
}

fn build(args: &Quickstart, database: &Database, path: &Path) -> Result<Built, Failure> {
    let mut built = Built {
        path: path.to_owned(),
        store_bytes: 0,
        raw_bytes: 0,
        load_seconds: 0.0,
        reused: true,
    };
    match tpch::present(database)? {
        Present::All { scale, raw_bytes } if (scale / args.scale - 1.0).abs() < 1e-3 => {
            built.raw_bytes = raw_bytes;
            eprintln!(
                "{} holds TPC-H at scale {scale}; it is used as it is",
                path.display()
            );
        }
        Present::All { scale, .. } => {
            let path = path.display();
            return Err(anyhow::anyhow!(
                "{path} holds TPC-H at scale {scale}, not {}; name another store with --store, or remove {path}",
                args.scale
            )
            .into());
        }
        Present::None => {
            eprintln!(
                "building {} with TPC-H at scale {}",
                path.display(),
                args.scale
            );
            let display = Display::new();
            let report = tpch::load(database, args.scale, &display);
            display.finish();
            let report = report?;
            (built.raw_bytes, built.load_seconds, built.reused) =
                (report.raw_bytes, report.seconds, false);
            let (rows, took) = (units::count(report.rows), units::seconds(report.seconds));
            eprintln!("{rows} rows in {took}; running the 22 queries");
        }
    }
    Ok(built)
}

fn queries(args: &Quickstart, session: &Session) -> Result<Vec<Run>, Failure> {
    let interrupter = session.interrupter();
    let _guard = interrupt::during(move || interrupter.interrupt());
    let mut runs = Vec::with_capacity(tpch::QUERIES.len());
    for (at, text) in tpch::QUERIES.iter().enumerate() {
        runs.push(measure(session, at + 1, text, args.repeat as usize)?);
    }
    Ok(runs)
}

/// Runs a query once to warm up, then `repeat` times.
fn measure(session: &Session, query: usize, text: &str, repeat: usize) -> Result<Run, Failure> {
    let mut run = Run {
        query,
        rows: 0,
        seconds: 0.0,
        bytes: 0,
        local_bytes: 0,
    };
    let mut seconds = Vec::with_capacity(repeat);
    for turn in 0..=repeat {
        if interrupt::asked() {
            return Err(Failure::Interrupted);
        }
        let answers = session.sql(text)?;
        let Some(answer) = answers.last() else {
            continue;
        };
        if turn > 0 {
            seconds.push(answer.statistics.seconds);
        }
        run.rows = answer.rows();
        run.bytes = answer.statistics.total_bytes();
        run.local_bytes = answer.statistics.local_bytes();
    }
    run.seconds = median(&mut seconds);
    Ok(run)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values {
        [] => 0.0,
        values if values.len() % 2 == 1 => values[values.len() / 2],
        values => (values[values.len() / 2 - 1] + values[values.len() / 2]) / 2.0,
    }
}

fn json(args: &Quickstart, built: &Built, runs: &[Run]) -> serde_json::Value {
    let queries: Vec<_> = runs
        .iter()
        .map(|run| {
            serde_json::json!({
                "query": run.query,
                "rows": run.rows,
                "seconds": run.seconds,
                "bytes": run.bytes,
                "local_bytes": run.local_bytes,
            })
        })
        .collect();
    serde_json::json!({
        "store": built.path.display().to_string(),
        "scale": args.scale,
        "load_seconds": built.load_seconds,
        "reused": built.reused,
        "store_bytes": built.store_bytes,
        "raw_bytes": built.raw_bytes,
        "queries": queries,
    })
}

fn print(out: &mut impl Write, built: &Built, runs: &[Run]) -> Result<(), Failure> {
    let mut table = Table::new();
    table.load_preset(presets::UTF8_BORDERS_ONLY);
    table.set_header(["query", "rows", "time", "bytes read", "on the home node"]);
    for run in runs {
        table.add_row([
            format!("Q{}", run.query),
            units::count(run.rows as u64),
            units::seconds(run.seconds),
            units::bytes(run.bytes),
            units::share(run.local_bytes, run.bytes),
        ]);
    }
    let total = |of: fn(&Run) -> u64| runs.iter().map(of).sum::<u64>();
    let (bytes, local) = (total(|run| run.bytes), total(|run| run.local_bytes));
    let seconds = runs.iter().map(|run| run.seconds).sum();
    table.add_row([
        "all".to_owned(),
        units::count(total(|run| run.rows as u64)),
        units::seconds(seconds),
        units::bytes(bytes),
        units::share(local, bytes),
    ]);
    for column in table.column_iter_mut() {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let path = built.path.display();
    let ratio = built.store_bytes as f64 / built.raw_bytes.max(1) as f64;
    writeln!(out, "{table}")?;
    writeln!(
        out,
        "\n{path}: {}, {ratio:.2} of the raw data's {}",
        units::bytes(built.store_bytes),
        units::bytes(built.raw_bytes)
    )?;
    writeln!(out, "Next:")?;
    writeln!(out, "  atoll sql {path} \"select count(*) from lineitem\"")?;
    writeln!(
        out,
        "  atoll sql {path}            # a shell; \\d lists the tables"
    )?;
    writeln!(out, "  atoll pages {path} stat     # what is in the store")?;
    Ok(())
}

fn parse_scale(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(scale) if (0.001..=100_000.0).contains(&scale) => Ok(scale),
        _ => Err("take a number from 0.001 to 100000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&mut [3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(&mut [4.0, 1.0, 2.0, 3.0]), 2.5);
        assert_eq!(median(&mut []), 0.0);
    }
}
