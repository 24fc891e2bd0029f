//! Where the accesses of TPC-H Q6, Q1 and Q3 go under each plan, with affinity on and off (M2, M5, M6).
//!
//! The engine runs in a process inside the emulated machine, which marks what is counted: one hot run from its begin
//! to its last row. Planning is not counted.

mod inside;
mod page;

use clap::Args;
use serde::Serialize;

use super::counted::Counted;
use super::database::Databases;
use super::guest::{Guest, parts, regions};
use super::laq::given::{self, Query};
use super::{Desk, Options};
use crate::count::Matrix;
use crate::record::Sample;
use crate::{Error, Result};
pub use inside::PlansInside;
use inside::{Task, Told, Variant};

/// The machine.
const MACHINE: &str = "4x4";
/// Runs before one that is counted.
const WARM: usize = 2;
/// The buffer pool: far more than what is read.
const POOL: u64 = 256 << 20;
/// Runs where nothing else is asked for: the spread over ten is asked for.
const RUNS: u64 = 10;

/// `plans`
#[derive(Args, Clone, Debug)]
pub struct Plans {
    /// Queries: numbers of TPC-H that stand in LAQ, or files
    #[arg(long, value_name = "N|FILE,...", value_delimiter = ',', default_value = "6,1,3", value_parser = given::query)]
    pub query: Vec<Query>,
    /// The databases under test
    #[command(flatten)]
    pub databases: Databases,
    /// Those of all experiments
    #[command(flatten)]
    pub options: Options,
}

/// What was counted of one query under one plan.
#[derive(Clone, Debug, Serialize)]
struct Both {
    query: String,
    variant: Variant,
    #[serde(flatten)]
    emulated: Counted,
    /// Bytes of each run by node of the reader, then of the page, as the engine counts them.
    engine: Vec<Matrix>,
}

impl Both {
    fn counted_by_engine(&self, figure: impl Fn(u64, u64) -> f64) -> Sample {
        let pair = |matrix| parts(matrix);
        let pairs = self.engine.iter().map(pair);
        pairs.map(|(local, remote)| figure(local, remote)).collect()
    }

    /// Bytes of pages that kernels read.
    fn read(&self) -> Sample {
        self.counted_by_engine(|local, remote| (local + remote) as f64)
    }

    /// The share of them on another node than the reader.
    fn engine_share(&self) -> Sample {
        self.counted_by_engine(|local, remote| remote as f64 / (local + remote) as f64)
    }

    /// Points between the median shares.
    fn points(&self) -> f64 {
        100.0 * (self.engine_share().median() - self.emulated.share().median()).abs()
    }
}

/// Standard deviation of shares, in points; not a number where there is but one.
fn spread(shares: &Sample) -> f64 {
    let values = shares.values();
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let squares: f64 = values.iter().map(|share| (share - mean).powi(2)).sum();
    100.0 * (squares / (values.len() as f64 - 1.0)).sqrt()
}

impl Plans {
    pub(super) fn run(&self, desk: &mut Desk<'_>) -> Result<()> {
        let texts = self.query.iter().map(Query::read);
        let texts: Vec<(String, String)> = texts.collect::<Result<_>>()?;
        let guest = Guest::new(&self.options, MACHINE, 512)?;
        let mut all = Vec::new();
        for (name, text) in texts {
            desk.progress(&format!("{name} under each plan, affinity on and off"));
            all.extend(self.boot(name, text, &guest, desk)?);
        }
        let page = page::Page {
            guest: &guest,
            scale: self.databases.scale,
            all: &all,
        };
        let (report, tables) = page.report(&desk.command);
        let tables: Vec<_> = tables.iter().collect();
        desk.finish(
            &self.options.report("plans"),
            self.options.json,
            &report,
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

    /// A query under all plans in turn, in one boot.
    fn boot(
        &self,
        name: String,
        text: String,
        guest: &Guest,
        desk: &mut Desk<'_>,
    ) -> Result<Vec<Both>> {
        let plans = engine::Plan::ALL.iter();
        let both = plans.flat_map(|plan| {
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
            threads: guest.machine().cpus(),
            pool: POOL,
        };
        let words = serde_json::to_string(&task).map_err(|error| Error::Output {
            source: error.into(),
        })?;
        let mut command = desk.lab.clone();
        command.extend(["plans-inside".into(), words.into()]);
        let told = guest.run(command, desk)?;
        let regions = regions(&told.outcome, task.runs * task.variants.len())?;
        let lines = told.text.lines();
        let lines = lines.map(|line| super::parse::<Told>(line, "what was run"));
        let lines: Vec<Told> = lines.collect::<Result<_>>()?;
        same_rows(&name, &lines)?;
        let variants = task.variants.iter();
        Ok(variants
            .map(|variant| {
                let runs = lines.iter().zip(&regions);
                let runs = runs.filter(|(told, _)| told.variant == *variant);
                let (told, regions): (Vec<_>, Vec<_>) = runs.unzip();
                let affinity = if variant.affinity { "on" } else { "off" };
                Both {
                    query: name.clone(),
                    variant: variant.clone(),
                    emulated: Counted {
                        workload: name.clone(),
                        variant: format!("{}, affinity {affinity}", variant.plan),
                        runs: regions.into_iter().cloned().collect(),
                    },
                    engine: told.iter().map(|told| told.engine.clone()).collect(),
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

    #[test]
    fn spread_is_in_points() {
        let shares: Sample = [0.5, 0.7].into_iter().collect();
        assert!((spread(&shares) - 200f64.sqrt()).abs() < 1e-9);
        assert_eq!(spread(&[0.0, 0.0].into_iter().collect()), 0.0);
        assert!(spread(&[0.5].into_iter().collect()).is_nan());
    }
}
