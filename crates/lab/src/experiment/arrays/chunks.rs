//! Figures 4 and 9: strategies by the number of chunks.

use placement::cost::Model;
use report::{Bars, Plot, Unit};
use serde_json::json;
use topology::Machine;

use super::section::{Section, bytes, mean, relative, speeds, step, table};
use super::text;
use super::variants::{OS, RANDOM, Row, Setting, reached};
use super::work::{Case, System, large, small};
use crate::desk::Desk;
use crate::error::Result;

/// The numbers of chunks.
const COUNTS: [usize; 3] = [10, 100, 1000];
/// The case that others are compared with.
const BASE: &str = "100 chunks";

/// Figure 4: 1 GB by number of chunks, both systems, on one machine.
///
/// # Errors
/// Those of placing; [`Error::Interrupted`](crate::Error::Interrupted).
pub(super) fn figure_4(setting: &Setting, desk: &mut Desk<'_>) -> Result<Section> {
    let machine = setting.site.machine();
    let nodes = machine.nodes().len();
    let mut rows = Vec::new();
    let mut plots: Vec<Vec<Plot>> = Vec::new();
    for system in [System::Groups, System::Instances] {
        let mut own = Vec::new();
        for count in COUNTS {
            step(
                desk,
                &format!("figure 4: {}, {count} chunks", system.name()),
            )?;
            let case = small(count, nodes);
            let found = setting.compare(system, &case)?;
            let title = format!("{}, {count} chunks", system.name());
            own.push(bytes(&found.iter().collect::<Vec<_>>(), title));
            rows.extend(found);
        }
        plots.extend(own.into_iter().map(|plot| vec![plot]));
    }
    let found = [
        (
            "remote",
            less_remote(&rows, System::Groups),
            less_remote(&rows, System::Instances),
        ),
        (
            "reached",
            gain(&rows, System::Groups),
            gain(&rows, System::Instances),
        ),
        (
            "speed",
            speed(&rows, System::Groups),
            speed(&rows, System::Instances),
        ),
        (
            "variation",
            variation(&rows, System::Groups),
            variation(&rows, System::Instances),
        ),
    ];
    let names = COUNTS.map(|count| format!("{count} chunks"));
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let speeds = [System::Groups, System::Instances].map(|of| speeds(&rows, of, BASE, &names));
    plots.extend(speeds.map(|plot| vec![plot]));
    for key in ["speed", "remote"] {
        plots.extend(text::bars(4, key, &found).map(|bars| vec![bars.into()]));
    }
    Ok(Section {
        key: "4".to_owned(),
        heading: format!(
            "Figure 4: strategies by the number of chunks, {}",
            machine.name()
        ),
        texts: vec![format!(
            "1 GB in so many chunks; a query reads all of it and keeps 80 %. {} threads in groups or instances of four. The scheduler's chunks lie where Atoll puts them, a node after the other; all others' where the first thread of a group loaded them.",
            setting.threads
        ), "Where the model is below the text: it knows a byte's way through the machine, and its system gives every thread a core at all times, spreads what it loads over both nodes, and moves threads for nothing but a cold cache. What the text's real one lost besides, such as by threads beside each other on one core, pages moved after them, locks and barriers, no count of bytes tells. Share of the attainable: the mean over the named strategies where 5 % or more can be gained. A strategy that is slower than the system counts as 0 in it, not as a loss, so that it may not be set beside the text's without that.".to_owned()],
        tables: vec![
            table(&rows, "array", BASE, "Bytes are counted by a model."),
            text::table(4, &found),
        ],
        plots,
        raw: json!({ "rows": rows, "counted": found, "text": text::raw(4) }),
    })
}

/// How much faster the best random mapping is at the most chunks than the system at the base.
fn speed(rows: &[Row], system: System) -> Option<f64> {
    let last = format!("{} chunks", COUNTS[COUNTS.len() - 1]);
    let mut own = rows.iter().filter(|row| row.system == system);
    let row = own.find(|row| row.variant == RANDOM && row.case == last)?;
    Some(1.0 / relative(rows, BASE, row, |counted| counted.seconds)?)
}

/// How many times more remote bytes the system reads than the best random mapping, at most over the cases.
fn less_remote(rows: &[Row], system: System) -> Option<f64> {
    let ratios = cases(rows, system).into_iter().filter_map(|own| {
        let of = |name: &str| own.iter().find(|row| row.variant == name);
        Some(of(OS)?.counted.remote / of(RANDOM)?.counted.remote)
    });
    ratios.filter(|ratio| ratio.is_finite()).reduce(f64::max)
}

