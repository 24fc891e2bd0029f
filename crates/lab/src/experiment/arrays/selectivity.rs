//! Figures 5 and 6: strategies by selectivity, and what memory is asked for.

use report::{Bars, Cell, Plot, Table, Unit};
use serde_json::json;

use super::section::{Section, bytes, mean, speeds, step, table};
use super::text;
use super::variants::{OS, RANDOM, Row, SCHEDULER, Setting, reached};
use super::work::{System, of_the_scripts, of_the_text, selectivity};
use crate::desk::Desk;
use crate::error::Result;

/// The case that others are compared with.
const BASE: &str = "EQ";

/// Every case under every strategy, for both systems.
///
/// # Errors
/// Those of placing; [`Error::Interrupted`](crate::Error::Interrupted).
pub(super) fn rows(setting: &Setting, scale: u64, desk: &mut Desk<'_>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for system in [System::Groups, System::Instances] {
        for case in selectivity(scale, setting.site.machine().nodes().len()) {
            step(
                desk,
                &format!("selectivity: {}, {}", system.name(), case.name),
            )?;
            rows.extend(setting.compare(system, &case)?);
        }
    }
    Ok(rows)
}

fn of<'r>(rows: &'r [Row], system: System, case: &str) -> Vec<&'r Row> {
    let own = rows
        .iter()
        .filter(|row| row.system == system && row.case == case);
    own.collect()
}

/// The names of the cases, in their order.
fn cases(rows: &[Row]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for row in rows {
        if !names.contains(&row.case.as_str()) {
            names.push(&row.case);
        }
    }
    names
}

/// The system's own over the best random mapping, case by case.
fn ratios(rows: &[Row], system: System, figure: impl Fn(&Row) -> f64) -> Vec<f64> {
    let ratio = |case: &&str| {
        let own = of(rows, system, case);
        let value = |name: &str| {
            own.iter()
                .find(|row| row.variant == name)
                .map(|row| figure(row))
        };
        Some(value(OS)? / value(RANDOM)?)
    };
    let names = cases(rows);
    names
        .iter()
        .filter_map(ratio)
        .filter(|ratio| ratio.is_finite())
        .collect()
}

/// Figure 5.
pub(super) fn figure_5(setting: &Setting, rows: &[Row]) -> Section {
    let remote = |system| mean(ratios(rows, system, |row| row.counted.remote));
    let speed = |system| {
        let all = ratios(rows, system, |row| row.counted.seconds);
        all.into_iter().reduce(f64::max)
    };
    let found = [
        ("remote", remote(System::Groups), remote(System::Instances)),
        ("speed", speed(System::Groups), speed(System::Instances)),
    ];
    let mut plots: Vec<Vec<Plot>> = Vec::new();
    for case in cases(rows) {
        let title = format!("{case}, {}", System::Groups.name());
        plots.push(vec![bytes(&of(rows, System::Groups, case), title)]);
    }
    let names = cases(rows);
    let all = [System::Groups, System::Instances];
    plots.extend(all.map(|system| vec![speeds(rows, system, BASE, &names)]));
    for key in ["speed", "remote"] {
        plots.extend(text::bars(5, key, &found).map(|bars| vec![bars.into()]));
    }
    let machine = setting.site.machine().name();
    Section {
        key: "5".to_owned(),
        heading: format!("Figure 5: strategies by selectivity, {machine}"),
        texts: vec![
            "Chunks of 250 x 250 x 500 doubles, 210 of them unless divided. EQ: one chunk exactly. L and H: 20 and 70 % are filtered out; SC, FC, MC: of one chunk, a fifth of them, all. The whole of each chunk is read, and what is kept is written and read again.".to_owned(),
            "Where a query touches one chunk, one group has all the work; the scheduler divides the chunk among all threads, which reads some of it remotely and leaves no core idle.".to_owned(),
        ],
        tables: vec![
            table(rows, "query", BASE, "Bytes are counted by a model."),
            text::table(5, &found),
            queries(),
        ],
        plots,
        raw: json!({ "rows": rows, "counted": found, "text": text::raw(5), "queries": {
            "text": of_the_text(), "scripts": of_the_scripts(210, [251, 501, 501]),
        } }),
    }
}

