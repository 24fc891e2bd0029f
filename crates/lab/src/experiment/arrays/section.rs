//! A part of the page: words, tables, plots and raw numbers.

use std::sync::atomic::Ordering;

use report::{Bars, Cell, Plot, Report, Table, Unit};
use serde_json::Value;

use super::traffic::Counted;
use super::variants::{OS, Row};
use super::work::System;
use crate::desk::Desk;
use crate::error::{Error, Result};

/// What a figure, or something beside the figures, came to.
#[derive(Clone, Debug)]
pub(super) struct Section {
    /// The name of its raw numbers.
    pub key: String,
    pub heading: String,
    pub texts: Vec<String>,
    pub tables: Vec<Table>,
    /// Each row of plots side by side.
    pub plots: Vec<Vec<Plot>>,
    pub raw: Value,
}

impl Section {
    /// Adds it to a report.
    pub(super) fn add(&self, report: Report) -> Report {
        let report = report.section(self.heading.clone());
        let report = self
            .texts
            .iter()
            .fold(report, |report, text| report.text(text.clone()));
        let report = self
            .tables
            .iter()
            .fold(report, |report, table| report.table(table.clone()));
        self.plots
            .iter()
            .fold(report, |report, plots| match plots.as_slice() {
                [one] => report.plot(one.clone()),
                many => report.plots(many.to_vec()),
            })
    }
}

/// Tells of a step, and ends where the user has asked for it.
///
/// # Errors
/// [`Error::Interrupted`].
pub(super) fn step(desk: &mut Desk<'_>, text: &str) -> Result<()> {
    if desk.stop.load(Ordering::Relaxed) {
        return Err(Error::Interrupted);
    }
    desk.progress(text);
    Ok(())
}

/// A line for each variant of each case; its weighted bytes and its speed beside those of the system at `base`.
pub(super) fn table(rows: &[Row], of: &str, base: &str, caption: &str) -> Table {
    let header = [
        "threads",
        of,
        "strategy",
        "from memory",
        "remote share",
        "cache misses",
        "weighted",
        "time",
        "speed-up",
        "memory's energy",
        "all energy",
        "variation",
    ];
    let mut table = Table::new(header).caption(format!(
        "{caption} Cache misses: of what the last-level caches were asked for. Weighted: bytes from memory, those of other nodes times their distance, beside those under os at {base}. Time and energy: of the model of the machine; the speed-up is over os at {base}. Variation: of weighted bytes, standard deviation over mean where the system moves threads."
    ));
    for row in rows {
        let counted = &row.counted;
        let beside =
            |figure: fn(&Counted) -> f64| relative(rows, base, row, figure).unwrap_or(f64::NAN);
        table.row([
            Cell::from(row.system.name()),
            Cell::from(row.case.as_str()),
            Cell::from(row.variant.as_str()),
            Cell::number(counted.local + counted.remote, Unit::Bytes),
            Cell::number(counted.remote_share(), Unit::Share),
            Cell::number(counted.miss_ratio(), Unit::Share),
            Cell::number(beside(|counted| counted.weighted), Unit::Share),
            Cell::number(counted.seconds, Unit::Seconds),
            Cell::number(1.0 / beside(|counted| counted.seconds), Unit::Ratio),
            Cell::number(counted.memory_joules, Unit::Joules),
            Cell::number(counted.joules, Unit::Joules),
            row.variation.map_or(Cell::written("–"), |variation| {
                Cell::number(variation, Unit::Share)
            }),
        ]);
    }
    table
}

/// A figure of a row as a share of that under the system at a base case.
pub(super) fn relative(
    rows: &[Row],
    base: &str,
    row: &Row,
    figure: impl Fn(&Counted) -> f64,
) -> Option<f64> {
    let same = |other: &&Row| {
        (other.system, other.case.as_str(), other.variant.as_str()) == (row.system, base, OS)
    };
    let base = rows.iter().find(same)?;
    Some(figure(&row.counted) / figure(&base.counted))
}

/// How much faster than the system at a base case the variants of each case are, by the model.
pub(super) fn speeds(rows: &[Row], of: System, base: &str, cases: &[&str]) -> Plot {
    let own: Vec<&Row> = rows.iter().filter(|row| row.system == of).collect();
    let mut names: Vec<&str> = Vec::new();
    for row in &own {
        if !names.contains(&row.variant.as_str()) {
            names.push(&row.variant);
        }
    }
    let title = format!("{}: speed-up over os at {base}, by the model", of.name());
    let mut bars = Bars::new(title, "times as fast", Unit::Ratio).series(names.iter().copied());
    for case in cases {
        let value = |name: &&str| {
            let row = own
                .iter()
                .find(|row| row.case == *case && row.variant == **name);
            let time = row.and_then(|row| relative(rows, base, row, |counted| counted.seconds));
            1.0 / time.unwrap_or(f64::NAN)
        };
        bars.category(*case, names.iter().map(value));
    }
    bars.into()
}

/// Local and remote bytes of the variants of a case.
pub(super) fn bytes(rows: &[&Row], title: String) -> Plot {
    let mut bars = Bars::new(title, "bytes from memory", Unit::Bytes)
        .series(["local", "remote"])
        .stacked();
    for row in rows {
        bars.category(
            row.variant.as_str(),
            [row.counted.local, row.counted.remote],
        );
    }
    bars.into()
}

/// The mean of what there is; `None` of nothing.
pub(super) fn mean(values: impl IntoIterator<Item = f64>) -> Option<f64> {
    let finite: Vec<f64> = values
        .into_iter()
        .filter(|value| value.is_finite())
        .collect();
    (!finite.is_empty()).then(|| finite.iter().sum::<f64>() / finite.len() as f64)
}
