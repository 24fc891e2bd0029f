//! The engine's own counts compared with those of the emulator.
//!
//! Like is compared with like: the engine counts bytes of pages that kernels read, so they are compared with lines of
//! the pool's frames, if the program has declared these as windows ([`roi::window`](emulator::roi::window)). If it
//! has not, they are compared with all lines, which include those of vectors and hash tables.

use emulator::count::{Matrix, remote_share};
use report::{Bars, Cell, Report, Sample, Spread, Table, Unit};
use serde::Serialize;
use serde_json::json;

use crate::guest::{Guest, parts};
use crate::result::counted::{self, Counted};

/// The runs of a variant.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Compared {
    #[serde(flatten)]
    pub(crate) emulated: Counted,
    /// The engine's counts of each run: bytes by node of the reader, then of the page.
    pub(crate) engine: Vec<Matrix>,
    /// Whether the engine knows where its workers and pages are.
    pub(crate) known: bool,
    remote_share: Shares,
    /// The difference between the engine's remote share and that of lines from frames, or of all lines if these are
    /// not known apart; `None` if the engine cannot know.
    pub(crate) points: Option<f64>,
}

/// The median remote shares of the engine's bytes, of lines from frames, and of all lines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
struct Shares {
    engine: f64,
    frames: Option<f64>,
    lines: f64,
}

fn median(matrices: impl Iterator<Item = Option<f64>>) -> f64 {
    let sample: Sample = matrices.map(|share| share.unwrap_or(f64::NAN)).collect();
    sample.median()
}

impl Compared {
    pub(crate) fn new(emulated: Counted, engine: Vec<Matrix>, known: bool) -> Compared {
        let runs = emulated.runs.iter();
        let all_named =
            runs.clone().all(|run| !run.windows.is_empty()) && !emulated.runs.is_empty();
        let shares = Shares {
            engine: median(engine.iter().map(remote_share)),
            frames: all_named.then(|| median(runs.map(|run| remote_share(&run.windows)))),
            lines: emulated.share().median(),
        };
        let points = 100.0 * (shares.engine - shares.frames.unwrap_or(shares.lines)).abs();
        Compared {
            emulated,
            engine,
            known,
            remote_share: shares,
            points: (known && points.is_finite()).then_some(points),
        }
    }

    /// Bytes of pages that kernels read.
    pub(crate) fn read(&self) -> Sample {
        let bytes = |matrix: &Matrix| {
            let (local, remote) = parts(matrix);
            (local + remote) as f64
        };
        self.engine.iter().map(bytes).collect()
    }

    /// Lines from memory that are in frames; NaN if they are not known apart.
    fn frames(&self) -> Sample {
        let lines = self.emulated.runs.iter().map(|run| {
            let lines: u64 = run.windows.iter().flatten().sum();
            if run.windows.is_empty() {
                f64::NAN
            } else {
                lines as f64
            }
        });
        lines.collect()
    }
}

/// Both shares side by side; `caches`: bytes of all last-level caches.
fn table(all: &[&Compared], variant: &str, caches: f64) -> Table {
    let header = [
        "workload",
        variant,
        "bytes by the engine",
        "by the last-level caches",
        "bytes from memory",
        "of the pool's frames",
        "remote share by the engine",
        "of frames",
        "of all lines",
        "points between",
    ];
    let mut table = Table::new(header).caption("The engine counts bytes of stored values that kernels read, and takes each worker to be on its node and each page on its home: without affinity it cannot know. The emulator counts all lines from memory, where they are; those of the pool's frames apart, where the program tells which they are. Points: between the engine's share and that of frames, or of all lines where frames are not known. Medians.");
    for one in all {
        let read = one.read().median();
        let shares = &one.remote_share;
        table.row([
            Cell::from(one.emulated.workload.as_str()),
            Cell::from(one.emulated.variant.as_str()),
            Cell::number(read, Unit::Bytes),
            Cell::number(read / caches, Unit::Ratio),
            Cell::number(one.emulated.lines().median() * 64.0, Unit::Bytes),
            Cell::number(one.frames().median() * 64.0, Unit::Bytes),
            Cell::number(shares.engine, Unit::Share),
            Cell::number(shares.frames.unwrap_or(f64::NAN), Unit::Share),
            Cell::number(shares.lines, Unit::Share),
            match one.points {
                Some(points) => Cell::written(format!("{points:.1}")),
                None => Cell::written("–"),
            },
        ]);
    }
    table
}

