//! Cores that follow the load: workloads with a governor and without, in turn (E10, E11).

mod crossing;
mod found;
mod load;
mod modelled;
mod moves;
mod nodes;
mod options;
mod page;
mod plan;
mod queries;
mod recorder;
mod run;
mod traffic;
mod trial;
mod verdict;

use std::ffi::OsString;
use std::time::Duration;

use clap::Args;
use report::{Cell, Table};
use topology::Machine;

use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::json;
use crate::options::folder_is_there;
use load::Task;
pub use nodes::{ElasticNodes, Inside};
pub use options::Elastic;
use plan::Variant;
use trial::Setting;
pub use trial::Trial;
use verdict::Verdict;

/// How often threads are sampled.
const LOOK: Duration = Duration::from_millis(50);

/// `load`
#[derive(Args, Clone, Debug)]
pub struct Load {
    /// The task, as JSON
    pub task: String,
}

impl Load {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let task: Task = json::read(&self.task, "the task")?;
        load::serve(task, std::io::stdin().lock(), desk.out)
    }
}

impl Elastic {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        folder_is_there(&self.report)?;
        let mut workloads = self.workload.iter();
        if !self.clients.is_empty() && !workloads.any(|workload| workload.takes_clients()) {
            return Err(Error::Given {
                why: "--clients is for the workloads clients, selectivity, stable and native: the others have clients of their own"
                    .to_owned(),
            });
        }
        let machine = Machine::live()?;
        let cpus = placement::apply::cpus_of(0).map_or(1, |cpus| cpus.len());
        let guard: Vec<OsString> = match &desk.database {
            Some(own) => vec![own.into(), "govern".into(), "guard".into()],
            None => Vec::new(),
        };
        let lab = desk.lab.clone();
        let client = self.client.iter().flat_map(|text| text.split_whitespace());
        let client: Vec<String> = client.map(str::to_owned).collect();
        let mut setting = Setting {
            lab: &lab,
            guard: &guard,
            machine: &machine,
            cpus,
            server: self.pid,
            command: &client,
            statements: &self.statement,
            rows: queries::ROWS,
            made_on: Vec::new(),
            own: None,
            period: Duration::from_millis(self.period),
            emulated: false,
            look: LOOK,
            counted: None,
            window: None,
            query_seconds: None,
            stop: desk.stop,
        };
        let busy = std::fs::read_to_string("/proc/loadavg").ok();
        let trials = self.trials(&mut setting, desk)?;
        let all = verdict::series(&trials);
        let verdicts = verdict::verdicts(&all, cpus);
        let table = page::table(&all);
        let judged = bars(&verdicts);
        let phases = page::phases(&all);
        let tables = [&table, &phases, &judged];
        let report = page::report(self, &machine, cpus, &all, tables, &desk.command);
        let report = report.fact("Load before", load_before(busy.as_deref()));
        let report = report.results(serde_json::json!({ "trials": trials, "bars": verdicts }));
        desk.finish(&self.report, self.json, report, &tables)
    }

    /// Runs all variants of a workload in turn, so that disturbances of the machine affect all of them.
    fn trials(&self, setting: &mut Setting<'_>, desk: &mut Desk<'_>) -> Result<Vec<Trial>> {
        let runs = self.runs.unwrap_or(if self.quick { 1 } else { 3 });
        let unit = self.phase.unwrap_or(if self.quick { 0.7 } else { 2.0 });
        let mut trials = Vec::new();
        for workload in &self.workload {
            if workload.is_own() && !setting.command.is_empty() {
                desk.progress(&format!(
                    "{}: it is a program of our own, and no database; left out",
                    workload.name()
                ));
                continue;
            }
            let variants = Variant::of(*workload, &self.mode, &self.sensor, setting.cpus);
            let clients: Vec<usize> = self.clients.iter().copied().map(usize::from).collect();
            let phases = workload.phases(setting.cpus, unit, &clients, setting.statements.len());
            let seconds: f64 = phases.iter().map(|phase| phase.seconds).sum();
            desk.progress(&format!(
                "{}: {runs} runs of {seconds:.0} s under each of {} variants",
                workload.name(),
                variants.len()
            ));
            for _ in 0..runs {
                for variant in &variants {
                    let trial = run::run(setting, *workload, *variant, &phases)?;
                    // What a query takes is found out once, so that all are asked at the same pace.
                    setting.query_seconds.get_or_insert(trial.query_seconds);
                    trials.push(trial);
                }
            }
        }
        if trials.is_empty() {
            return Err(Error::Job {
                why: "nothing is left to be run".to_owned(),
            });
        }
        Ok(trials)
    }
}

/// The mean number of ready threads of the minute before, from the kernel's `loadavg`: times measured on a busy
/// machine are of little value.
fn load_before(loadavg: Option<&str>) -> String {
    let load = loadavg.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
    load.map_or("not known".to_owned(), |load| {
        format!("{load:.2} threads ready to run, on average of a minute")
    })
}

/// A table of the verdicts.
fn bars(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new(["workload", "variant", "asked for", "found", "met"]);
    for one in verdicts {
        let met = match one.met {
            Some(true) => Cell::from("yes"),
            Some(false) => Cell::from("no").strong(),
            None => Cell::from("not judged"),
        };
        table.row([
            Cell::from(one.workload.name()),
            Cell::from(one.variant.as_str()),
            Cell::from(one.asked.as_str()),
            Cell::from(one.found.as_str()),
            met,
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_load_before_is_told_where_it_is_known() {
        assert!(load_before(Some("7.18 6.01 5.0 3/411 99\n")).starts_with("7.18 threads"));
        for unknown in [None, Some(""), Some("what?")] {
            assert_eq!(load_before(unknown), "not known");
        }
    }
}
