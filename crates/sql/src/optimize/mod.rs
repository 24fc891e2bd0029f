//! Rules beside DataFusion's, and the choice of rules for each plan.
//!
//! * Analyzer rules run once on every plan, in the order of [`environment`](crate::run::environment):
//!   [`order`], [`special`], [`multiset`], [`undefined`], [`hex`], [`floats`], [`comparisons`], [`lengths`], [`shifts`], [`likes`], [`casts`], [`keys`], [`checked`],
//!   [`membership`], [`numbers`], [`finite`], [`ordered_aggregates`], [`nested`].
//! * Optimizer rules run where a plan has something for them ([`rules`]): [`sums`], [`same_windows`], [`first_rows`], [`volatile`] and
//!   [`nullsafe`].
//! * [`checked`] also puts arguments of aggregates that can fail under their [`filtered`] rows.
//! * All of them are [`stoppable`].
//! * [`membership`] makes joins of subqueries, with [`unnest`] where they depend on rows outside.
//!
//! Uses `functions` and the layers below it.

mod arguments;
pub(crate) mod as_of;
pub(crate) mod casts;
pub(crate) mod checked;
pub(crate) mod comparisons;
mod correlated;
mod deep;
mod each_node;
mod enums;
pub(crate) mod expressions;
pub(crate) mod filtered;
pub(crate) mod finite;
mod first_items;
pub(crate) mod first_rows;
pub(crate) mod floats;
pub(crate) mod hex;
mod json_keys;
pub(crate) mod keys;
pub(crate) mod known_arguments;
pub(crate) mod known_limits;
pub(crate) mod lengths;
pub(crate) mod likes;
mod losses;
pub(crate) mod membership;
mod mixed;
pub(crate) mod multiset;
pub(crate) mod nested;
mod nullsafe;
pub(crate) mod numbers;
pub(crate) mod order;
pub(crate) mod ordered_aggregates;
mod outer;
mod reals;
pub(crate) mod recursion_checks;
pub(crate) mod rules;
pub(crate) mod same_windows;
pub(crate) mod shifts;
mod sort_keys;
pub(crate) mod special;
pub(crate) mod stoppable;
mod sums;
pub(crate) mod undefined;
pub(crate) mod unions;
mod unnest;
mod volatile;
pub(crate) mod working_table;
