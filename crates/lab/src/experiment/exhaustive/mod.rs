//! All placements that differ, not counting the exchange of equal nodes and cores.

mod costs;
mod page;
mod search;

use std::path::{Path, PathBuf};

use clap::Args;
use emulator::count::Region;
use placement::{Classes, Site, Strategy, Threads};
use report::{Report, Table};
use serde_json::json;
use topology::Machine;

use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::guest::{Guest, parts};
use crate::options::Options;
use crate::workload::kernel::{Job, KERNELS, Kernel, Ran};

pub use costs::{Costs, Measured, Named};
use page::{METRIC, by_strategy, curve, distribution, facts, lead, strategy_bars};
use search::Found;

/// The machine and the number of threads of the document (T6).
const MACHINE: &str = "xeon-2630";
/// Threads in a group, as in the kernels.
const GROUP: usize = 3;
/// The most placements that are run one by one.
const MOST: u128 = 5_000;

/// `exhaustive`
#[derive(Args, Clone, Debug)]
pub struct Exhaustive {
    /// Threads to place
    #[arg(long, value_name = "N", default_value_t = 12, value_parser = clap::value_parser!(u16).range(2..=64))]
    pub threads: u16,
    /// Workloads [default: all]
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_parser = kernel)]
    pub workload: Vec<Kernel>,
    /// Keep the costs in files in this folder
    #[arg(long, value_name = "FOLDER", conflicts_with = "from")]
    pub record: Option<PathBuf>,
    /// Take the costs from files that --record made instead of running anything
    #[arg(long, value_name = "FOLDER")]
    pub from: Option<PathBuf>,
    /// Runs of each placement; the one with the median cost is kept
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=99), conflicts_with = "from")]
    pub repeat: u16,
    /// Searches to follow, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=1000))]
    pub seeds: u64,
    /// Those of all experiments
    #[command(flatten)]
    pub options: Options,
}

fn kernel(name: &str) -> std::result::Result<Kernel, String> {
    let names = KERNELS.map(Kernel::name).join(", ");
    Kernel::named(name).ok_or(format!("take one of {names}"))
}

