//! Where the accesses of TPC-H Q6, Q1 and Q3 go under each plan, with affinity on and off (M2, M5, M6).
//!
//! The engine runs in a process inside the emulated machine, which marks the counted region: one hot run from its
//! start to its last row, without planning.

mod found;
mod inside;
mod page;

use clap::Args;
use engine::NumaPolicy;

use super::laq::given::{self, Queries};
use crate::desk::Desk;
use crate::error::{Error, Result};
use crate::guest::{Guest, regions};
use crate::json;
use crate::options::Options;
use crate::result::compared::Compared;
use crate::result::counted::Counted;
use crate::workload::database::Databases;
use found::{Found, WARM};
pub use inside::PlansInside;
use inside::{Task, Told, Variant};

/// The default machine.
const MACHINE: &str = "4x4";
/// Bytes of the buffer pool, far more than is read.
const POOL: u64 = 256 << 20;
/// Default number of runs, over which the spread is reported.
const RUNS: u64 = 10;

/// `plans`
#[derive(Args, Clone, Debug)]
pub struct Plans {
    /// Queries: numbers of TPC-H, 1..22 for all, or files in LAQ
    #[arg(long, value_name = "N|FILE,...", default_value = "6,1,3", value_parser = given::queries)]
    pub query: Queries,
    /// Plans: obliv, shard, distr
    #[arg(long, value_name = "PLAN,...", value_delimiter = ',', default_value = "obliv,shard,distr", value_parser = plan)]
    pub plan: Vec<NumaPolicy>,
    /// Workers; with fewer than there are cpus the system is free where to run those that are not bound
    /// [default: one for each cpu]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=workers::MAX_THREADS as u64))]
    pub threads: Option<u64>,
    /// Workers of the first run, which brings the pages into memory: where nobody binds them they stay on the nodes that these
    /// ran on [default: as many as --threads]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=workers::MAX_THREADS as u64))]
    pub loaders: Option<u64>,
    /// The databases under test
    #[command(flatten)]
    pub databases: Databases,
    /// Those of all experiments
    #[command(flatten)]
    pub options: Options,
}

fn plan(name: &str) -> std::result::Result<NumaPolicy, String> {
    NumaPolicy::named(name)
        .ok_or_else(|| "take obliv, shard or distr, or several with commas".to_owned())
}

impl Plans {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let texts = self.query.read()?;
        let guest = Guest::new(&self.options, MACHINE, 512)?;
        let mut all = Vec::new();
        for (name, text) in texts {
            desk.progress(&format!("{name} under each plan, affinity on and off"));
            all.extend(self.boot(name, text, &guest, desk)?);
        }
        let page = page::Page {
            guest: &guest,
            scale: self.databases.scale,
            threads: self.threads(&guest),
            loaders: self.loaders(&guest),
            all: &all,
        };
        let (report, tables) = page.report(&desk.command);
        let tables: Vec<_> = tables.iter().collect();
        desk.finish(
            &self.options.report("plans"),
            self.options.json,
            report,
            &tables,
        )
    }

    fn runs(&self) -> usize {
        match (self.options.runs, self.options.quick) {
            (Some(runs), _) => runs as usize,
            (None, true) => self.options.runs(),
            (None, false) => RUNS as usize,
        }
    }

    fn threads(&self, guest: &Guest) -> usize {
        self.threads
            .map_or(guest.machine().cpus(), |threads| threads as usize)
    }

    fn loaders(&self, guest: &Guest) -> usize {
        let threads = self.threads(guest);
        self.loaders.map_or(threads, |loaders| loaders as usize)
    }

    /// A query under all plans in turn, in one boot.
    fn boot(
        &self,
        name: String,
        text: String,
        guest: &Guest,
        desk: &mut Desk<'_>,
    ) -> Result<Vec<Found>> {
        let both = self.plan.iter().flat_map(|plan| {
            [false, true].map(|affinity| Variant {
                plan: plan.name().to_owned(),
                affinity,
            })
        });
        let task = Task {
            store: self.databases.store(desk)?,
            name: name.clone(),
            text,
            variants: both.collect(),
            runs: self.runs(),
            warm: WARM,
            threads: self.threads(guest),
            loaders: self.loaders(guest),
            pool: POOL,
        };
        let words = json::write(&task)?;
        let mut command = desk.lab.clone();
        command.extend(["plans-inside".into(), words.into()]);
        let told = guest.run(command, desk)?;
        let regions = regions(&told.outcome, task.runs * task.variants.len())?;
        let lines = told.text.lines();
        let lines = lines.map(|line| json::read::<Told>(line, "what was run"));
        let lines: Vec<Told> = lines.collect::<Result<_>>()?;
        same_rows(&name, &lines)?;
        let variants = task.variants.iter();
        Ok(variants
            .map(|variant| {
                let runs = lines.iter().zip(&regions);
                let runs = runs.filter(|(told, _)| told.variant == *variant);
                let (told, regions): (Vec<_>, Vec<_>) = runs.unzip();
                let affinity = if variant.affinity { "on" } else { "off" };
                let emulated = Counted {
                    workload: name.clone(),
                    variant: format!("{}, affinity {affinity}", variant.plan),
                    runs: regions.into_iter().cloned().collect(),
                };
                let engine = told.iter().map(|told| told.engine.clone()).collect();
                Found {
                    query: name.clone(),
                    plan: variant.plan.clone(),
                    affinity: variant.affinity,
                    compared: Compared::new(emulated, engine, variant.affinity),
                    moves: told.iter().map(|told| told.moves).collect(),
                }
            })
            .collect())
    }
}

/// All variants answer the same.
fn same_rows(query: &str, all: &[Told]) -> Result<()> {
    let Some(first) = all.first() else {
        return Ok(());
    };
    match all.iter().find(|told| told.rows != first.rows) {
        None => Ok(()),
        Some(other) => Err(Error::Query {
            query: query.to_owned(),
            why: format!(
                "it answers {} rows under {} and others, or {} others, under {}",
                first.rows.len(),
                first.variant.plan,
                other.rows.len(),
                other.variant.plan
            ),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(plan: &str, rows: &[&str]) -> Told {
        Told {
            variant: Variant {
                plan: plan.to_owned(),
                affinity: true,
            },
            engine: vec![],
            moves: None,
            rows: rows.iter().map(|row| (*row).to_owned()).collect(),
        }
    }

    #[test]
    fn plans_that_answer_otherwise_are_told() {
        let same = [told("obliv", &["1"]), told("distr", &["1"])];
        assert!(same_rows("Q6", &same).is_ok());
        let other = [told("obliv", &["1"]), told("distr", &["2"])];
        let error = same_rows("Q6", &other).unwrap_err().to_string();
        assert!(error.contains("Q6") && error.contains("distr"), "{error}");
    }
}
