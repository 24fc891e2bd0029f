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
#[derive(Debug)]
pub(crate) struct Watch {
    /// Measures the operators, where that is asked for.
    collector: Option<Arc<ProfileCollector>>,
    seen: Mutex<Option<Ran>>,
}

/// The program that ran the rows; complete once all of them were taken.
#[derive(Debug)]
pub(crate) struct Ran {
    /// What it was to do, a line each.
    pub plan: Vec<String>,
    /// What it did.
    pub profile: Profile,
    stages: Vec<StageOutline>,
    records: Vec<Record>,
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
        // It is measured to its end only now.
        if let Some(collector) = &self.collector {
            ran.records = collector.take();
        }
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

    /// The same as what was measured of `rows` rows.
    pub(crate) fn profiled(self, rows: u64) -> Profiled {
        Profiled {
            rows,
            stages: self.stages,
            records: self.records,
        }
    }
}
