//! A part of the page: words, tables, plots and raw numbers.

use std::sync::atomic::Ordering;

use report::{Bars, Cell, Plot, Report, Table, Unit};
use serde_json::Value;

use super::traffic::Counted;
use super::variants::{OS, Row};
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

/// A line for each variant of each case; its cost and its busiest core beside those of the system at `base`.
pub(super) fn table(rows: &[Row], of: &str, base: &str, caption: &str) -> Table {
    let header = [
        "threads",
        of,
        "strategy",
        "from memory",
        "local",
        "remote",
        "remote share",
        "cache misses",
        "weighted",
        "busiest core",
        "variation",
    ];
    let mut table = Table::new(header).caption(format!(
        "{caption} Cache misses: of what the last-level caches were asked for. Weighted: bytes from memory, those of other nodes times their distance, and of them those of the busiest core; both beside those under os at {base}. Variation: standard deviation over mean where the system moves threads."
    ));
    for row in rows {
        let counted = &row.counted;
        let share = |figure: fn(&Counted) -> f64| {
            Cell::number(
                relative(rows, base, row, figure).unwrap_or(f64::NAN),
                Unit::Share,
            )
        };
        table.row([
            Cell::from(row.system.name()),
            Cell::from(row.case.as_str()),
            Cell::from(row.variant.as_str()),
            Cell::number(counted.local + counted.remote, Unit::Bytes),
            Cell::number(counted.local, Unit::Bytes),
            Cell::number(counted.remote, Unit::Bytes),
            Cell::number(counted.remote_share(), Unit::Share),
            Cell::number(counted.miss_ratio(), Unit::Share),
            share(|counted| counted.weighted),
            share(|counted| counted.busiest),
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