impl Exhaustive {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let kernels = if self.workload.is_empty() {
            KERNELS.to_vec()
        } else {
            self.workload.clone()
        };
        self.options.check()?;
        let (machine, all) = match &self.from {
            Some(folder) => {
                let machine = self.options.machine.as_deref().unwrap_or(MACHINE);
                let machine = Machine::parse(machine)?;
                let all = kernels
                    .iter()
                    .map(|kernel| self.recorded(*kernel, &machine, folder));
                (machine.clone(), all.collect::<Result<Vec<_>>>()?)
            }
            None => {
                let guest = Guest::new(&self.options, MACHINE, 256)?;
                let mut all = Vec::with_capacity(kernels.len());
                for kernel in kernels {
                    all.push(self.costs(kernel, &guest, desk)?);
                }
                (guest.machine().clone(), all)
            }
        };
        let (report, tables) = self.report(&machine, &all, &desk.command)?;
        desk.finish(
            &self.options.report("exhaustive"),
            self.options.json,
            report,
            &tables.iter().collect::<Vec<_>>(),
        )
    }

    /// The file name of a workload's costs.
    fn file(&self, kernel: Kernel, machine: &Machine) -> String {
        format!("{}-{}-{}.json", machine.name(), self.threads, kernel.name())
    }

    /// Reads recorded costs, which must be of the same machine, threads and workload.
    fn recorded(&self, kernel: Kernel, machine: &Machine, folder: &Path) -> Result<Costs> {
        let path = folder.join(self.file(kernel, machine));
        let costs = Costs::read(&path)?;
        let own = (machine.name(), usize::from(self.threads), kernel.name());
        let told = (&*costs.machine, costs.threads, &*costs.workload);
        if own == told {
            return Ok(costs);
        }
        let why = format!(
            "it says that it is of {} threads of {} on {}, its name says {} of {} on {}",
            told.1, told.2, told.0, own.1, own.2, own.0
        );
        Err(Error::Table { path, why })
    }

    /// Measures the costs, and records them if that is asked for.
    fn costs(&self, kernel: Kernel, guest: &Guest, desk: &mut Desk<'_>) -> Result<Costs> {
        let costs = self.measure(kernel, guest, desk)?;
        if let Some(folder) = &self.record {
            make(folder)?;
            costs.write(&folder.join(self.file(kernel, guest.machine())))?;
        }
        Ok(costs)
    }

    fn measure(&self, kernel: Kernel, guest: &Guest, desk: &mut Desk<'_>) -> Result<Costs> {
        let threads = usize::from(self.threads);
        let site = Site::new(guest.machine());
        let placements = self.placements(&site)?;
        let strategies = strategies(&site, threads, self.options.runs())?;
        desk.progress(&format!(
            "{}: {} placements of {threads} threads",
            kernel.name(),
            placements.len()
        ));
        let named = strategies.iter().map(|(_, cpus)| cpus.clone());
        // One round after the other: what disturbs a while does not meet all runs of a placement.
        let rounds = usize::from(self.repeat);
        let single = placements
            .iter()
            .map(|cpus| cpus.iter().map(|cpu| vec![*cpu]).collect());
        let count = single.len() * rounds;
        let job = Job {
            plan: kernel.plan(threads, guest.cache_bytes()),
            placements: single.cycle().take(count).chain(named).collect(),
        };
        let told = guest.kernel(&job, desk)?;
        let (single, by_name) = told.split_at(count);
        let every = placements.len();
        let measured = placements.into_iter().enumerate().map(|(at, cpus)| {
            let runs = single.iter().skip(at).step_by(every);
            let runs = runs.map(|(ran, region)| measured(guest, &cpus, ran, region));
            Ok(middle(runs.collect::<Result<_>>()?))
        });
        Ok(Costs {
            machine: guest.machine().name().to_owned(),
            threads,
            workload: kernel.name().to_owned(),
            about: kernel.about().to_owned(),
            metric: METRIC.to_owned(),
            command: desk.command.clone(),
            date: report::today(),
            commit: desk.commit.clone().unwrap_or_default(),
            caches: guest.caches(),
            strategies: medians(guest, &strategies, by_name),
            placements: measured.collect::<Result<_>>()?,
        })
    }

    /// One placement of each class: the cpu of each thread.
    fn placements(&self, site: &Site) -> Result<Vec<Vec<u32>>> {
        let threads = Threads::in_groups(usize::from(self.threads), 1)?;
        let classes = Classes::new(site, &threads)?;
        let every = if self.options.quick { 20 } else { 1 };
        match classes.count() {
            Some(count) if count <= MOST * every as u128 => {}
            count => {
                let count = count.map_or("more than 10^38".to_owned(), |count| count.to_string());
                let why = format!(
                    "{count} placements differ, and each is run: take fewer --threads or a smaller --machine"
                );
                return Err(Error::Job { why });
            }
        }
        let cpus = |placement: placement::Placement| {
            placement.sets().iter().flat_map(|set| set.iter()).collect()
        };
        Ok(classes.iter().step_by(every).map(cpus).collect())
    }

    fn report(
        &self,
        machine: &Machine,
        all: &[Costs],
        command: &str,
    ) -> Result<(Report, Vec<Table>)> {
        let tables = vec![distribution(all), by_strategy(all)];
        let mut report = Report::new(
            format!("All placements of {} threads", self.threads),
            command,
        )
        .lead(lead(all))
        .machine(machine.clone())
        .emulated();
        for (name, value) in facts(all, self.from.is_some()) {
            report = report.fact(name, value);
        }
        if self.options.quick && self.from.is_none() {
            report = report.fact(
                "Quick",
                "every twentieth placement only: the best of them is not the best of all, and there is no search to follow",
            );
        }
        report = report
            .section("How much the placement decides")
            .text("Every placement that differs, from the cheapest to the dearest. Exchanging equal nodes, or cores of a node, makes no difference and is left out.")
            .table(tables[0].clone())
            .plot(curve(all))
            .section("Strategies by name")
            .table(tables[1].clone())
            .plot(strategy_bars(all))
            .section("How soon a good one is found")
            .text(format!("The share of the gain that is there - from the median placement to the best - that the best of so many runs has: of a search, as `atoll tune` does it, and of uniform random draws. Median over {} seeds, with quartiles.", self.seeds));
        let mut results = Vec::with_capacity(all.len());
        for costs in all {
            let found = Found::new(costs, machine, self.seeds)?;
            if !found.searched() {
                report = report.text(format!(
                    "{}: not every placement's cost is known, so that no search can be followed; draws are among those that are.",
                    costs.workload
                ));
            }
            report = report.plot(found.plot());
            let mut result = json!(costs);
            result["found"] = found.json();
            results.push(result);
        }
        Ok((report.results(json!(results)), tables))
    }
}