/// What named strategies reach of the gain, in the mean over the cases: the best of all that was counted is attainable.
fn gain(rows: &[Row], system: System) -> Option<f64> {
    mean(cases(rows, system).into_iter().filter_map(|own| {
        let others = own
            .iter()
            .filter(|row| row.variant != super::variants::SCHEDULER);
        let best = others
            .map(|row| row.counted.seconds)
            .fold(f64::INFINITY, f64::min);
        reached(&own, best, |counted| counted.seconds)
    }))
}

/// The largest coefficient of variation.
fn variation(rows: &[Row], system: System) -> Option<f64> {
    let own = rows.iter().filter(|row| row.system == system);
    own.filter_map(|row| row.variation).reduce(f64::max)
}

/// The rows of each case of a system.
fn cases(rows: &[Row], system: System) -> Vec<Vec<&Row>> {
    let own = rows
        .iter()
        .filter(|row| row.system == system)
        .collect::<Vec<_>>();
    own.chunk_by(|a, b| a.case == b.case)
        .map(<[&Row]>::to_vec)
        .collect()
}

/// Figure 9: 50 GB by number of chunks on several machines.
///
/// # Errors
/// As [`figure_4`].
pub(super) fn figure_9(
    machines: &[(Machine, Setting)],
    scale: u64,
    desk: &mut Desk<'_>,
) -> Result<Section> {
    let mut all: Vec<(String, Vec<Row>)> = Vec::new();
    let mut tables = Vec::new();
    for (machine, setting) in machines {
        let mut rows = Vec::new();
        for count in COUNTS {
            step(
                desk,
                &format!("figure 9: {}, {count} chunks", machine.name()),
            )?;
            let case: Case = large(count, scale, machine.nodes().len());
            rows.extend(setting.compare(System::Groups, &case)?);
        }
        let caption = format!("{}, {} threads.", machine.name(), setting.threads);
        tables.push(table(&rows, "array", BASE, &caption));
        all.push((machine.name().to_owned(), rows));
    }
    let found = [
        ("factor", factor(machines, "xeon-4114"), None),
        ("factor2", factor(machines, "xeon-2630"), None),
    ];
    tables.push(text::table(9, &found));
    let plots = COUNTS.map(|count| vec![by_machine(&all, &format!("{count} chunks")).into()]);
    let raw: Vec<_> = all
        .iter()
        .map(|(machine, rows)| json!({ "machine": machine, "rows": rows }))
        .collect();
    let divided = match scale {
        1 => String::new(),
        scale => format!(", divided by {scale}"),
    };
    Ok(Section {
        key: "9".to_owned(),
        heading: "Figure 9: the same on both machines".to_owned(),
        texts: vec![format!(
            "50 GB{divided} in so many chunks, groups of four threads on every core of each machine. The text normalises by the system's own at 100 chunks on each machine, and so do the plots: more is better."
        )],
        tables,
        plots: plots.to_vec(),
        raw: json!({ "machines": raw, "counted": found, "text": text::raw(9) }),
    })
}

/// How much more a remote byte weighs on a machine, if it is one of these.
fn factor(machines: &[(Machine, Setting)], name: &str) -> Option<f64> {
    let (machine, _) = machines
        .iter()
        .find(|(machine, _)| machine.name() == name)?;
    Some(Model::new(machine).factor(0, 1))
}

fn by_machine(all: &[(String, Vec<Row>)], case: &str) -> Bars {
    let mut bars = Bars::new(
        case,
        "times as fast as the system at 100 chunks, by the model",
        Unit::Ratio,
    )
    .series(all.iter().map(|(machine, _)| machine.as_str()));
    let of = |rows: &[Row], variant: &str| {
        let row = rows
            .iter()
            .find(|row| row.case == case && row.variant == variant);
        let time = row.and_then(|row| relative(rows, BASE, row, |counted| counted.seconds));
        1.0 / time.unwrap_or(f64::NAN)
    };
    let mut names: Vec<&str> = Vec::new();
    for row in all.iter().flat_map(|(_, rows)| rows) {
        if !names.contains(&row.variant.as_str()) {
            names.push(&row.variant);
        }
    }
    for name in names {
        bars.category(name, all.iter().map(|(_, rows)| of(rows, name)));
    }
    bars
}
