//! Rules beside DataFusion's, and the choice of rules for each plan.
//!
//! * Analyzer rules run once on every plan, in the order of [`environment`](crate::run::environment):
//!   [`multiset`], [`comparisons`], [`casts`], [`keys`], [`checked`], [`membership`], [`numbers`].
//! * Optimizer rules run where a plan has something for them ([`rules`]): [`sums`] and [`volatile`].
//!
//! Uses `functions` and the layers below it.

pub(crate) mod casts;
pub(crate) mod checked;
pub(crate) mod comparisons;
mod correlated;
mod expressions;
pub(crate) mod keys;
pub(crate) mod membership;
pub(crate) mod multiset;
pub(crate) mod numbers;
pub(crate) mod rules;
mod sums;
mod volatile;
