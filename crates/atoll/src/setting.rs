//! Settings that a store keeps.

use std::sync::Arc;

use store::Store;

use crate::{Database, Error, Plan, Result};

/// The name of the setting.
const PLAN: &str = "plan";

impl Database {
    /// The plan that the store keeps for those who open it (row M2); `None` where it keeps none.
    ///
    /// # Errors
    ///
    /// [`Error::Options`] for a plan that this program does not know.
    pub fn plan(&self) -> Result<Option<Plan>> {
        kept(self.store())
    }

    /// Makes the store keep a plan, or none. It holds from the next time that the store is opened.
    ///
    /// # Errors
    ///
    /// [`Error::Store`] if the store is open for reading only, or cannot be written.
    pub fn set_plan(&self, plan: Option<Plan>) -> Result<()> {
        let mut tx = self.store().begin()?;
        table::set(&mut tx, PLAN, plan.map(Plan::name));
        tx.commit()?;
        Ok(())
    }
}

/// The plan that a store keeps.
pub(crate) fn kept(store: &Arc<Store>) -> Result<Option<Plan>> {
    let Some(name) = table::setting(&store.snapshot(), PLAN)? else {
        return Ok(None);
    };
    match Plan::named(&name) {
        Some(plan) => Ok(Some(plan)),
        None => Err(Error::Options(format!(
            "the store keeps the plan {name:?}, which this program does not know; give --plan, or keep another one with `atoll set STORE plan=shard`"
        ))),
    }
}
