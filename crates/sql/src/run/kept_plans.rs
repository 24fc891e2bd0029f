//! Plans that are kept for when a statement runs again: that of a prepared query, and that of a text that a session runs
//! again word for word.
//!
//! A kept plan is used only if planning again would make the same one: what planning looks at is in its [`PlanKey`], and
//! plans whose scans or functions look at anything else are not kept. The tables of a plan hold their snapshot, whose
//! space nobody may use meanwhile, so one is kept for seconds after it was last used, and there are few of them.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use catalog::search_path::SearchPath;
use catalog::settings::StatementSettings;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::{Expr, LogicalPlan, Volatility};
use engine::Prepared;
use parking_lot::Mutex;
use syntax::ctes::ONCE;
use workers::Workers;

use crate::error::Result;
use crate::optimize::{known_arguments, known_limits};
use crate::scan::provider::Provider;

/// How long a plan is kept that nobody uses.
const LASTS: Duration = Duration::from_secs(5);

/// Most plans of all sessions.
const MOST: usize = 256;

/// What planning looks at besides the text of a statement and the types of its parameters.
#[derive(Clone, Debug)]
pub(crate) struct PlanKey {
    /// The version of the store. Tables, their rows, views, roles and rights are those of a version.
    pub(super) version: u64,
    pub(super) path: SearchPath,
    /// The user of the session.
    pub(super) user: Option<Arc<str>>,
    /// Whose rights the statement has.
    pub(super) role: Option<Arc<str>>,
    pub(super) settings: StatementSettings,
}

impl PlanKey {
    /// Whether planning comes to the same.
    pub(crate) fn is(&self, other: &PlanKey) -> bool {
        self.version == other.version
            && self.path == other.path
            && self.user == other.user
            && self.role == other.role
            && self.settings.is(&other.settings)
    }
}

/// A plan, and what the rules of the optimiser made of it.
#[derive(Clone, Debug)]
pub(crate) struct Planned {
    pub plan: LogicalPlan,
    pub optimised: LogicalPlan,
    /// The program of the engine that `optimised` was lowered to, once it was and if the engine runs all of it. Planning again
    /// with the same [`PlanKey`] would make the same one, and a program holds nothing of a run.
    pub program: Arc<OnceLock<Arc<Prepared>>>,
}

impl Planned {
    pub(crate) fn new(plan: LogicalPlan, optimised: LogicalPlan) -> Planned {
        let program = Arc::default();
        Planned {
            plan,
            optimised,
            program,
        }
    }
}

/// A plan that is kept, and when it was last used.
#[derive(Debug)]
struct Kept {
    key: PlanKey,
    planned: Planned,
    used: Instant,
}

/// Where a statement keeps its plan.
#[derive(Debug, Default)]
pub(crate) struct Slot(Mutex<Option<Kept>>);

impl Slot {
    /// The plan, one of `plans`, if planning would make the same one for the statement of this `key`. If not, it is
    /// forgotten. The key is asked for only if there is a plan.
    pub(super) fn find(
        &self,
        plans: &KeptPlans,
        key: impl FnOnce() -> Option<PlanKey>,
    ) -> Option<Planned> {
        let mut slot = self.0.lock();
        let key = slot.as_ref().and_then(|_| key());
        match (slot.as_mut(), key) {
            (Some(kept), Some(key)) if kept.key.is(&key) => {
                kept.used = Instant::now();
                plans.used.fetch_add(1, Ordering::Relaxed);
                Some(kept.planned.clone())
            }
            _ => {
                *slot = None;
                None
            }
        }
    }

    /// Forgets a plan that nobody has used for a while; whether there is one left.
    fn expire(&self) -> bool {
        let mut slot = self.0.lock();
        if slot
            .as_ref()
            .is_some_and(|kept| kept.used.elapsed() >= LASTS)
        {
            *slot = None;
        }
        slot.is_some()
    }
}

/// All plans that are kept.
#[derive(Debug, Default)]
pub(crate) struct KeptPlans {
    all: Mutex<All>,
    /// How often a statement ran by a plan that was kept.
    used: AtomicU64,
}

#[derive(Debug, Default)]
struct All {
    /// The oldest first.
    slots: VecDeque<Weak<Slot>>,
    /// Whether somebody sees to it that they are forgotten.
    watched: bool,
}

