//! Rules on DataFusion's logical plans: which of its own are applied, and those that put right what it answers wrongly,
//! so that both engines see the same plan.

pub(crate) mod checked;
pub(crate) mod correlated;
pub(crate) mod exact;
pub(crate) mod keys;
pub(crate) mod meaning;
pub(crate) mod membership;
pub(crate) mod multiset;
pub(crate) mod rules;
pub(crate) mod steady;
pub(crate) mod sums;
