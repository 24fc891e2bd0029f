//! Tables and plots of costs, and facts about how they were measured.

use report::{Axis, Bars, Cell, Line, Lines, Sample, Table, Unit};

use super::costs::Costs;

/// The name of a cost, with its unit.
pub(super) const METRIC: &str = "lines of 64 bytes read from memory, weighted with the distance of the node they are on (local = 1)";

/// The facts about how costs were measured; facts that all workloads share are listed once.
pub(super) fn facts(all: &[Costs], recorded: bool) -> Vec<(String, String)> {
    let each: Vec<_> = all.iter().map(|costs| told(costs, recorded)).collect();
    let Some(first) = each.first() else {
        return Vec::new();
    };
    let mut facts = Vec::new();
    for (at, (name, value)) in first.iter().enumerate() {
        if each.iter().all(|own| own[at].1 == *value) {
            facts.push(((*name).to_owned(), value.clone()));
            continue;
        }
        let own = all.iter().zip(&each);
        let own =
            own.map(|(costs, own)| (format!("{name}: {}", costs.workload), own[at].1.clone()));
        facts.extend(own);
    }
    facts
}

/// The facts about how costs were measured: on the machine of the recording, not on today's.
fn told(costs: &Costs, recorded: bool) -> Vec<(&'static str, String)> {
    let or_not = |text: &str| match text {
        "" => "not recorded".to_owned(),
        text => text.to_owned(),
    };
    let mut all = vec![
        ("Workload", or_not(&costs.about)),
        ("Cost", or_not(&costs.metric)),
        ("Caches", or_not(&costs.caches)),
    ];
    if recorded {
        all.extend([
            ("Recorded on", or_not(&costs.date)),
            ("Recorded with", or_not(&costs.command)),
            ("Commit of the recording", or_not(&costs.commit)),
        ]);
    }
    all
}

pub(super) fn lead(all: &[Costs]) -> String {
    let one = |costs: &Costs| {
        let sorted = Sample::from(costs.sorted());
        let (best, worst) = sorted.range();
        format!(
            "{}: the dearest of {} placements costs {} the cheapest",
            costs.workload,
            costs.placements.len(),
            Unit::Ratio.show(worst / best)
        )
    };
    let all: Vec<String> = all.iter().map(one).collect();
    format!("{}.", all.join("; "))
}

pub(super) fn distribution(all: &[Costs]) -> Table {
    let mut table = Table::new([
        "workload",
        "placements",
        "cheapest",
        "median",
        "dearest",
        "dearest to cheapest",
        "within 5 % of the cheapest",
    ])
    .caption(if all.iter().all(|costs| costs.metric == METRIC) {
        format!("Cost: {METRIC}.")
    } else {
        "Cost: as it was recorded; the report says what is known of it.".to_owned()
    });
    for costs in all {
        let sorted = costs.sorted();
        let sample = Sample::from(sorted.clone());
        let (best, worst) = sample.range();
        let near = sorted.iter().filter(|cost| **cost <= best * 1.05).count();
        table.row([
            Cell::from(costs.workload.as_str()),
            Cell::number(sorted.len() as f64, Unit::Count),
            Cell::number(best, Unit::Count),
            Cell::number(sample.median(), Unit::Count),
            Cell::number(worst, Unit::Count),
            Cell::number(worst / best, Unit::Ratio),
            Cell::number(near as f64 / sorted.len() as f64, Unit::Share),
        ]);
    }
    table
}

pub(super) fn by_strategy(all: &[Costs]) -> Table {
    let mut table = Table::new([
        "strategy",
        "workload",
        "local",
        "remote",
        "remote share",
        "cost to cheapest",
        "placements that are cheaper",
    ])
    .caption("os: the kernel places the threads; the median of its runs.");
    for costs in all {
        let sorted = costs.sorted();
        for named in &costs.strategies {
            let cheaper = sorted.iter().filter(|cost| **cost < named.cost).count();
            table.row([
                Cell::from(named.strategy.as_str()),
                Cell::from(costs.workload.as_str()),
                Cell::number(named.local as f64, Unit::Count),
                Cell::number(named.remote as f64, Unit::Count),
                Cell::number(
                    // Of nothing there is no share.
                    named.remote as f64 / (named.local + named.remote) as f64,
                    Unit::Share,
                ),
                Cell::number(named.cost / sorted[0], Unit::Ratio),
                Cell::number(cheaper as f64 / sorted.len() as f64, Unit::Share),
            ]);
        }
    }
    table
}

pub(super) fn curve(all: &[Costs]) -> Lines {
    let x = Axis::new("placements, cheapest first", Unit::Share);
    let mut lines = Lines::new(
        "Cost of every placement",
        x,
        Axis::new("cost, times the cheapest", Unit::Ratio),
    );
    for costs in all {
        let sorted = costs.sorted();
        let last = (sorted.len().max(2) - 1) as f64;
        let points = sorted
            .iter()
            .enumerate()
            .map(|(at, cost)| (at as f64 / last, cost / sorted[0]));
        lines = lines.line(Line::new(costs.workload.as_str(), points));
    }
    lines
}

pub(super) fn strategy_bars(all: &[Costs]) -> Bars {
    let mut bars = Bars::new("Cost by strategy", "cost, times the cheapest", Unit::Ratio)
        .series(all.iter().map(|costs| costs.workload.as_str()));
    let names = all.first().map_or(&[][..], |costs| &costs.strategies);
    for named in names {
        let cost = |costs: &Costs| {
            let mut all = costs.strategies.iter();
            let own = all.find(|own| own.strategy == named.strategy);
            own.map_or(f64::NAN, |own| own.cost / costs.sorted()[0])
        };
        bars.category(named.strategy.as_str(), all.iter().map(cost));
    }
    let random = |costs: &Costs| Sample::from(costs.sorted()).median() / costs.sorted()[0];
    bars.category("median of all", all.iter().map(random));
    bars
}
