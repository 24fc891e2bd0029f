//! Figures 7 and 8: every mapping of threads that differs.

use placement::{Classes, Placement, Random, Threads};
use report::{Axis, Cell, Line, Lines, Table, Unit};
use serde::Serialize;
use serde_json::json;

use super::section::{Section, mean, step};
use super::text;
use super::traffic::{Counted, Model, Task};
use super::variants::{OS, Row, SCHEDULER, Setting, reached};
use super::work::{System, small};
use crate::desk::Desk;
use crate::error::Result;

/// The numbers of chunks.
const COUNTS: [usize; 3] = [10, 100, 1000];
/// The most mappings that are counted one by one; of more as many are drawn.
const MOST: u128 = 5_000;
/// How much more than the best a mapping may have and still be called one of the best.
const NEAR: f64 = 1.05;

/// All mappings over an array in so many chunks.
#[derive(Debug, Serialize)]
pub(super) struct Mapped {
    chunks: usize,
    /// One for each mapping, the slowest first, as the text orders them.
    mappings: Vec<Counted>,
    /// The strategies, for comparison.
    rows: Vec<Row>,
}

/// Counts every mapping for each number of chunks.
///
/// # Errors
/// Those of placing; [`Error::Interrupted`](crate::Error::Interrupted).
pub(super) fn count(
    setting: &Setting,
    quick: bool,
    desk: &mut Desk<'_>,
) -> Result<(Vec<Mapped>, String)> {
    let site = &setting.site;
    let classes = Classes::new(site, &Threads::in_groups(setting.threads, 1)?)?;
    let (placements, how) = mappings(&classes, quick);
    let model = Model::of(site);
    let system = System::Groups;
    let mut all = Vec::new();
    for chunks in COUNTS {
        step(
            desk,
            &format!("{} mappings, {chunks} chunks", placements.len()),
        )?;
        let case = small(chunks, site.machine().nodes().len());
        let sharing = system.sharing(setting.threads);
        let task = Task::grouped(sharing, setting.threads, &case.chunks, case.keep, false)?;
        let counts = placements
            .iter()
            .map(|placement| model.count(placement, &task, 1));
        let mut mappings: Vec<Counted> = counts.collect();
        mappings.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        all.push(Mapped {
            chunks,
            mappings,
            rows: setting.compare(system, &case)?,
        });
    }
    Ok((all, how))
}

/// One placement of each class, or some of them; and which, in words.
pub(super) fn mappings(classes: &Classes, quick: bool) -> (Vec<Placement>, String) {
    match classes.count().filter(|count| *count <= MOST) {
        Some(count) if quick => (
            classes.iter().step_by(20).collect(),
            format!("every twentieth of {count} mappings that differ"),
        ),
        Some(count) => (
            classes.iter().collect(),
            format!("all {count} mappings that differ"),
        ),
        None => {
            let mut random = Random::new(1);
            let drawn = if quick { 50 } else { 1000 };
            let all = (0..drawn).map(|_| classes.sample(&mut random)).collect();
            let many = classes
                .count()
                .map_or("more than 10^38".to_owned(), |count| count.to_string());
            (all, format!("{drawn} of {many} mappings, drawn by chance"))
        }
    }
}

impl Mapped {
    fn least(&self) -> f64 {
        let all = self.mappings.iter().map(|counted| counted.seconds);
        all.fold(f64::INFINITY, f64::min)
    }

    fn of(&self, variant: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.variant == variant)
    }

    /// The part of the mappings for which something holds.
    fn share(&self, holds: impl Fn(&Counted) -> bool) -> f64 {
        let count = self
            .mappings
            .iter()
            .filter(|counted| holds(counted))
            .count();
        count as f64 / self.mappings.len() as f64
    }

    fn slower(&self) -> Option<f64> {
        let os = self.of(OS)?.counted.seconds;
        Some(self.share(|counted| counted.seconds > os))
    }

    /// How much faster than the system the best mapping is.
    fn speed(&self) -> Option<f64> {
        Some(self.of(OS)?.counted.seconds / self.least())
    }

    /// Bytes from memory of the mappings that are slower than the system, over those of the best.
    fn accesses(&self) -> Option<f64> {
        let os = self.of(OS)?.counted.seconds;
        let bytes = |counted: &Counted| counted.local + counted.remote;
        let slow = self.mappings.iter().filter(|counted| counted.seconds > os);
        Some(mean(slow.map(bytes))? / bytes(self.mappings.last()?))
    }

    /// What the strategies with a name reach of what the best mapping gains.
    fn reached(&self, figure: impl Fn(&Counted) -> f64) -> Option<f64> {
        let rows: Vec<&Row> = self
            .rows
            .iter()
            .filter(|row| row.variant != SCHEDULER)
            .collect();
        let best = self
            .mappings
            .iter()
            .map(&figure)
            .fold(f64::INFINITY, f64::min);
        reached(&rows, best, figure)
    }

    fn lines(&self) -> Lines {
        let (x, y) = (
            Axis::new("mappings, the slowest first", Unit::Count),
            Axis::new("bytes from memory", Unit::Bytes).from_zero(),
        );
        let curve = |name: &str, figure: fn(&Counted) -> f64| {
            let points = self.mappings.iter().enumerate();
            Line::new(
                name,
                points.map(|(at, counted)| (at as f64, figure(counted))),
            )
        };
        Lines::new(format!("{} chunks", self.chunks), x, y)
            .line(curve("local", |counted| counted.local))
            .line(curve("remote", |counted| counted.remote))
    }
}