/// Bytes of all last-level caches.
pub(crate) fn caches(guest: &Guest) -> f64 {
    guest.last_caches_bytes() as f64
}

/// Adds the machine, what was counted and what the engine counts to a report; the tables are returned as well, for a
/// terminal. `variant` heads the column of what differs.
pub(crate) fn fill(
    report: Report,
    guest: &Guest,
    all: &[&Compared],
    variant: &str,
) -> (Report, [Table; 2]) {
    let emulated: Vec<Counted> = all.iter().map(|one| one.emulated.clone()).collect();
    let caches = caches(guest);
    let tables = [
        counted::table(&emulated, variant),
        table(all, variant, caches),
    ];
    let mut bars = Bars::new(
        "Lines from memory by where they are",
        "lines of 64 bytes",
        Unit::Count,
    )
    .series(["local", "remote"])
    .stacked();
    let mut spreads = Spread::new("Remote share of each run", "remote share", Unit::Share);
    for one in &emulated {
        let name = format!("{}, {}", one.workload, one.variant);
        bars.category(name.as_str(), one.parted());
        spreads.category(name, one.share());
    }
    let [lines, compared] = tables.clone();
    let report = report
        .machine(guest.machine().clone())
        .emulated()
        .fact("Caches", guest.caches())
        .fact("Last-level caches together", Unit::Bytes.show(caches))
        .section("Where the lines came from")
        .table(lines)
        .plot(bars)
        .section("From run to run")
        .plot(spreads.from_zero())
        .section("What the engine counts")
        .table(compared)
        .section("Node pairs")
        .plots(emulated.iter().map(Counted::heat))
        .results(json!(all));
    (report, tables)
}

#[cfg(test)]
mod tests {
    use emulator::count::Region;

    use super::*;

    fn compared(windows: Vec<Matrix>, known: bool) -> Compared {
        let run = |windows| Region {
            // Half of all lines is remote.
            dram: vec![vec![50, 0], vec![50, 0]],
            windows,
            ..Region::default()
        };
        let emulated = Counted {
            workload: "Q6".to_owned(),
            variant: "obliv".to_owned(),
            runs: windows.into_iter().map(run).collect(),
        };
        let engine = emulated.runs.iter().map(|_| vec![vec![1, 3], vec![0, 0]]);
        let engine = engine.collect();
        Compared::new(emulated, engine, known)
    }

    #[test]
    fn the_engine_is_held_against_lines_of_frames() {
        // 72 % of the lines of frames are remote, 75 % of the engine's bytes.
        let one = compared(vec![vec![vec![7, 18], vec![0, 0]]; 2], true);
        assert!((one.points.unwrap() - 3.0).abs() < 1e-9, "{one:?}");
        let shown = table(&[&one], "plan", 64.0);
        let row: Vec<&str> = shown.rows()[0].iter().map(Cell::as_str).collect();
        assert_eq!(
            row[4..],
            ["6.25 KiB", "1.56 KiB", "75.0 %", "72.0 %", "50.0 %", "3.0"]
        );
        let json = json!(one);
        assert_eq!(json["remote_share"]["frames"], 0.72);
        assert_eq!(json["remote_share"]["lines"], 0.5);
    }

    #[test]
    fn against_all_lines_where_frames_are_not_known_in_each_run() {
        for windows in [vec![vec![]], vec![vec![], vec![vec![1, 0], vec![0, 0]]]] {
            let one = compared(windows, true);
            assert_eq!(one.remote_share.frames, None);
            assert_eq!(one.points, Some(25.0));
        }
    }

    #[test]
    fn an_engine_that_cannot_know_is_not_judged() {
        let one = compared(vec![vec![vec![1, 0], vec![0, 0]]], false);
        assert_eq!(one.points, None);
        assert_eq!(table(&[&one], "plan", 1.0).rows()[0][9].as_str(), "–");
        let none = compared(vec![], true);
        assert_eq!(none.points, None, "no run");
    }
}