impl KeptPlans {
    /// How often a statement ran by a plan that was kept.
    pub(super) fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Keeps a plan of the statement of this `key`, if it has one, unless planning again could come to another; a plan with
    /// parameters only if they are said to be no reason. What is kept is forgotten on these workers.
    ///
    /// # Errors
    /// Those of looking at the plan.
    pub(crate) fn keep(
        self: &Arc<Self>,
        key: Option<PlanKey>,
        (planned, parameters): (Planned, bool),
        workers: &Workers,
    ) -> Result<Option<Arc<Slot>>> {
        let Some(key) = key else {
            return Ok(None);
        };
        for plan in [&planned.plan, &planned.optimised] {
            if !is_lasting(plan, parameters)? {
                return Ok(None);
            }
        }
        let slot = Arc::default();
        self.put(&slot, key, planned, workers);
        Ok(Some(slot))
    }

    /// Keeps a plan in `slot` in the place of the one before, as [`keep`](KeptPlans::keep) does in a new one.
    ///
    /// # Errors
    /// Those of looking at the plan.
    pub(super) fn keep_again(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        (key, planned): (PlanKey, Planned),
        workers: &Workers,
    ) -> Result<()> {
        if is_lasting(&planned.optimised, false)? {
            self.put(slot, key, planned, workers);
        }
        Ok(())
    }

    fn put(self: &Arc<Self>, slot: &Arc<Slot>, key: PlanKey, planned: Planned, workers: &Workers) {
        let used = Instant::now();
        *slot.0.lock() = Some(Kept { key, planned, used });
        let mut all = self.all.lock();
        // One that was emptied may still be among them.
        all.slots.retain(|own| own.as_ptr() != Arc::as_ptr(slot));
        if all.slots.len() >= MOST {
            all.slots.retain(|slot| slot.strong_count() > 0);
        }
        while all.slots.len() >= MOST {
            let oldest = all.slots.pop_front();
            if let Some(oldest) = oldest.and_then(|slot| slot.upgrade()) {
                *oldest.0.lock() = None;
            }
        }
        all.slots.push_back(Arc::downgrade(slot));
        if !std::mem::replace(&mut all.watched, true) {
            self.watch(workers);
        }
    }

    /// Sees to it that plans are forgotten, as long as there are some.
    fn watch(self: &Arc<Self>, workers: &Workers) {
        let own = Arc::downgrade(self);
        workers.handle().spawn(async move {
            loop {
                tokio::time::sleep(LASTS / 5).await;
                let Some(own) = own.upgrade() else { return };
                let mut all = own.all.lock();
                all.slots
                    .retain(|slot| slot.upgrade().is_some_and(|slot| slot.expire()));
                if all.slots.is_empty() {
                    all.watched = false;
                    return;
                }
            }
        });
    }
}

/// Who closes the store and still has a prepared statement does not hold the file by its plan.
impl Drop for KeptPlans {
    fn drop(&mut self) {
        for slot in self.all.get_mut().slots.drain(..) {
            if let Some(slot) = slot.upgrade() {
                *slot.0.lock() = None;
            }
        }
    }
}

/// Goes on, or not.
fn on(goes: bool) -> TreeNodeRecursion {
    if goes {
        TreeNodeRecursion::Continue
    } else {
        TreeNodeRecursion::Stop
    }
}

/// Whether a plan reads nothing but tables of the store and calls no function that could say something else later. It may have
/// `parameters`, or not.
pub(super) fn is_lasting(plan: &LogicalPlan, parameters: bool) -> Result<bool> {
    let mut lasting = true;
    plan.apply_with_subqueries(|node| {
        lasting &= match node {
            LogicalPlan::TableScan(scan) => scan.source.is::<Provider>(),
            // It is computed before the rest is.
            LogicalPlan::SubqueryAlias(subquery) => !subquery.alias.table().starts_with(ONCE),
            LogicalPlan::Projection(_)
            | LogicalPlan::Filter(_)
            | LogicalPlan::Window(_)
            | LogicalPlan::Aggregate(_)
            | LogicalPlan::Sort(_)
            | LogicalPlan::Join(_)
            | LogicalPlan::Union(_)
            | LogicalPlan::EmptyRelation(_)
            | LogicalPlan::Subquery(_)
            | LogicalPlan::Values(_)
            | LogicalPlan::Distinct(_) => true,
            LogicalPlan::Limit(limit) => known_limits::is_known(limit),
            _ => false,
        };
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                lasting &= match expr {
                    Expr::ScalarFunction(call) => {
                        call.func.signature().volatility == Volatility::Immutable
                    }
                    Expr::AggregateFunction(call) => {
                        call.func.signature().volatility == Volatility::Immutable
                            && !known_arguments::is_wanted(expr)?
                    }
                    Expr::ScalarVariable(..) => false,
                    // It is computed before the rest is.
                    Expr::WindowFunction(_) if known_arguments::is_wanted(expr)? => false,
                    Expr::Placeholder(_) => parameters,
                    _ => true,
                };
                Ok(on(lasting))
            })
        })?;
        Ok(on(lasting))
    })?;
    Ok(lasting)
}
