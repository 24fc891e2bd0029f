//! The planner: relations become programs of stages and pipelines; and the analysis of programs before they run.
//!
//! The planner and the joins import each other: a join plans its inputs, and an input may be a join.

pub(crate) mod analysis;
pub(crate) mod backward;
pub(crate) mod band;
pub(crate) mod build_side;
pub(crate) mod classes;
pub(crate) mod copies;
pub(crate) mod distinct_values;
pub(crate) mod document_parts;
pub(crate) mod early_groups;
pub(crate) mod explain;
pub(crate) mod first_groups;
pub(crate) mod group_join;
pub(crate) mod join_order;
pub(crate) mod join_tree;
mod key_counts;
pub(crate) mod nearest;
pub(crate) mod one_side;
pub(crate) mod outer_join;
pub(crate) mod planner;
pub(crate) mod program;
pub(crate) mod sampling;
pub(crate) mod semi_join;
pub(crate) mod shared_aggregates;
pub(crate) mod shifted_sums;
pub(crate) mod statistics;
pub(crate) mod together;
pub(crate) mod transfer;
pub(crate) mod wide_keys;
pub(crate) mod window;