/// The run of the median cost; of two in the middle the cheaper one.
fn middle(mut runs: Vec<Measured>) -> Measured {
    runs.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let at = (runs.len() - 1) / 2;
    runs.swap_remove(at)
}

/// The cost of one run of a placement. Each thread must have run where it was placed.
fn measured(guest: &Guest, cpus: &[u32], ran: &Ran, region: &Region) -> Result<Measured> {
    if ran.cpus != cpus {
        let why = format!("threads placed on {cpus:?} ran on {:?}", ran.cpus);
        return Err(Error::Count { why });
    }
    let (local, remote) = parts(&region.dram);
    Ok(Measured {
        cpus: cpus.to_vec(),
        cost: round(guest.weighted(&region.dram)),
        local,
        remote,
    })
}

/// Rounds to tenths: further digits are noise.
fn round(cost: f64) -> f64 {
    (cost * 10.0).round() / 10.0
}

/// A strategy's name and the cpus of each thread.
type ByName = (String, Vec<Vec<u32>>);

/// The static strategies; `os`, which leaves it to the kernel, several times.
fn strategies(site: &Site, threads: usize, runs: usize) -> Result<Vec<ByName>> {
    let groups = Threads::in_groups(threads, threads.div_ceil(GROUP))?;
    let mut all = Vec::new();
    for strategy in [
        Strategy::Os,
        Strategy::Compact,
        Strategy::Sparse,
        Strategy::Shared,
    ] {
        let times = if strategy == Strategy::Os { runs } else { 1 };
        // A group may be too large for a cache: then there is no such placement.
        let Ok(placement) = strategy.place(site, &groups) else {
            continue;
        };
        let cpus: Vec<Vec<u32>> = placement
            .sets()
            .iter()
            .map(|set| set.iter().collect())
            .collect();
        all.extend(std::iter::repeat_n((strategy.to_string(), cpus), times));
    }
    Ok(all)
}

fn medians(guest: &Guest, strategies: &[ByName], told: &[(Ran, Region)]) -> Vec<Named> {
    let mut all: Vec<Named> = Vec::new();
    for (name, _) in strategies {
        if all.iter().any(|named| named.strategy == *name) {
            continue;
        }
        let own = strategies
            .iter()
            .zip(told)
            .filter(|((other, _), _)| other == name);
        let mut costs: Vec<(f64, u64, u64)> = own
            .map(|(_, (_, region))| {
                let (local, remote) = parts(&region.dram);
                (round(guest.weighted(&region.dram)), local, remote)
            })
            .collect();
        costs.sort_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((cost, local, remote)) = costs.get((costs.len().max(1) - 1) / 2).copied() {
            all.push(Named {
                strategy: name.clone(),
                cost,
                local,
                remote,
            });
        }
    }
    all
}

fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|source| Error::Write {
        path: folder.to_owned(),
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_runs_the_middle_one_is_kept() {
        let runs = |costs: &[f64]| {
            let one = |&cost: &f64| Measured {
                cpus: vec![0],
                cost,
                local: cost as u64,
                remote: 0,
            };
            middle(costs.iter().map(one).collect())
        };
        assert_eq!(runs(&[3.0, 1.0, 2.0]).cost, 2.0);
        assert_eq!(runs(&[3.0, 1.0]).local, 1);
        assert_eq!(runs(&[5.0]).cost, 5.0);
    }

    /// A copy of the recorded tables, one of them changed.
    fn folder(change: impl Fn(&mut Costs)) -> tempfile::TempDir {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/placements");
        let folder = tempfile::tempdir().unwrap();
        let name = "xeon-2630-12-join.json";
        let mut costs = Costs::read(&from.join(name)).unwrap();
        change(&mut costs);
        costs.write(&folder.path().join(name)).unwrap();
        folder
    }

    fn report_from(folder: &Path) -> Result<serde_json::Value> {
        #[derive(clap::Parser)]
        struct Given {
            #[command(flatten)]
            exhaustive: Exhaustive,
        }
        let out = folder.join("r.html");
        let [from, report] = [folder, &out].map(|path| path.to_str().unwrap());
        let words = [
            "lab",
            "--workload",
            "join",
            "--quick",
            "--json",
            "--seeds",
            "2",
        ];
        let words = words
            .into_iter()
            .chain(["--from", from, "--report", report]);
        let given = <Given as clap::Parser>::parse_from(words);
        let mut told = Vec::new();
        let mut desk = Desk {
            lab: Vec::new(),
            database: None,
            command: "lab exhaustive".to_owned(),
            commit: Some("today".to_owned()),
            out: &mut told,
            err: &mut std::io::sink(),
            stop: &false.into(),
        };
        given.exhaustive.run(&mut desk)?;
        Ok(serde_json::from_slice(&told).unwrap())
    }

    #[test]
    fn a_report_of_recorded_costs_tells_of_the_recording() {
        let folder = folder(|costs| {
            costs.caches = "12 of 2 KiB, then".to_owned();
            costs.commit = "0123456789ab".to_owned();
        });
        let told = report_from(folder.path()).unwrap();
        let facts = &told["facts"];
        assert_eq!(facts["Caches"], "12 of 2 KiB, then");
        assert_eq!(facts["Commit of the recording"], "0123456789ab");
        assert_eq!(told["commit"], "today");
        assert!(facts.get("Quick").is_none());
    }

    #[test]
    fn what_was_not_recorded_is_not_made_up() {
        let folder = folder(|costs| costs.caches.clear());
        let told = report_from(folder.path()).unwrap();
        assert_eq!(told["facts"]["Caches"], "not recorded");
    }

    #[test]
    fn what_recordings_share_is_told_once() {
        let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/placements");
        let read = |name: &str| Costs::read(&from.join(name)).unwrap();
        let all = ["join", "stream"].map(|name| read(&format!("xeon-2630-12-{name}.json")));
        let facts = facts(&all, true);
        let named = |name: &str| facts.iter().any(|(own, _)| own == name);
        assert!(named("Cost") && named("Workload: join") && named("Recorded on: stream"));
        assert!(!named("Workload") && !named("Cost: join"));
    }

    #[test]
    fn a_table_of_something_else_is_refused() {
        for change in [
            (|costs| costs.machine = "opteron-8387".to_owned()) as fn(&mut Costs),
            |costs| costs.workload = "stream".to_owned(),
        ] {
            let folder = folder(change);
            let error = report_from(folder.path()).unwrap_err().to_string();
            assert!(error.contains("xeon-2630-12-join.json"), "{error}");
        }
    }
}
