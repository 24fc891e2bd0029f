//! Settings that a store keeps.

use std::sync::Arc;

use store::Store;

use crate::database::options::NumaPolicy;
use crate::error::{Error, Result};

/// The name of the setting.
const PLAN: &str = "plan";

/// The plan that a store keeps; `None` where it keeps none.
///
/// # Errors
///
/// [`Error::Options`] for a plan that this program does not know.
pub(crate) fn numa_policy(store: &Arc<Store>) -> Result<Option<NumaPolicy>> {
    let Some(name) = table::setting(&store.snapshot(), PLAN)? else {
        return Ok(None);
    };
    match NumaPolicy::named(&name) {
        Some(plan) => Ok(Some(plan)),
        None => Err(Error::Options(format!(
            "the store keeps the plan {name:?}, which this program does not know; give --plan, or keep another one with `atoll set STORE plan=shard`"
        ))),
    }
}

/// Makes a store keep a plan, or none.
///
/// # Errors
///
/// [`Error::Store`] if the store is open for reading only, or cannot be written.
pub(crate) fn set_numa_policy(store: &Arc<Store>, plan: Option<NumaPolicy>) -> Result<()> {
    let mut tx = store.begin()?;
    table::set(&mut tx, PLAN, plan.map(NumaPolicy::name));
    tx.commit()?;
    Ok(())
}