/// Figure 7: local and remote bytes of every mapping.
pub(super) fn figure_7(setting: &Setting, all: &[Mapped], how: &str) -> Section {
    let over = |figure: &dyn Fn(&Mapped) -> Option<f64>| mean(all.iter().filter_map(figure));
    let found = [
        (
            "mappings",
            all.first().map(|one| one.mappings.len() as f64),
            None,
        ),
        ("slower", over(&Mapped::slower), None),
        (
            "speed",
            all.iter().filter_map(Mapped::speed).reduce(f64::max),
            None,
        ),
        ("accesses", over(&Mapped::accesses), None),
        (
            "best",
            over(&|one| Some(one.share(|counted| counted.seconds <= NEAR * one.least()))),
            None,
        ),
        (
            "far",
            over(&|one| Some(one.share(|counted| counted.remote > counted.local))),
            None,
        ),
    ];
    let reached = over(&|one| one.reached(|counted| counted.seconds));
    let energy = over(&|one| one.reached(|counted| counted.memory_joules));
    let show = |share: Option<f64>| Unit::Share.show(share.unwrap_or(f64::NAN));
    Section {
        key: "7".to_owned(),
        heading: format!("Figure 7: all mappings, {}", setting.site.machine().name()),
        texts: vec![
            format!(
                "{} threads in groups of four on 1 GB, {how}. Mappings are in the order of their time by the model, as the text has them by measured time. Among the best is who takes at most 5 % longer than the best.",
                setting.threads
            ),
            format!(
                "Of what the best mapping gains over the system, compact, sparse, shared and petri reach {} in the mean by time, and {} by the energy of memory; in the text 48 % of the speed-up and 26 % of the energy.",
                show(reached),
                show(energy)
            ),
            "Distance, links and crowded memories make the slowest mapping about half as fast as the best one, by the model, in steps as the text's curve has them: groups on one node, groups that are divided, and none that is together. That most are slower than the system, in the text 7 %, is because the model's system has no faults: each thread has a core of its own at all times, the array lies on both nodes, and a move costs a cold cache alone. The best mapping is about as fast as that system, and the text's is 3.89 times as fast as its own. Threads beside each other on one core, pages that are moved after threads, locks and barriers are not in the model; whether they are the difference was not tested.".to_owned(),
        ],
        tables: vec![strategies(all), text::table(7, &found)],
        plots: all.iter().map(|one| vec![one.lines().into()]).collect(),
        raw: json!({ "mapped": all, "counted": found, "reached": { "time": reached, "memory_energy": energy }, "text": text::raw(7) }),
    }
}

/// Where the strategies stand among the mappings.
fn strategies(all: &[Mapped]) -> Table {
    let mut table = Table::new(["array", "strategy", "time", "remote share", "mappings that are better"])
        .caption("Time: the best mapping = 1. The scheduler also chooses which thread reads what, and its chunks lie on the nodes in turn: no mapping can do that.");
    for one in all {
        for row in &one.rows {
            let better = one.share(|counted| counted.seconds < row.counted.seconds * (1.0 - 1e-9));
            table.row([
                Cell::from(row.case.as_str()),
                Cell::from(row.variant.as_str()),
                Cell::number(row.counted.seconds / one.least(), Unit::Ratio),
                Cell::number(row.counted.remote_share(), Unit::Share),
                Cell::number(better, Unit::Share),
            ]);
        }
    }
    table
}

/// Figure 8: misses of the last-level caches, in the same order.
pub(super) fn figure_8(setting: &Setting, all: &[Mapped]) -> Section {
    let (x, y) = (
        Axis::new("mappings, the slowest first", Unit::Count),
        Axis::new(
            "misses of what the last-level caches were asked for",
            Unit::Share,
        ),
    );
    let curve = |one: &Mapped| {
        let points = one.mappings.iter().enumerate();
        let points = points.map(|(at, counted)| (at as f64, counted.miss_ratio()));
        Line::new(format!("{} chunks", one.chunks), points)
    };
    let lines = Lines::new("Last-level misses of all mappings", x, y);
    let lines = all.iter().fold(lines, |lines, one| lines.line(curve(one)));
    let cache = Unit::Bytes.show(Model::of(&setting.site).cache_bytes() as f64);
    Section {
        key: "8".to_owned(),
        heading: format!(
            "Figure 8: last-level misses of all mappings, {}",
            setting.site.machine().name()
        ),
        texts: vec![format!(
            "The same mappings in the same order. Caches of {cache} are modelled, a node's each. What a query keeps is read again by a neighbour: it is found where both use one cache and the chunk fits. In the text the ratio falls as mappings get better, and is lower with fewer chunks, which it explains by small chunks fitting into caches."
        )],
        tables: Vec::new(),
        plots: vec![vec![lines.into()]],
        raw: json!({ "cache_bytes": Model::of(&setting.site).cache_bytes() }),
    }
}
