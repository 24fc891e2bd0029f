//! What runs the rows that a statement writes, for `explain analyze`.

use std::sync::Arc;

use engine::profile::{Kernel, Record};
use engine::{Prepared, ProfileCollector, StageOutline};
use parking_lot::Mutex;

/// The profile of a query, a line each, which comes to be while it runs.
pub(crate) type Profile = Arc<Mutex<Vec<String>>>;

/// What a program did that has run to its end.
#[derive(Debug)]
pub(crate) struct Profiled {
    /// Rows of its answer, which nobody gets.
    pub rows: u64,
    pub stages: Vec<StageOutline>,
    /// What was measured of the stages.
    pub records: Vec<Record>,
}

/// Looks on while a statement that writes runs.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Measures the operators.
    collector: Arc<ProfileCollector>,
    seen: Mutex<Option<Ran>>,
}

/// The program that ran the rows; complete once all of them were taken.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What it was to do, a line each.
    plan: Vec<String>,
    /// What it did.
    profile: Profile,
    stages: Vec<StageOutline>,
    records: Vec<Record>,
}

impl Watch {
    /// What measures the operators of the engine.
    pub(super) fn collector(&self) -> &Arc<ProfileCollector> {
        &self.collector
    }

    /// This runs the rows now; what was seen before has failed.
    pub(super) fn see(&self, ran: Ran) {
        *self.seen.lock() = Some(ran);
    }

    /// What it has seen; none if nothing was planned: rows were given as they are, or found by their keys.
    pub(crate) fn seen(&self) -> Option<Ran> {
        let mut ran = self.seen.lock().take()?;
        // It is measured to its end only now.
        ran.records = self.collector.take();
        Some(ran)
    }
}

impl Ran {
    /// The engine runs this program, and says in `profile` what it does.
    pub(super) fn new(prepared: &Prepared, profile: &Profile) -> Ran {
        Ran {
            plan: prepared.explain(),
            profile: Arc::clone(profile),
            stages: prepared.outline(),
            records: Vec::new(),
        }
    }

    /// What it was to do, and what it did, a line each.
    pub(crate) fn told(self) -> Vec<String> {
        let mut lines = self.plan;
        let report = std::mem::take(&mut *self.profile.lock());
        lines.extend(measured(report, &self.stages, &self.records));
        lines
    }

    /// The same as what was measured of `rows` rows.
    pub(crate) fn profiled(self, rows: u64) -> Profiled {
        Profiled {
            rows,
            stages: self.stages,
            records: self.records,
        }
    }
}

/// The report of a run with what was measured of the operators of each stage below the line that tells its time.
pub(crate) fn measured(
    report: Vec<String>,
    stages: &[StageOutline],
    records: &[Record],
) -> Vec<String> {
    let mut lines = Vec::with_capacity(report.len());
    for line in report {
        let number = line
            .strip_prefix("stage ")
            .and_then(|rest| rest.split_once(':'));
        let number: Option<usize> = number.and_then(|(number, rest)| {
            let tells_time = rest.starts_with(" fused, ");
            number.parse().ok().filter(|_| tells_time)
        });
        lines.push(line);
        let Some(number) = number else { continue };
        let kernels = merged(records.iter().filter(|record| record.stage == number));
        for (name, kernel) in &kernels {
            let time = kernel.seconds * 1e3;
            lines.push(format!("  {name}: {} rows, {time:.3} ms", kernel.rows));
        }
        if let (Some(stage), Some((_, end))) = (stages.get(number), kernels.last()) {
            let (came, expected) = (end.rows, stage.expected);
            lines.push(format!(
                "  {came} rows came, about {expected} were expected"
            ));
        }
    }
    lines
}

/// What the operators of the pipelines of a stage did in all of its passes, in the order in which they came first.
fn merged<'r>(records: impl Iterator<Item = &'r Record>) -> Vec<(&'r str, Kernel)> {
    let mut all: Vec<(&str, Kernel)> = Vec::new();
    for kernel in records.flat_map(|record| &record.kernels) {
        let known = all.iter_mut().find(|(name, _)| *name == kernel.name);
        match known {
            Some((_, sum)) => {
                sum.rows += kernel.rows;
                sum.seconds += kernel.seconds;
            }
            None => all.push((&kernel.name, kernel.clone())),
        }
    }
    all
}