/// The queries in AFL: as the text has them, and as the scripts of its authors do.
fn queries() -> Table {
    let mut table = Table::new(["query", "of", "asks for", "AFL"]).caption(
        "seismic: atoll load seismic earth.atoll --chunk 250,250,500 --chunks 210. shots, after the authors' scripts, which differ from the text: atoll load seismic earth.atoll --trials --chunk 251,501,501 --chunks 210 --name shots.",
    );
    let all = [
        ("the text", of_the_text()),
        ("the scripts", of_the_scripts(210, [251, 501, 501])),
    ];
    for (whose, queries) in all {
        for query in queries {
            table.row([query.name, whose, query.about, &query.afl].map(Cell::from));
        }
    }
    table
}

/// Figure 6: the energy of memory, by the model.
pub(super) fn figure_6(setting: &Setting, rows: &[Row]) -> Section {
    let joules = |row: &Row| row.counted.memory_joules;
    let saved = |system| mean(ratios(rows, system, joules)).map(|ratio| 1.0 - 1.0 / ratio);
    let most = |system| ratios(rows, system, joules).into_iter().reduce(f64::max);
    let gained = |system| {
        mean(cases(rows).into_iter().filter_map(|case| {
            let own = of(rows, system, case);
            let others = own.iter().filter(|row| row.variant != SCHEDULER);
            let best = others.map(|row| joules(row)).fold(f64::INFINITY, f64::min);
            reached(&own, best, |counted| counted.memory_joules)
        }))
    };
    let both = |figure: &dyn Fn(System) -> Option<f64>| {
        (figure(System::Groups), figure(System::Instances))
    };
    let found = [
        ("saved", both(&saved)),
        ("energy", both(&most)),
        ("reached", both(&gained)),
    ]
    .map(|(key, (groups, instances))| (key, groups, instances));
    let plots =
        [System::Groups, System::Instances].map(|system| vec![relative(rows, system).into()]);
    let machine = setting.site.machine().name();
    Section {
        key: "6".to_owned(),
        heading: format!("Figure 6: the energy of memory, {machine}"),
        texts: vec![
            format!("The text measured the energy of memory; here a model computes it: {} pJ for each bit that memory delivers, and {} W of each node's memory for as long as the query takes, beside the system's own at EQ.", setting.site.machine().rates().map_or(0, |rates| rates.memory_pj), setting.site.machine().rates().map_or(0.0, |rates| f64::from(rates.memory_mw) / 1e3)),
            "A mapping saves what it spares of bytes, by caches, and of time. Every query reads its chunks once, and most of the energy goes with these bytes, so that little can be saved. Why the text's saved 68 % the model does not say.".to_owned(),
        ],
        tables: vec![text::table(6, &found)],
        plots: plots.to_vec(),
        raw: json!({ "counted": found, "text": text::raw(6) }),
    }
}

fn relative(rows: &[Row], system: System) -> Bars {
    let joules = |row: &Row| row.counted.memory_joules;
    let base = of(rows, system, BASE);
    let base = base
        .iter()
        .find(|row| row.variant == OS)
        .map_or(f64::NAN, |row| joules(row));
    let names: Vec<&str> = of(rows, system, BASE)
        .iter()
        .map(|row| row.variant.as_str())
        .collect();
    let mut bars = Bars::new(
        system.name(),
        "energy of memory, the system's at EQ = 1",
        Unit::Ratio,
    )
    .series(names.iter().copied());
    for case in cases(rows) {
        let own = of(rows, system, case);
        let value = |name: &&str| {
            let row = own.iter().find(|row| row.variant == **name);
            row.map_or(f64::NAN, |row| joules(row) / base)
        };
        bars.category(case, names.iter().map(value));
    }
    bars
}
