//! What runs the rows that a statement writes, for `explain analyze`.

use std::sync::Arc;

use datafusion::physical_plan::ExecutionPlan;
use engine::profile::Record;
use engine::{ProfileCollector, StageOutline};
use parking_lot::Mutex;

/// The profile of a query, a line each, which comes to be while it runs.
pub(crate) type Profile = Arc<Mutex<Vec<String>>>;

/// The stages of a part that the engine ran, and what was measured of them.
pub(crate) type Part = (Vec<StageOutline>, Vec<Record>);

/// What a query did that has run to its end.
#[derive(Debug)]
pub(crate) struct Profiled {
    /// Rows of its answer, which nobody gets.
    pub rows: u64,
    /// The parts that the engine ran.
    pub parts: Vec<Part>,
    /// What DataFusion ran of it over the rows of these.
    pub rest: Option<Arc<dyn ExecutionPlan>>,
}

/// Looks on while a statement that writes runs.
#[derive(Debug)]
pub(crate) struct Watch {
    /// Measures the operators, where that is asked for.
    collector: Option<Arc<ProfileCollector>>,
    seen: Mutex<Option<Ran>>,
}

/// What ran the rows; complete once all of them were taken.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What the engine was to do, a line each; none where DataFusion ran all.
    pub plan: Vec<String>,
    /// What it did.
    pub profile: Profile,
    /// The parts that it ran, if they are measured.
    pub parts: Vec<Part>,
    /// What DataFusion ran.
    pub rest: Option<Arc<dyn ExecutionPlan>>,
}

impl Watch {
    /// One that has seen nothing yet; with `measures`, of each operator by itself.
    pub(crate) fn new(measures: bool) -> Watch {
        Watch {
            collector: measures.then(Arc::default),
            seen: Mutex::default(),
        }
    }

    /// What measures the operators of the engine.
    pub(super) fn collector(&self) -> Option<&Arc<ProfileCollector>> {
        self.collector.as_ref()
    }

    /// This runs the rows now; what was seen before has failed.
    pub(super) fn see(&self, ran: Ran) {
        *self.seen.lock() = Some(ran);
    }

    /// What it has seen; none if nothing was planned: rows were given as they are, or found by their keys.
    pub(crate) fn seen(&self) -> Option<Ran> {
        let mut ran = self.seen.lock().take()?;
        // The last part is measured to its end only now.
        if let (Some(collector), Some((_, records))) = (&self.collector, ran.parts.last_mut()) {
            records.extend(collector.take());
        }
        Some(ran)
    }
}

impl Ran {
    /// DataFusion runs this plan.
    pub(super) fn of_datafusion(plan: &Arc<dyn ExecutionPlan>) -> Ran {
        Ran {
            plan: Vec::new(),
            profile: Profile::default(),
            parts: Vec::new(),
            rest: Some(Arc::clone(plan)),
        }
    }

    /// The same as what was measured of `rows` rows; none if the engine ran nothing.
    pub(crate) fn profiled(self, rows: u64) -> Option<Profiled> {
        (!self.parts.is_empty()).then_some(Profiled {
            rows,
            parts: self.parts,
            rest: self.rest,
        })
    }
}
