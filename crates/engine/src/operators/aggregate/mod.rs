//! Aggregation: finding the group of each row (hash, dense or sorted), and accumulating per group.

pub(crate) mod accumulator;
mod by_group;
pub(crate) mod collected;
pub(crate) mod dense;
pub(crate) mod dense_rows;
mod deviations;
pub(crate) mod distinct;
pub(crate) mod extremes;
pub(crate) mod factory;
pub(crate) mod first_row;
pub(crate) mod first_rows;
pub(crate) mod grouping;
pub(crate) mod kept_columns;
pub(crate) mod kept_rows;
mod limits;
pub(crate) mod long_sums;
pub(crate) mod pair_sums;
pub(crate) mod pairs;
pub(crate) mod result;
mod selection;
pub(crate) mod sorted;
pub(crate) mod sums;
