//! Operators and their state: selections and column readers, join tables, aggregations, sorts, windows, limits,
//! top-k filters. They know programs and vectors, but neither stages nor workers.

pub(crate) mod aggregate;
pub(crate) mod expansion;
pub(crate) mod external_scan;
pub(crate) mod external_sort;
pub(crate) mod join_index;
pub(crate) mod join_ranges;
pub(crate) mod join_table;
pub(crate) mod limit;
pub(crate) mod many_keys;
mod many_rows;
pub(crate) mod meter;
pub(crate) mod ordered_rows;
pub(crate) mod pipeline;
pub(crate) mod sort;
pub(crate) mod source;
pub(crate) mod steps;
pub(crate) mod top_k;
pub(crate) mod window;
