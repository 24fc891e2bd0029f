//! What runs the rows that a statement writes, for `explain analyze`.

use std::sync::Arc;

use engine::profile::Record;
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
        let of_stage = records.iter().filter(|record| record.stage == number);
        let kernels: Vec<_> = of_stage.flat_map(|record| &record.kernels).collect();
        for kernel in &kernels {
            let time = kernel.seconds * 1e3;
            lines.push(format!(
                "  {}: {} rows, {time:.3} ms",
                kernel.name, kernel.rows
            ));
        }
        if let Some(stage) = stages.get(number).filter(|_| !kernels.is_empty()) {
            let ends = kernels.iter().filter(|kernel| kernel.last);
            let came: u64 = ends.map(|kernel| kernel.rows).sum();
            lines.push(format!(
                "  {came} rows came, about {} were expected",
                stage.expected
            ));
        }
    }
    lines
}
