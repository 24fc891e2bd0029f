//! The report of `plans`.

use serde_json::json;

use super::super::counted::{Counted, table};
use super::super::guest::Guest;
use super::{Both, WARM, spread};
use crate::report::{Bars, Cell, Report, Spread, Table, Unit};

/// Remote share of shard and distr with affinity, at most (of Q6).
const REMOTE: f64 = 0.05;
/// Points between the engine's share and that of lines, at most.
const POINTS: f64 = 5.0;
/// Bytes read, by what all last-level caches hold, at least.
const TOUCHED: f64 = 8.0;

/// What a report is made of.
pub(super) struct Page<'a> {
    pub(super) guest: &'a Guest,
    pub(super) scale: f64,
    pub(super) all: &'a [Both],
}

impl Page<'_> {
    /// The report, and its tables for a terminal.
    pub(super) fn report(&self, command: &str) -> (Report, Vec<Table>) {
        let counted: Vec<Counted> = self.all.iter().map(|both| both.emulated.clone()).collect();
        let tables = vec![table(&counted, "plan"), self.compared(), self.judged()];
        let caches = self.caches();
        let mut bars = Bars::new(
            "Lines from memory by where they are",
            "lines of 64 bytes",
            Unit::Count,
        )
        .series(["local", "remote"])
        .stacked();
        let mut spreads = Spread::new("Remote share of each run", "remote share", Unit::Share);
        for one in &counted {
            let name = format!("{}, {}", one.workload, one.variant);
            bars.category(name.as_str(), one.parted());
            spreads.category(name, one.share());
        }
        let [lines, compared, judged] = [0, 1, 2].map(|at: usize| tables[at].clone());
        let report = Report::new("Plans: where accesses go", command)
            .lead("obliv: one queue, whoever asks takes the next piece. shard: a worker takes the pieces of its node first, then those of the nearest node that has any. distr: an engine for each node, which takes nothing else. Affinity on: workers are bound to cpus and the pool's pages to their home nodes; off: the system places both.")
            .machine(self.guest.machine().clone())
            .emulated()
            .fact("Caches", self.guest.caches())
            .fact("Last-level caches together", Unit::Bytes.show(caches))
            .fact(
                "Data",
                format!("TPC-H scale {}; each run in a process of its own: {WARM} runs that do not count, then the caches are emptied and one run is counted, from its begin to its last row, planning not included", self.scale),
            )
            .fact("Executor", "fused, a worker for each cpu")
            .section("Where the lines came from")
            .table(lines)
            .plot(bars)
            .section("From run to run")
            .plot(spreads.from_zero())
            .section("What the engine counts")
            .table(compared)
            .section("What is asked for")
            .table(judged)
            .section("Node pairs")
            .plots(counted.iter().map(Counted::heat))
            .results(json!(self.all));
        (report, tables)
    }

    /// Bytes of all last-level caches.
    fn caches(&self) -> f64 {
        (self.guest.cache_bytes() * self.guest.machine().nodes().len() as u64) as f64
    }

    /// Both shares side by side.
    fn compared(&self) -> Table {
        let header = [
            "query",
            "plan",
            "bytes by the engine",
            "by the last-level caches",
            "bytes from memory",
            "remote share by the engine",
            "remote share of lines",
            "points between",
            "spread of the runs, points",
        ];
        let mut table = Table::new(header).caption("The engine counts bytes of stored values that kernels read, and takes each worker to be on its node and each page on its home: without affinity it cannot know. The emulator counts all lines from memory, where they are, those of tables made by the query included. Medians; spread: standard deviation of the remote share of lines.");
        for both in self.all {
            let (read, share) = (both.read().median(), both.emulated.share());
            let points = |value: f64, known: bool| match known {
                true => Cell::written(format!("{value:.1}")),
                false => Cell::written("–"),
            };
            table.row([
                Cell::from(both.query.as_str()),
                Cell::from(both.emulated.variant.as_str()),
                Cell::number(read, Unit::Bytes),
                Cell::number(read / self.caches(), Unit::Ratio),
                Cell::number(both.emulated.lines().median() * 64.0, Unit::Bytes),
                Cell::number(both.engine_share().median(), Unit::Share),
                Cell::number(share.median(), Unit::Share),
                points(both.points(), both.variant.affinity),
                points(spread(&share), share.values().len() > 1),
            ]);
        }
        table
    }

    /// The bars of the project.
    fn judged(&self) -> Table {
        let mut table = Table::new(["query", "asked for", "found", "met"]);
        let mut row = |query: &str, asked: String, found: String, met: bool| {
            table.row([
                Cell::from(query),
                Cell::from(asked),
                Cell::from(found),
                match met {
                    true => Cell::from("yes"),
                    false => Cell::from("no").strong(),
                },
            ]);
        };
        for both in self.all.iter().filter(|both| both.variant.affinity) {
            let (plan, query) = (both.variant.plan.as_str(), both.query.as_str());
            if plan == "obliv" {
                let times = both.read().median() / self.caches();
                row(
                    query,
                    format!("bytes touched: at least {TOUCHED} times the last-level caches"),
                    format!("{times:.1} times"),
                    times >= TOUCHED,
                );
                let off = self.all.iter().find(|off| {
                    off.query == both.query && off.variant.plan == plan && !off.variant.affinity
                });
                let several = both.emulated.runs.len() > 1;
                if let Some(off) = off.filter(|_| several) {
                    let [on, off] = [both, off].map(|one| spread(&one.emulated.share()));
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
            row(
                query,
                format!("{plan} with affinity: engine and emulator within {POINTS} points"),
                format!("{:.1} points", both.points()),
                both.points() <= POINTS,
            );
        }
        table
    }
}
