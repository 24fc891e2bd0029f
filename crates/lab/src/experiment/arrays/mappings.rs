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
    /// One for each mapping, those with most weighted bytes first, as the text orders them by speed.
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
        mappings.sort_by(|a, b| b.weighted.total_cmp(&a.weighted));
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
        let all = self.mappings.iter().map(|counted| counted.weighted);
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
        let os = self.of(OS)?.counted.weighted;
        Some(self.share(|counted| counted.weighted > os))
    }

    /// Bytes from memory of the mappings that are slower than the system, over those of the best.
    fn accesses(&self) -> Option<f64> {
        let os = self.of(OS)?.counted.weighted;
        let bytes = |counted: &Counted| counted.local + counted.remote;
        let slow = self.mappings.iter().filter(|counted| counted.weighted > os);
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
            Axis::new("mappings, weighted bytes falling", Unit::Count),
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
        ("accesses", over(&Mapped::accesses), None),
        (
            "best",
            over(&|one| Some(one.share(|counted| counted.weighted <= NEAR * one.least()))),
            None,
        ),
        (
            "far",
            over(&|one| Some(one.share(|counted| counted.remote > counted.local))),
            None,
        ),
    ];
    let reached = over(&|one| one.reached(|counted| counted.weighted));
    let lines = over(&|one| one.reached(|counted| counted.local + counted.remote));
    let show = |share: Option<f64>| Unit::Share.show(share.unwrap_or(f64::NAN));
    Section {
        key: "7".to_owned(),
        heading: format!("Figure 7: all mappings, {}", setting.site.machine().name()),
        texts: vec![
            format!(
                "{} threads in groups of four on 1 GB, {how}. The text orders mappings by speed; here those come first that read most bytes from memory, those of other nodes times their distance. Among the best is who has at most 5 % more than the best, and slower stands for more than the system.",
                setting.threads
            ),
            format!(
                "Of what the best mapping gains over the system, compact, sparse, shared and petri reach {} in the mean by weighted bytes, and {} by plain ones; in the text 48 % of the speed-up and 26 % of the energy.",
                show(reached),
                show(lines)
            ),
        ],
        tables: vec![strategies(all), text::table(7, &found)],
        plots: all.iter().map(|one| vec![one.lines().into()]).collect(),
        raw: json!({ "mapped": all, "counted": found, "reached": { "weighted": reached, "bytes": lines }, "text": text::raw(7) }),
    }
}

/// Where the strategies stand among the mappings.
fn strategies(all: &[Mapped]) -> Table {
    let mut table = Table::new(["array", "strategy", "weighted bytes", "remote share", "mappings that are better"])
        .caption("Weighted bytes: the best mapping = 1. The scheduler also chooses which thread reads what, and its chunks lie on the nodes in turn: no mapping can do that.");
    for one in all {
        for row in &one.rows {
            let better =
                one.share(|counted| counted.weighted < row.counted.weighted * (1.0 - 1e-9));
            table.row([
                Cell::from(row.case.as_str()),
                Cell::from(row.variant.as_str()),
                Cell::number(row.counted.weighted / one.least(), Unit::Ratio),
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
        Axis::new("mappings, weighted bytes falling", Unit::Count),
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
