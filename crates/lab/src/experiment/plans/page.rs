//! The report of `plans`.

use report::{Cell, Report, Sample, Table, Unit};
use serde_json::json;

use super::found::{Found, WARM};
use crate::guest::Guest;
use crate::result::compared::{self, Compared};

/// The greatest remote share that shard and distr may have on Q6 with affinity.
const REMOTE: f64 = 0.05;
/// The greatest difference, in points, between the engine's remote share and that of lines from frames.
const POINTS: f64 = 5.0;
/// The least bytes read, as a multiple of the bytes of all last-level caches.
const TOUCHED: f64 = 8.0;

/// The contents of a report.
pub(super) struct Page<'a> {
    pub(super) guest: &'a Guest,
    pub(super) scale: f64,
    pub(super) threads: usize,
    pub(super) loaders: usize,
    pub(super) all: &'a [Found],
}

impl Page<'_> {
    /// The report, and its tables for a terminal.
    pub(super) fn report(&self, command: &str) -> (Report, Vec<Table>) {
        let all: Vec<&Compared> = self.all.iter().map(|found| &found.compared).collect();
        let report = Report::new("Plans: where accesses go", command)
            .lead("obliv: one queue, whoever asks takes the next piece. shard: a worker takes the pieces of its node first, then those of the nearest node that has any. distr: an engine for each node, which takes nothing else. Affinity on: workers are bound to cpus and the pool's pages to their home nodes; off: the system places both.")
            .fact(
                "Data",
                format!("TPC-H scale {}; each run in a process of its own: {WARM} runs that do not count, then the caches are emptied and one run is counted, from its begin to its last row, planning not included", self.scale),
            )
            .fact(
                "Executor",
                format!("fused, {} workers for {} cpus; the first run, which brings the pages into memory, with {}", self.threads, self.guest.machine().cpus(), self.loaders),
            );
        let (report, tables) = compared::fill(report, self.guest, &all, "plan");
        let (spread, judged) = (spread(self.all), self.judged());
        let report = report
            .section("How far the runs are apart")
            .table(spread.clone())
            .section("What is asked for")
            .table(judged.clone())
            .results(json!(self.all));
        (report, tables.into_iter().chain([spread, judged]).collect())
    }

    /// The project's targets.
    fn judged(&self) -> Table {
        let mut table = Table::new(["query", "asked for", "found", "met"]);
        let mut row = |query: &str, asked: String, found: String, met: bool| {
            table.row([
                Cell::from(query),
                Cell::from(asked),
                Cell::from(found),
                if met {
                    Cell::from("yes")
                } else {
                    Cell::from("no").strong()
                },
            ]);
        };
        let caches = compared::caches(self.guest);
        for found in self.all.iter().filter(|found| found.affinity) {
            let (plan, query, both) = (&*found.plan, &*found.query, &found.compared);
            if plan == "obliv" {
                let times = both.read().median() / caches;
                row(
                    query,
                    format!("bytes touched: at least {TOUCHED} times the last-level caches"),
                    format!("{times:.1} times"),
                    times >= TOUCHED,
                );
                let off = self
                    .all
                    .iter()
                    .find(|off| off.query == found.query && off.plan == plan && !off.affinity);
                let several = both.emulated.runs.len() > 1;
                if let Some(off) = off.filter(|_| several) {
                    let [on, off] = [both, &off.compared].map(points);
                    row(
                        query,
                        "obliv: remote shares spread less with affinity".to_owned(),
                        format!("{on:.2} points instead of {off:.2}"),
                        on < off,
                    );
                }
            } else if query == "Q6" {
                let share = both.emulated.share().median();
                row(
                    query,
                    format!(
                        "{plan} with affinity: at most {} remote",
                        Unit::Share.show(REMOTE)
                    ),
                    Unit::Share.show(share),
                    share <= REMOTE,
                );
            }
            if let Some(points) = both.points {
                row(
                    query,
                    format!("{plan} with affinity: engine and emulator within {POINTS} points"),
                    format!("{points:.1} points"),
                    points <= POINTS,
                );
            }
        }
        table
    }
}

/// Standard deviation of the remote share of lines, in points; NaN for a single run.
fn points(runs: &Compared) -> f64 {
    100.0 * runs.emulated.share().deviation()
}

/// The spread over runs: the remote share of lines, and how often the system moved threads.
fn spread(all: &[Found]) -> Table {
    let header = [
        "query",
        "plan",
        "least remote",
        "median",
        "greatest",
        "standard deviation, points",
        "moves of workers",
    ];
    let mut table = Table::new(header).caption("Remote share of all lines from memory, of each run. Moves: to another cpu, of all workers from the first run, which brings pages into memory, to the end of the counted one; median.");
    for found in all {
        let both = &found.compared;
        let share = both.emulated.share();
        let (least, greatest) = share.range();
        let moves = found.moves.iter();
        let moves: Sample = moves
            .map(|moves| moves.map_or(f64::NAN, |moves| moves as f64))
            .collect();
        table.row([
            Cell::from(found.query.as_str()),
            Cell::from(both.emulated.variant.as_str()),
            Cell::number(least, Unit::Share),
            Cell::number(share.median(), Unit::Share),
            Cell::number(greatest, Unit::Share),
            match points(both) {
                spread if spread.is_finite() => Cell::written(format!("{spread:.1}")),
                _ => Cell::written("–"),
            },
            Cell::number(moves.median(), Unit::Count),
        ]);
    }
    table
}
