//! What single users may have of the memory: each has a part of the budget, from which all of their statements reserve.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion_execution::runtime_env::RuntimeEnv;
use memory::Budget;
use parking_lot::Mutex;

use crate::resources::budget::BudgetPool;

/// The memory of a user with a limit.
#[derive(Debug)]
pub(crate) struct Allowance {
    /// From which the engine's operators reserve.
    pub budget: Arc<Budget>,
    /// In which functions compute: with a pool over that budget.
    pub runtime: Arc<RuntimeEnv>,
}

/// The memory of a user, for whoever watches: what statements have reserved, and what they may, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserMemory {
    /// Who it is.
    pub user: String,
    /// What their statements have reserved.
    pub used: u64,
    /// What they may.
    pub limit: u64,
}

/// The allowances of all users who have had one.
#[derive(Debug, Default)]
pub(crate) struct Allowances(Mutex<BTreeMap<String, Arc<Allowance>>>);

impl Allowances {
    /// The memory of a user who may have `limit` bytes of `whole`. Statements that began under another limit keep theirs.
    pub(crate) fn of(
        &self,
        user: &str,
        limit: u64,
        (whole, runtime): (&Arc<Budget>, &Arc<RuntimeEnv>),
    ) -> Arc<Allowance> {
        let mut all = self.0.lock();
        let known = all.get(user).filter(|own| own.budget.limit() == limit);
        if let Some(known) = known {
            return Arc::clone(known);
        }
        let budget = Budget::within(whole, limit, user);
        let pool = BudgetPool::new(Arc::clone(&budget));
        let runtime = RuntimeEnv {
            memory_pool: Arc::new(pool),
            ..runtime.as_ref().clone()
        };
        let own = Arc::new(Allowance {
            budget,
            runtime: Arc::new(runtime),
        });
        all.insert(user.to_owned(), Arc::clone(&own));
        own
    }

    /// What those have who `limit` says have a limit now.
    pub(crate) fn list(&self, limit: impl Fn(&str) -> Option<u64>) -> Vec<UserMemory> {
        let mut all = self.0.lock();
        all.retain(|user, _| limit(user).is_some());
        let told = all.iter().map(|(user, own)| UserMemory {
            user: user.clone(),
            used: own.budget.used(),
            limit: own.budget.limit(),
        });
        told.collect()
    }
}
